// The dialect, its attributes, type constraints and the base class of operations.
#ifndef MPC_BASE_TD
#define MPC_BASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "compiler/dialect/mpc_interfaces.td"
include "compiler/dialect/mpc_properties.td"

def Mpc_Dialect : Dialect {
  let name = "mpc";
  let cppNamespace = "::mpc";
  let summary = "Neural-network training steps with explicit precision.";
  let description = [{
    Tensors are builtin `tensor<...>` of f32, f16, bf16, f64 (reference only), i8, i32, i64 and i1, with static shapes.
    f8E4M3FN and f8E5M2 have casts alone. Every operation has *storage types*, those of its operands and results, and
    computes in f32. A low-precision operation reads f16 or bf16 and computes and accumulates in f32. It rounds once, to
    nearest even, to its result. Operations that only move elements (`mpc.reshape`, `mpc.concat`, ...) keep the element
    type: `mpc.cast` changes it.

    Every tensor has at least one element: there is nothing to compute on an empty one.

    Discardable attributes of the dialect, which have no others:

    | attribute | on | meaning |
    |---|---|---|
    | `mpc.step` | functions | the function is a step: it becomes a Program, and its signature is verified as a whole |
    | `mpc.sequence` | functions | the function, a private one, becomes a sequence of a Program: what `mpc.repeat` calls |
    | `mpc.state` | function arguments and results | `#mpc.state`: what state or data a value is |
    | `mpc.scope` | operations | `#mpc.scope`: Cell path, network, pinned type |
    | `mpc.precision` | operations | `#mpc.precision`: what the AMP pass has decided, and why |
    | `mpc.backward` | operations | the operation computes a cotangent; its scope is that of the forward operation |
    | `mpc.differentiated` | operations | autodiff differentiated a result before `mpc-amp` had decided its type |
    | `mpc.recompute` | operations | the call of a Cell with `Recompute()` that traced the operation, an i64 |
    | `mpc.recomputed` | operations | the operation computes again what one of the forward pass has computed |
    | `mpc.recompute_candidates` | functions | how many values and Cells `mpc-recompute` could give up to fit a budget |
    | `mpc.head_chunks` | functions | how many chunks `mpc-chunk-head` has cut heads into, and the bytes of the whole logits |
    | `mpc.padded` | products and sums | how many classes `mpc-pad-classes` has found and made of them |
    | `mpc.chain` | operations | the operation adds to what earlier chunks have left; no region joins others with it |
    | `mpc.flat_group` | optimizers | the updates of a function with this number share flat buffers |
    | `mpc.bucket` | collectives | those of a function with this number travel as one message, an i64 |
    | `mpc.fusion_choice` | regions | the bytes that `mpc.fusion` saves, and why its neighbours are left out |
    | `mpc.gradients` | functions | what the records of `mpc-loss-scale` count, by the name of the record |
    | `mpc.assignment` | modules | which slot of the network is low, solved at O1 and auto; given, it is reused |
    | `mpc.target` | modules | `#mpc.target`: the device that the module is compiled for; without it, the CPU |

    A result of a step with a role of state is the new value of the argument of its name. It has the argument's role and
    type, and no other result has its name. State stands in steps alone.
  }];
  let discardableAttrs = (ins
      "::mlir::UnitAttr":$step,
      "::mlir::UnitAttr":$sequence,
      "::mpc::ScopeAttr":$scope,
      "::mpc::PrecisionAttr":$precision,
      "::mlir::UnitAttr":$backward,
      "::mlir::UnitAttr":$differentiated,
      "::mlir::IntegerAttr":$recompute,
      "::mlir::UnitAttr":$recomputed,
      "::mlir::DenseI64ArrayAttr":$recompute_candidates,
      "::mlir::DenseI64ArrayAttr":$head_chunks,
      "::mlir::DenseI64ArrayAttr":$padded,
      "::mlir::UnitAttr":$chain,
      "::mlir::IntegerAttr":$flat_group,
      "::mlir::IntegerAttr":$bucket,
      "::mlir::DictionaryAttr":$fusion_choice,
      "::mlir::DictionaryAttr":$gradients,
      "::mlir::DictionaryAttr":$assignment,
      "::mlir::IntegerAttr":$processes,
      "::mpc::TargetAttr":$target);
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let hasConstantMaterializer = 1;
}

