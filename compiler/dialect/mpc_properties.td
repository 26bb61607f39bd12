// Properties of operations. Each is yes or no, whatever the shapes, attributes and neighbours are. Passes and reports
// ask `has<Property::X>(op)`. An operation lists its properties among its traits; it has no others. `mpc-opt
// --list-operations` prints them.
#ifndef MPC_PROPERTIES_TD
#define MPC_PROPERTIES_TD

include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

// One property: an enumerator of mpc::Property and the trait that says that an operation has it.
class Mpc_Property<string symbol, int number, string text>
    : I32EnumCase<symbol, number, text>, ParamNativeOpTrait<"HasProperty", "::mpc::Property::" # symbol> {
  let cppNamespace = "::mpc";
}

// The phase of an operation in a training step, where its neighbours do not matter. State updates are Phase::kUpdate
// without it.
class Mpc_InPhase<string phase> : ParamNativeOpTrait<"InPhase", "::mpc::Phase::k" # phase> {
  let cppNamespace = "::mpc";
}

//===-- Values that only move ------------------------------------------------------------------------------------===//

// Gives the same elements in another shape or order, or several times.
def Mpc_IsMovement : Mpc_Property<"Movement", 0, "movement">;
// Hands its operand's value on, as movement, stop_gradient and neg do: the result is a value where the operand is one.
def Mpc_HandsOnValue : Mpc_Property<"HandsOnValue", 1, "hands-on-value">;
// Each element of the result is an element of an operand, or its negative. So the operation rounds nothing where the type
// of the result holds the operands. Data movement does not have the property.
def Mpc_SelectsValues : Mpc_Property<"SelectsValues", 2, "selects-values">;
// The result of a gradient has the scale of the operand.
def Mpc_KeepsScale : Mpc_Property<"KeepsScale", 3, "keeps-scale">;
// Reorders elements: its result has the same elements, so a parameter behind it is still the parameter.
def Mpc_ReordersElements : Mpc_Property<"ReordersElements", 4, "reorders-elements">;
// Takes parts: only some of a parameter's elements are left in its result.
def Mpc_TakesParts : Mpc_Property<"TakesParts", 5, "takes-parts">;
// Moves elements of its operands to its results as they are. A result has the element type that shape inference gives for
// it: passes forward the bits, lowering makes views of them.
def Mpc_IsDataMovement : Mpc_Property<"DataMovement", 6, "data-movement">;

//===-- Arithmetic -----------------------------------------------------------------------------------------------===//

// Computes each result element from the operand elements at the same (broadcast) position, so that it commutes with a
// permutation of axes. Dropout does not: its mask counts elements.
def Mpc_IsElementwise : Mpc_Property<"Elementwise", 7, "elementwise">;
// Computes in f32 from operands of any storage types and rounds once to its result, on every device.
def Mpc_IsArithmetic : Mpc_Property<"Arithmetic", 8, "arithmetic">;
// An element takes many instructions: exponentials, random numbers.
def Mpc_IsExpensive : Mpc_Property<"Expensive", 9, "expensive">;
// An element takes one instruction.
def Mpc_IsSimpleArithmetic : Mpc_Property<"SimpleArithmetic", 10, "simple-arithmetic">;
// Sums or means over axes.
def Mpc_IsSum : Mpc_Property<"Sum", 11, "sum">;
def Mpc_IsBatchNorm : Mpc_Property<"BatchNorm", 12, "batch-norm">;
// A product that may be a scale of the user's own.
def Mpc_IsProductOrQuotient : Mpc_Property<"ProductOrQuotient", 13, "product-or-quotient">;
// The CPU has no kernel written by hand for it. Generated code computes it there in every shape that reaches it, also
// alone.
def Mpc_IsGeneratedOnCpu : Mpc_Property<"GeneratedOnCpu", 14, "generated-on-cpu">;

//===-- Training steps -------------------------------------------------------------------------------------------===//

// Asks autodiff for gradients.
def Mpc_IsGradientRequest : Mpc_Property<"GradientRequest", 15, "gradient-request">;
// Written by autodiff alone; its results are cotangents.
def Mpc_IsGradientOp : Mpc_Property<"GradientOp", 16, "gradient-op">;
// Adds gradients, which must have one scale.
def Mpc_SumsGradients : Mpc_Property<"SumsGradients", 17, "sums-gradients">;
// Scales or clips gradients, or scales the loss. No region of the network takes it in, as with state updates.
def Mpc_IsScaling : Mpc_Property<"Scaling", 18, "scaling">;
// Has no precision to decide, as part of the update.
def Mpc_FollowsUpdate : Mpc_Property<"FollowsUpdate", 19, "follows-update">;
// Reads gradients of parameters, beside the updates themselves.
def Mpc_ReadsParameterGradients : Mpc_Property<"ReadsParameterGradients", 20, "reads-parameter-gradients">;
// Its results carry no loss scale: it divides by the scale, or it decides by what was scaled.
def Mpc_EndsScale : Mpc_Property<"EndsScale", 21, "ends-scale">;
// Computes one gradient's share in a check or norm of many. Without a region it costs no launch of its own.
def Mpc_IsGradientPart : Mpc_Property<"GradientPart", 22, "gradient-part">;
// Makes one decision of several flags.
def Mpc_JoinsFlags : Mpc_Property<"JoinsFlags", 23, "joins-flags">;
// Decides about the whole step: computing it twice would decide twice.
def Mpc_DecidesStep : Mpc_Property<"DecidesStep", 24, "decides-step">;
// Its results are no values of the network and no gradients: they have no statistics worth a record, and no scale.
def Mpc_IsBesideNetwork : Mpc_Property<"BesideNetwork", 25, "beside-network">;
// Prepares the operands of state updates, so it may stand beside them in the body of mpc.guarded_update.
def Mpc_PreparesUpdate : Mpc_Property<"PreparesUpdate", 26, "prepares-update">;
// Updates each element by itself. Tensors that lie one after the other are updated as one.
def Mpc_IsElementwiseUpdate : Mpc_Property<"ElementwiseUpdate", 27, "elementwise-update">;
// Every process that trains together runs it at once. It is not computed twice.
def Mpc_IsCollective : Mpc_Property<"Collective", 28, "collective">;

def Mpc_PropertyEnum : I32Enum<"Property", "A property of an operation", [
    Mpc_IsMovement, Mpc_HandsOnValue, Mpc_SelectsValues, Mpc_KeepsScale, Mpc_ReordersElements, Mpc_TakesParts,
    Mpc_IsDataMovement, Mpc_IsElementwise, Mpc_IsArithmetic, Mpc_IsExpensive, Mpc_IsSimpleArithmetic, Mpc_IsSum,
    Mpc_IsBatchNorm, Mpc_IsProductOrQuotient, Mpc_IsGeneratedOnCpu, Mpc_IsGradientRequest, Mpc_IsGradientOp,
    Mpc_SumsGradients, Mpc_IsScaling, Mpc_FollowsUpdate, Mpc_ReadsParameterGradients, Mpc_EndsScale, Mpc_IsGradientPart,
    Mpc_JoinsFlags, Mpc_DecidesStep, Mpc_IsBesideNetwork, Mpc_PreparesUpdate, Mpc_IsElementwiseUpdate,
    Mpc_IsCollective]> {
  let cppNamespace = "::mpc";
}

#endif
