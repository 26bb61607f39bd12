// Passes that decide and prove the precision of operations, and keep what is stored low.
#ifndef MPC_PRECISION_PASSES_TD
#define MPC_PRECISION_PASSES_TD

include "passes/pass_base.td"

// The options that the AMP pass and the precision verifier share.
class PrecisionListOptions {
  list<Option> common = [
    Option<"level", "level", "std::string", "\"O0\"", "O0, O1, O2, O3 or auto">,
    ListOption<"allow", "allow", "std::string", "Operations or Cell paths to run low">,
    ListOption<"deny", "deny", "std::string", "Operations or Cell paths to run in f32">,
    ListOption<"infer", "infer", "std::string", "Operations or Cell paths that follow their operands">,
    ListOption<"clear", "clear", "std::string", "Operations or Cell paths that move or compare values">];
}

def AmpPass : MpcPass<"mpc-amp", "::mlir::ModuleOp"> {
  let summary = "Assigns f32 or a low type to every operation of a network by level, and inserts the casts";
  let description = [{
    Levels O0, O2 and O3 pin each operation. O1 and auto pin by class. Matrix work is low. Reductions, exponentials and
    norm parameters are f32, and so is element-wise arithmetic fed by f32 work. The minimum cut over the values that
    would be cast decides the rest. At auto the time that low matrix work saves on the device with the given rates
    replaces its pin. Three things beat the level, each stronger than the one before: entries of the lists,
    `Cell::ToFloat` pins (`mpc.scope`'s `pin`) and the user's own casts. An entry of the lists is a name such as
    `softmax`, or a path such as `lenet5/fc1` with all that is inside. `mpc.scope`'s `level` and `low` replace level and
    low type.

    Norms are matched by class and read and write the low type directly where their neighbours do (the norm fold).
    Losses are f32 at every level, and so is the operation that produces the value that `value_and_grad` or `backward`
    differentiates. Behind `mpc-autodiff` its mark `mpc.differentiated` tells which that is. There is one cast for each (value, type). Every operation it decides receives `#mpc.precision`. What
    O1 and auto decided becomes the module attribute `mpc.assignment`. Slots that it names already are not decided
    again.

    An operation belongs to a network if its `mpc.scope` says so. In a module without scopes, every operation outside
    training steps (functions with `mpc.value_and_grad`) belongs to one. What follows from the gradients of an
    `mpc.backward` updates state and belongs to none. An operation that an earlier run has decided keeps its decision,
    whatever this level is. A loss written by hand inside the network is f32 back to the last matrix work or norm. What the network does to labels is f32, too. Function signatures keep
    their types.

    ```mlir
    // before, level=O2
    %y = mpc.matmul %x, %w : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
    // after
    %0 = mpc.cast %x : (tensor<2x4xf32>) -> tensor<2x4xf16>
    %1 = mpc.cast %w : (tensor<4x3xf32>) -> tensor<4x3xf16>
    %y = mpc.matmul %0, %1 as <f16, level "O2">
        : (tensor<2x4xf16>, tensor<4x3xf16>) -> tensor<2x3xf16>
    ```
  }];
  let options = PrecisionListOptions<>.common # [
    Option<"dtype", "dtype", "std::string", "\"f16\"", "The low type: f16, bf16, or auto for the target's own">,
    Option<"keepBatchNormFp32", "keep-batchnorm-fp32", "std::string", "\"\"",
           "true or false; empty: the level's default (O2 true, O3 false)">,
    Option<"bytesPerSecond", "bytes-per-second", "double", "0", "auto: memory rate of the device; 0: the default">,
    Option<"lowFlops", "low-flops", "double", "0", "auto: matrix work a second in the low type; 0: the default">,
    Option<"f32Flops", "f32-flops", "double", "0", "auto: matrix work a second in f32; 0: the default">,
    Option<"secondsPerOperation", "seconds-per-operation", "double", "0",
           "auto: what an operation costs beyond its work; 0: the default">];
}