def Mpc_ScopeAttr : AttrDef<Mpc_Dialect, "Scope"> {
  let mnemonic = "scope";
  let summary = "Where in the user's program an operation was traced.";
  let description = [{
    `path` is the Cell path ("lenet5/conv1"). `network` is true inside a network that an AMP level acts on; losses,
    training steps and optimizers are outside. `pin` is the type that the innermost `Cell::ToFloat` asked for. `level`
    and `low` are those of the innermost `amp::AutoCast` scope, which beat the level that the module is compiled at.

    ```mlir
    #mpc.scope<"lenet5/conv1", network, pin = f16>
    #mpc.scope<"block/matmul", network, level = "O1", low = bf16>
    ```
  }];
  let parameters = (ins StringRefParameter<"Cell path">:$path,
                        DefaultValuedParameter<"bool", "false">:$network,
                        OptionalParameter<"::mlir::Type">:$pin,
                        StringRefParameter<"AMP level", [{""}]>:$level,
                        OptionalParameter<"::mlir::Type">:$low);
  let genVerifyDecl = 1;
  let hasCustomAssemblyFormat = 1;
}

// The rules of mpc-amp. The first one that matches decides, except for the last five, which decide together
// (docs/amp.md).
def Mpc_PrecisionRule : I32EnumAttr<"PrecisionRule", "What decided the precision of an operation", [
    I32EnumAttrCase<"UserCast", 0, "user_cast">,
    I32EnumAttrCase<"ToFloat", 1, "to_float">,
    I32EnumAttrCase<"ListEntry", 2, "list_entry">,
    I32EnumAttrCase<"Loss", 3, "loss">,
    I32EnumAttrCase<"Label", 4, "label">,
    I32EnumAttrCase<"DifferentiatedBy", 5, "differentiated_by">,
    I32EnumAttrCase<"DifferentiatedValue", 6, "differentiated_value">,
    I32EnumAttrCase<"Level", 7, "level">,
    I32EnumAttrCase<"NormKeptF32", 8, "norm_kept_f32">,
    I32EnumAttrCase<"Class", 9, "class">,
    I32EnumAttrCase<"StoredAssignment", 10, "stored_assignment">,
    I32EnumAttrCase<"InferRule", 11, "infer_rule">,
    I32EnumAttrCase<"Cut", 12, "cut">,
    I32EnumAttrCase<"LowPays", 13, "low_pays">,
    I32EnumAttrCase<"LowDoesNotPay", 14, "low_does_not_pay">]> {
  let cppNamespace = "::mpc";
  let genSpecializedAttr = 0;
}

def Mpc_PrecisionReasonAttr : AttrDef<Mpc_Dialect, "PrecisionReason"> {
  let mnemonic = "precision_reason";
  let summary = "One reason for the precision of an operation.";
  let description = [{
    A rule, and a detail that only reports print: the level, the class, the entry of the user's lists.

    ```mlir
    #mpc.precision_reason<level "O2">
    #mpc.precision_reason<cut>
    ```
  }];
  let parameters = (ins EnumParameter<Mpc_PrecisionRule>:$rule, StringRefParameter<"detail">:$detail);
  let hasCustomAssemblyFormat = 1;
}

def Mpc_PrecisionAttr : AttrDef<Mpc_Dialect, "Precision"> {
  let mnemonic = "precision";
  let summary = "What mpc-amp has decided about an operation, and why.";
  let description = [{
    `type` is what mpc-amp gave the operation's floating result. There is none where no result is floating. Cast
    clean-up may change the result afterwards. `user` says that the user asked for it: by a cast, by `Cell::ToFloat` or
    in the lists. `folded` says that a cast has been folded into the operation. An operation into which equal ones were
    merged has the reasons of all.

    ```mlir
    #mpc.precision<f16, level "O2">
    #mpc.precision<f32, class "norm", folded>
    #mpc.precision<f32, cut | list_entry "'softmax' (deny)", user>
    ```
  }];
  let parameters = (ins "::mlir::Type":$type,
                        ArrayRefParameter<"::mpc::PrecisionReasonAttr">:$reasons,
                        "bool":$user,
                        "bool":$folded);
  let genVerifyDecl = 1;
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// The rule that decided; where operations were merged, that of the first.
    ::mpc::PrecisionRule getRule() const { return getReasons().front().getRule(); }
    /// The same with a cast folded into the operation.
    PrecisionAttr withFolded() const;
    /// This, and the reasons and marks of \p Other: what an operation has into which an equal one is merged.
    PrecisionAttr mergedWith(PrecisionAttr Other) const;
  }];
}

def Mpc_RoleParameter : AttrOrTypeParameter<"::mpc::Role", "role"> {
  let parser = "::mpc::parseRole($_parser)";
  let printer = "$_printer << ::mpc::roleName($_self)";
}

def Mpc_StateAttr : AttrDef<Mpc_Dialect, "State"> {
  let mnemonic = "state";
  let summary = "What state or data an argument or a result of a step is.";
  let description = [{
    Roles of data are `input`, `capture` (what the function of a network takes from the step around it), `output` and
    `record`. Roles of state are `parameter`, `statistic`, `slot`, `step`, `learning_rate`, `rng`, `scaler`, `derived`
    and `accumulator`. State has a name. `of` is the name of the state that a slot, a derived value or an accumulator
    belongs to, which is not derived itself. `form` is the low type that an f32 parameter is stored in: the function
    reads the stored value, widened.

    ```mlir
    #mpc.state<parameter, "conv1.weight">
    #mpc.state<parameter, "conv1.weight", form = f16>
    #mpc.state<derived, "conv1.weight.f16", of = "conv1.weight">
    ```
  }];
  let parameters = (ins Mpc_RoleParameter:$role,
                        StringRefParameter<"name">:$name,
                        StringRefParameter<"owner", [{""}]>:$of,
                        OptionalParameter<"::mlir::Type">:$form);
  let genVerifyDecl = 1;
  let assemblyFormat = "`<` $role `,` $name (`,` struct($of, $form)^)? `>`";
}

def Mpc_TargetAttr : AttrDef<Mpc_Dialect, "Target"> {
  let mnemonic = "target";
  let summary = "The device that a module is compiled for.";
  let description = [{
    `arch` is the architecture of a device that need not be here. `winograd` and `tf32` say that convolutions and
    products may round more than they must. What passes ask of a target is in `compiler/dialect/target_model.h`.

    ```mlir
    module attributes {mpc.target = #mpc.target<"cpu">} {}
    module attributes {mpc.target = #mpc.target<"cuda", arch = "sm_90", tf32 = true>} {}
    ```
  }];
  let parameters = (ins StringRefParameter<"name">:$name,
                        StringRefParameter<"architecture", [{""}]>:$arch,
                        DefaultValuedParameter<"bool", "false">:$tf32,
                        DefaultValuedParameter<"bool", "false">:$winograd);
  let genVerifyDecl = 1;
  let assemblyFormat = "`<` $name (`,` struct($arch, $tf32, $winograd)^)? `>`";
}

// A tensor of static shape with at least one element.
class Mpc_TensorOf<list<Type> elements>
    : Type<And<[StaticShapeTensorOf<elements>.predicate,
                CPred<"!::llvm::is_contained(::llvm::cast<::mlir::ShapedType>($_self).getShape(), 0)">]>,
           StaticShapeTensorOf<elements>.summary # ", at least one", "::mlir::TensorType">;

def Mpc_FloatTensor : Mpc_TensorOf<[F32, F16, BF16, F64]>;
def Mpc_F32Tensor : Mpc_TensorOf<[F32, F64]>;
def Mpc_IndexTensor : Mpc_TensorOf<[I32, I64]>;
def Mpc_WindowIndexTensor : Mpc_TensorOf<[I8, I32]>;
def Mpc_CountTensor : Mpc_TensorOf<[F32, F64, I32, I64]>;
def Mpc_I32Tensor : Mpc_TensorOf<[I32]>;
def Mpc_I64Tensor : Mpc_TensorOf<[I64]>;
def Mpc_BoolTensor : Mpc_TensorOf<[I1]>;
def Mpc_GradientOrFlag : Mpc_TensorOf<[F32, F16, BF16, F64, I1]>;
def Mpc_NumberTensor : Mpc_TensorOf<[F32, F16, BF16, F64, I32, I64]>;
def Mpc_Tensor : Mpc_TensorOf<[F32, F16, BF16, F64, I8, I32, I64, I1]>;

class Mpc_WordParameter<string enum> : AttrOrTypeParameter<"::mpc::" # enum, "word"> {
  let parser = "::mpc::parseWord<::mpc::" # enum # ">($_parser)";
  let printer = "$_printer << ::mpc::wordOf($_self)";
}