def VerifyPrecisionPass : MpcPass<"mpc-verify-precision", "::mlir::ModuleOp"> {
  let summary = "Proves that losses, statistics and kept norms are f32";
  let description = [{
    Runs after AMP. Losses must compute f32 and return f32. Norm parameters, statistics and running statistics must be
    f32. Integer labels must never have been cast to a floating type, and floating labels must never have passed through
    a low type. At O1 and auto no operation of class Deny may read or write a low type. The user's ToFloat, a list entry
    and a folded norm are exceptions. At a failure the message names the operation and its `mpc.scope`.
  }];
  let options = PrecisionListOptions<>.common;
}

def CastCleanupPass : MpcPass<"mpc-cast-cleanup", "::mlir::func::FuncOp"> {
  let summary = "Removes and moves casts where no value changes";
  let description = [{
    There is one cast for each (value, type), and trunc(ext(x)) becomes x. Unscale, the finite check and the optimizer
    read a low gradient themselves, so its widening is never materialised. Narrowing casts move through pure data
    movement towards fewer bytes. Dead operations are erased. The rounding of a user's cast stays.
  }];
}

def VerifyRangesPass : MpcPass<"mpc-verify-ranges", "::mlir::func::FuncOp"> {
  let summary = "Warns of 16-bit tensors that overflow in every step";
  let description = [{
    Runs after autodiff and bounds every value of the function. Nothing is assumed of parameters, inputs and the loss
    scale, so that what it says holds for every step. A tensor of a 16-bit type may have an element beyond the
    type's range in every step. It gives a warning with its Cell, and notes for the operations that made it so large. `mpc-opt --ranges` tells more,
    with the parameters as their initialisers make them.

    ```mlir
    %p = mpc.sigmoid %x in "net" : tensor<4xf32>
    %a = mpc.add_scalar %p {value = 1.0 : f32} in "net" : tensor<4xf32>
    %b = mpc.mul_scalar %a {value = 1.0e5 : f32} in "net" : tensor<4xf32>
    // warning: mpc.cast in net overflows f16 in every step: one element is at least 9.999e+04 in size
    %y = mpc.cast %b in "net" : (tensor<4xf32>) -> tensor<4xf16>
    ```

    A function with requests for gradients is left alone.
  }];
}

def LowCopiesPass : MpcPass<"mpc-shadows", "::mlir::func::FuncOp"> {
  let summary = "Keeps the low copies of parameters as state that optimizers write";
  let description = [{
    A new argument replaces casts of a state argument with the role `parameter` to f16 or bf16, the user's or not. The
    casts may stand behind reshapes and transposes. The argument is the *shadow*,
    `#mpc.state<derived, "w.f16", of = "w">` for the parameter `w`. An optimizer that writes the parameter gets
    `shadow = "f16"`. Its new result is returned under the same role and name, so that the next step finds the low copy
    of the new parameter. A parameter that nothing in the function updates has a shadow that is only read. Rows and
    slices are taken from a shadow that exists for another reason.

    ```mlir
    // before
    func.func @step(%w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">}, ...) attributes {mpc.step} {
      %0 = mpc.cast %w : (tensor<4xf32>) -> tensor<4xf16>
      ...
      %w2, %v2 = mpc.momentum %w, %v, %g, %rate : ... -> (tensor<4xf32>, tensor<4xf32>)
      return %w2, ...
    // after: %ws stands for %0
    func.func @step(%w: ..., %ws: tensor<4xf16> {mpc.state = #mpc.state<derived, "w.f16", of = "w">}) attributes {mpc.step} {
      ...
      %w2, %v2, %ws2 = mpc.momentum %w, %v, %g, %rate {shadow = f16}
          : ... -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>)
      return %w2, ..., %ws2
    ```

    An optimizer writes one shadow. Where a parameter is read in both low types, or something that is no optimizer
    writes it, the runtime rebuilds the other shadow before the next step.

    With `master-weights=false` a parameter that is used only through casts to one low type is stored in that type. The
    argument, the optimizer's operand and its result become low. Slots stay f32, and there is no shadow. An argument
    with a `form` is stored in that type whatever its uses are: uses in f32 read it through a cast.
  }];
  let options = [
    Option<"masterWeights", "master-weights", "bool", "true",
           "Keep parameters in f32; false: those that are only used low are stored low">];
}

#endif