// One of the words that name the values of `enum`, which kernels/attribute_enums.h declares. `words` are their names, for
// the documentation. In the text of an operation the word stands alone: `data_format = NHWC`.
class Mpc_WordAttr<string enum, string word, list<string> words> : AttrDef<Mpc_Dialect, enum> {
  let mnemonic = word;
  let summary = "one of " # !interleave(words, ", ");
  let parameters = (ins Mpc_WordParameter<enum>:$value);
  let assemblyFormat = "`<` $value `>`";
  let returnType = "::mpc::" # enum;
  let convertFromStorage = "$_self.getValue()";
  let constBuilderCall = "::mpc::" # enum # "Attr::get($_builder.getContext(), $0)";
  let extraClassDeclaration = "using Enum = ::mpc::" # enum # ";\nstatic_assert(::mpc::hasNames<Enum>({" #
                              !interleave(!foreach(word, words, "\"" # word # "\""), ", ") # "}));";
}

def Mpc_DataFormatAttr : Mpc_WordAttr<"DataFormat", "data_format", ["NCHW", "NHWC"]>;
def Mpc_PadModeAttr : Mpc_WordAttr<"PadMode", "pad_mode", ["valid", "same", "pad"]>;
def Mpc_LossReductionAttr : Mpc_WordAttr<"LossReduction", "reduction", ["none", "mean", "sum"]>;
def Mpc_ActivationAttr
    : Mpc_WordAttr<"Activation", "activation", ["none", "relu", "sigmoid", "tanh", "gelu", "gelu_tanh"]>;
def Mpc_ApproximationAttr : Mpc_WordAttr<"Approximation", "approximation", ["none", "tanh"]>;
def Mpc_DistributionAttr : Mpc_WordAttr<"Distribution", "distribution", ["uniform", "normal", "truncated_normal"]>;
def Mpc_InterpolationAttr : Mpc_WordAttr<"Interpolation", "interpolation", ["nearest", "bilinear"]>;
def Mpc_CoordinatesAttr
    : Mpc_WordAttr<"Coordinates", "coordinates", ["asymmetric", "half_pixel", "align_corners"]>;
def Mpc_LowCopyAttr : Mpc_WordAttr<"LowCopy", "shadow", ["none", "f16", "bf16"]>;

// An attribute whose default is that of a constant of kernels/known_attributes.h.
class Mpc_Known<Attr attribute, string constant>
    : DefaultValuedAttr<attribute, "::mpc::attribute::" # constant # ".fallback">;

def Mpc_DataFormat : Mpc_Known<Mpc_DataFormatAttr, "kDataFormat">;
def Mpc_PadMode : Mpc_Known<Mpc_PadModeAttr, "kPadMode">;
def Mpc_Reduction : Mpc_Known<Mpc_LossReductionAttr, "kReduction">;
def Mpc_Activation : Mpc_Known<Mpc_ActivationAttr, "kActivation">;
def Mpc_Approximation : Mpc_Known<Mpc_ApproximationAttr, "kApproximate">;
def Mpc_Interpolation : Mpc_Known<Mpc_InterpolationAttr, "kInterpolation">;
def Mpc_Coordinates : Mpc_Known<Mpc_CoordinatesAttr, "kCoordinates">;
def Mpc_LowCopy : Mpc_Known<Mpc_LowCopyAttr, "kLowCopy">;

def Mpc_Strides : Mpc_Known<DenseI64ArrayAttr, "kStrides">;
def Mpc_Dilations : Mpc_Known<DenseI64ArrayAttr, "kDilations">;
def Mpc_Padding : Mpc_Known<DenseI64ArrayAttr, "kPadding">;
def Mpc_Epsilon : Mpc_Known<F32Attr, "kEpsilon">;
def Mpc_Slope : Mpc_Known<F32Attr, "kSlope">;
def Mpc_AdamEpsilon : Mpc_Known<F32Attr, "kAdamEpsilon">;
def Mpc_LambEpsilon : Mpc_Known<F32Attr, "kLambEpsilon">;
def Mpc_AdamWDecay : Mpc_Known<F32Attr, "kAdamWDecay">;
def Mpc_Beta1 : Mpc_Known<F32Attr, "kBeta1">;
def Mpc_Beta2 : Mpc_Known<F32Attr, "kBeta2">;
def Mpc_Momentum : Mpc_Known<F32Attr, "kMomentum">;
def Mpc_LossScale : Mpc_Known<F32Attr, "kLossScale">;
def Mpc_On : Mpc_Known<F32Attr, "kOn">;
def Mpc_Upper : Mpc_Known<F32Attr, "kUpper">;
def Mpc_Groups : Mpc_Known<I64Attr, "kGroups">;
def Mpc_LastAxis : Mpc_Known<I64Attr, "kLastAxis">;
def Mpc_CountIncludePad : Mpc_Known<BoolAttr, "kCountIncludePad">;

// Defaults that kernels/known_attributes.h lacks.
def Mpc_Flag : DefaultValuedAttr<BoolAttr, "false">;
class Mpc_Float<string default> : DefaultValuedAttr<F32Attr, default>;
class Mpc_Int<string default> : DefaultValuedAttr<I64Attr, default>;

// A method that returns constant positions of operands or results.
class Mpc_Positions<string method, list<int> positions> {
  code definition = "::llvm::ArrayRef<unsigned> $cppClass::" # method # [{() {
      static const ::llvm::SmallVector<unsigned, 0> kPositions = {}] # !interleave(positions, ", ") # [{};
      return kPositions;
    }
  }];
}

// Shape inference by a rule of inference_support.h that reads no attribute.
class Mpc_InferBy<string rule> {
  code definition = [{
    ::llvm::Expected<::llvm::SmallVector<::mlir::RankedTensorType>>
    $cppClass::inferTypes(::mlir::TypeRange operands, ::mlir::DictionaryAttr) {
      return ::mpc::}] # rule # [{(operands, ::mpc::operandsOf<$cppClass>());
    }
  }];
}

// The names of the operands among `arguments`: an optional one ends in "?", a variadic one in "...".
class Mpc_OperandNames<dag arguments> {
  list<int> operands = !filter(i, !range(!size(arguments)), !isa<TypeConstraint>(!getdagarg<Constraint>(arguments, i)));
  list<string> names = !foreach(i, operands, "\"" # !getdagname(arguments, i) #
      !cond(!isa<Optional>(!getdagarg<Constraint>(arguments, i)): "?",
            !isa<Variadic>(!getdagarg<Constraint>(arguments, i)): "...", true: "") # "\"");
  code definition = [{
    ::llvm::ArrayRef<::llvm::StringRef> $cppClass::operandNames() {
      static const ::llvm::SmallVector<::llvm::StringRef, 0> kNames = {}] # !interleave(names, ", ") # [{};
      return kNames;
    }
  }];
}

// The derivative of a unary operation: `op` of the cotangent and of what else it reads.
class Mpc_UnaryVjp<string op, string reads> {
  code definition = [{
    ::llvm::FailureOr<::llvm::SmallVector<::mlir::Value>>
    $cppClass::buildVjp(::mlir::OpBuilder &builder, ::mlir::ValueRange cotangents, ::llvm::ArrayRef<bool> needed) {
      ::mlir::Value gradient;
      if (needed[0])
        gradient = }] # op # "::create(builder, getLoc(), getX().getType(), cotangents[0]" #
                 !if(!empty(reads), "", ", " # reads) # [{);
      return ::llvm::SmallVector<::mlir::Value>{gradient};
    }
  }];
}

// The code of an example: `op` of constants, and what the interpreter answers. `values` has a constant for each of
// `operands`, then the answer.
class Mpc_ExampleOf<string op, list<string> operands, string result, list<string> values,
                    list<string> types = !listsplat("tensor<3xf32>", !size(operands))> {
  list<string> constants = !foreach(i, !range(!size(operands)),
      "%" # operands[i] # " = mpc.constant {value = dense<" # values[i] # "> : " # types[i] # "} : () -> " # types[i]);
  string text = !interleave(constants # [
      "%" # result # " = mpc." # op # " " # !interleave(!foreach(operand, operands, "%" # operand), ", ") #
          " : (" # !interleave(types, ", ") # ") -> tensor<3xf32>",
      "// %" # result # " = " # values[!size(operands)]], "\n    ");
}

// `ampClass` is an enumerator of mpc::AmpClass. Operations whose operands or results partly stay f32 list them. Operations
// of Mpc_ImageInterface list their images. Shape inference is written where `inference` names its rule, the derivative
// where there is a `gradientOp`; otherwise they are C++. Operands that are `alike` have one shape, the result's.
class Mpc_Op<string mnemonic, string ampClass, list<Trait> traits = []>
    : Op<Mpc_Dialect, mnemonic, traits # [
        DeclareOpInterfaceMethods<Mpc_ShapeInferenceInterface>,
        DeclareOpInterfaceMethods<Mpc_AmpInterface>]> {
  list<int> f32Operands = [];
  list<int> f32Results = [];
  list<int> imageOperands = [];
  list<int> imageResults = [];
  bit alike = 0;
  string inference = !if(alike, "inferAllSameShape", "");
  string gradientOp = "";
  string gradientReads = "";
  // The example in a description that a class writes: values for Mpc_ExampleOf, or code.
  list<string> exampleValues = [];
  string example = "";
  code extraDeclarations = "";
  let extraClassDeclaration = "static ::llvm::StringRef mnemonic() { return \"" # mnemonic # "\"; }\n" #
      "static ::llvm::ArrayRef<::llvm::StringRef> operandNames();\n" # extraDeclarations;
  let extraClassDefinition = Mpc_OperandNames<arguments>.definition #
      "::mpc::AmpClass $cppClass::getAmpClass() { return ::mpc::AmpClass::" # ampClass # "; }\n" #
      Mpc_Positions<"getF32Operands", f32Operands>.definition # Mpc_Positions<"getF32Results", f32Results>.definition #
      !if(!empty(imageOperands), "", Mpc_Positions<"getImageOperands", imageOperands>.definition #
                                     Mpc_Positions<"getImageResults", imageResults>.definition) #
      !if(!empty(inference), "", Mpc_InferBy<inference>.definition) #
      !if(!empty(gradientOp), "", Mpc_UnaryVjp<gradientOp, gradientReads>.definition) # [{
        ::mlir::ParseResult $cppClass::parse(::mlir::OpAsmParser &parser, ::mlir::OperationState &state) {
          return ::mpc::parseOperation(parser, state);
        }
        void $cppClass::print(::mlir::OpAsmPrinter &printer) {
          ::mpc::printOperation(printer, *this, ::mpc::defaultAttributes<$cppClass>(getContext()));
        }
      }];
  let hasCustomAssemblyFormat = 1;
}

// Marks operations whose first operands are state, in the order of the results (mpc::StateUpdate).
def Mpc_StateUpdateTrait : NativeOpTrait<"StateUpdate"> { let cppNamespace = "::mpc"; }

// An operation of the forward graph that has a derivative.
class Mpc_DifferentiableOp<string mnemonic, string ampClass, list<Trait> traits = []>
    : Mpc_Op<mnemonic, ampClass, [Pure, DeclareOpInterfaceMethods<Mpc_DifferentiableInterface>] # traits>;

// An operation that only autodiff writes.
class Mpc_GradientOp<string mnemonic, list<Trait> traits = []>
    : Mpc_Op<mnemonic, "Exempt", [Pure, Mpc_IsGradientOp] # traits>;

// Such an operation with a derivative of its own, for derivatives of derivatives.
class Mpc_DifferentiableGradientOp<string mnemonic, list<Trait> traits = []>
    : Mpc_GradientOp<mnemonic, [DeclareOpInterfaceMethods<Mpc_DifferentiableInterface>] # traits>;

// An operation with a `data_format`: the images among its operands and results are `imageOperands` and `imageResults`.
defvar Mpc_Image = DeclareOpInterfaceMethods<Mpc_ImageInterface>;
// An operation that moves elements along axes which its attributes name.
defvar Mpc_MovesAlongAxes = DeclareOpInterfaceMethods<Mpc_AxesInterface>;
// An operation that multiplies matrices or convolves.
defvar Mpc_MatrixWork = DeclareOpInterfaceMethods<Mpc_MatrixWorkInterface>;

// What the code generator computes: element by element, operands broadcast to the result;
defvar Mpc_Elementwise = DeclareOpInterfaceMethods<Mpc_FusibleInterface>;
// element by element, where the operation says itself how its operands lie over its elements;
defvar Mpc_ElementwiseInSpace = DeclareOpInterfaceMethods<Mpc_FusibleInterface, ["getSpace"]>;
// after reductions of rows, of columns or of everything.
defvar Mpc_Reducing =
    DeclareOpInterfaceMethods<Mpc_FusibleInterface, ["getSpace", "getReductions", "emitTerms", "emitFinish"]>;

#endif
