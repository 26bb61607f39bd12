#include "compiler/interpreter/interpreter.h"

#include "absl/strings/str_cat.h"
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/dialect.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace mpc {

using reference::Tensor;

namespace {

/// Evaluates one function; calls make further ones.
class FunctionInterpreter {
public:
  FunctionInterpreter(func::FuncOp Function, reference::Rounding Rounding, const FunctionInterpreter *Caller = nullptr)
      : Function(Function), Rounding(Rounding), Caller(Caller) {}

  absl::StatusOr<std::vector<Tensor>> run(absl::Span<const Tensor> Inputs);

private:
  absl::Status runOperation(Operation &Op);
  absl::Status runConstant(ConstantOp Op);
  absl::Status runCall(func::CallOp Op);
  absl::Status runRepeat(RepeatOp Op);
  absl::Status runFusion(FusionOp Op);
  absl::Status runGuardedUpdate(GuardedUpdateOp Op);
  absl::Status runReference(Operation &Op);

  /// Runs what stands before the terminator, which reads the results.
  absl::Status runBody(Block &Body);

  std::vector<Tensor> valuesOf(ValueRange Operands) const;
  void bind(ValueRange Names, std::vector<Tensor> Values);
  /// Whether the function runs already, and so calls itself.
  bool isRunning() const;

  func::FuncOp Function;
  reference::Rounding Rounding;
  const FunctionInterpreter *Caller;
  DenseMap<Value, Tensor> Environment;
};

} // namespace

/// "'mpc.conv2d' of @forward".
static std::string describe(Operation &Op, func::FuncOp Function) {
  return "'" + Op.getName().getStringRef().str() + "' of @" + Function.getName().str();
}

static bool isKnownTensor(Type Value) {
  auto Type = dyn_cast<RankedTensorType>(Value);
  return Type && Type.hasStaticShape() && toDType(Type.getElementType());
}

static TensorSpec specOf(Value V) { return toTensorSpec(cast<RankedTensorType>(V.getType())); }

std::vector<Tensor> FunctionInterpreter::valuesOf(ValueRange Operands) const {
  std::vector<Tensor> Result;
  for (Value Operand : Operands)
    Result.push_back(Environment.at(Operand));
  return Result;
}

void FunctionInterpreter::bind(ValueRange Names, std::vector<Tensor> Values) {
  for (auto [Name, Computed] : llvm::zip_equal(Names, Values))
    Environment[Name] = std::move(Computed);
}

bool FunctionInterpreter::isRunning() const {
  for (const FunctionInterpreter *Running = Caller; Running; Running = Running->Caller)
    if (Running->Function == Function)
      return true;
  return false;
}

absl::Status FunctionInterpreter::runBody(Block &Body) {
  for (Operation &Op : Body.without_terminator())
    if (absl::Status Status = runOperation(Op); !Status.ok())
      return Status;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> FunctionInterpreter::run(absl::Span<const Tensor> Inputs) {
  std::string Name = "@" + Function.getName().str();
  if (Function.isExternal() || !Function.getBody().hasOneBlock())
    return absl::FailedPreconditionError(absl::StrCat(Name, " has no body or has control flow: it cannot be run"));
  if (isRunning())
    return absl::FailedPreconditionError(absl::StrCat(Name, " calls itself: it cannot be run"));
  if (Inputs.size() != Function.getNumArguments())
    return absl::InvalidArgumentError(
        absl::StrCat(Name, " takes ", Function.getNumArguments(), " arguments, got ", Inputs.size()));
  for (BlockArgument Argument : Function.getArguments()) {
    const Tensor &Input = Inputs[Argument.getArgNumber()];
    if (!isKnownTensor(Argument.getType()) || !(specOf(Argument) == Input.spec)) {
      std::string Expected;
      llvm::raw_string_ostream(Expected) << Argument.getType();
      return absl::InvalidArgumentError(
          absl::StrCat(Name, " argument ", Argument.getArgNumber(), " is ", Expected, ", got ", Input.spec.ToString()));
    }
    if (int64_t(Input.values.size()) != Input.spec.num_elements())
      return absl::InvalidArgumentError(absl::StrCat(Name, " argument ", Argument.getArgNumber(), " has ",
                                                     Input.values.size(), " values for ", Input.spec.ToString()));
    Environment[Argument] = Input;
  }

  Block &Body = Function.getBody().front();
  if (absl::Status Status = runBody(Body); !Status.ok())
    return Status;
  return valuesOf(Body.getTerminator()->getOperands());
}

absl::Status FunctionInterpreter::runOperation(Operation &Op) {
  return llvm::TypeSwitch<Operation *, absl::Status>(&Op)
      .Case([&](ConstantOp Constant) { return runConstant(Constant); })
      .Case([&](func::CallOp Call) { return runCall(Call); })
      .Case([&](RepeatOp Repeat) { return runRepeat(Repeat); })
      .Case([&](FusionOp Fusion) { return runFusion(Fusion); })
      .Case([&](GuardedUpdateOp Update) { return runGuardedUpdate(Update); })
      .Case<ValueAndGradOp, BackwardOp, CustomVjpOp>([&](Operation *) {
        return absl::FailedPreconditionError(absl::StrCat(describe(Op, Function), ": run mpc-autodiff first"));
      })
      .Default([&](Operation *) { return runReference(Op); });
}

absl::Status FunctionInterpreter::runConstant(ConstantOp Op) {
  auto Elements = dyn_cast<DenseElementsAttr>(Op.getValue());
  if (!Elements)
    return absl::UnimplementedError(absl::StrCat(describe(*Op, Function), " is not a dense constant"));
  Tensor &Result = Environment[Op.getOutput()];
  Result.spec = specOf(Op.getOutput());
  Result.values.reserve(Elements.getNumElements());
  if (isa<FloatType>(Elements.getElementType())) {
    for (APFloat Element : Elements.getValues<APFloat>()) {
      bool LosesInfo;
      Element.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &LosesInfo);
      Result.values.push_back(Element.convertToDouble());
    }
    return absl::OkStatus();
  }
  for (const APInt &Element : Elements.getValues<APInt>())
    Result.values.push_back(Element.getBitWidth() == 1 ? double(Element.getZExtValue())
                                                       : double(Element.getSExtValue()));
  return absl::OkStatus();
}

absl::Status FunctionInterpreter::runCall(func::CallOp Op) {
  auto Callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(Op, Op.getCalleeAttr());
  if (!Callee)
    return absl::FailedPreconditionError(
        absl::StrCat(describe(*Op, Function), " names no function of the module: ", Op.getCallee().str()));
  absl::StatusOr<std::vector<Tensor>> Results =
      FunctionInterpreter(Callee, Rounding, this).run(valuesOf(Op.getOperands()));
  if (!Results.ok())
    return Results.status();
  bind(Op.getResults(), *std::move(Results));
  return absl::OkStatus();
}

absl::Status FunctionInterpreter::runRepeat(RepeatOp Op) {
  std::vector<Tensor> Values = valuesOf(Op.getInputs());
  for (uint64_t Call = 0; Call < Op.getCount(); ++Call) {
    absl::StatusOr<std::vector<Tensor>> Results = FunctionInterpreter(Op.getFunction(), Rounding, this).run(Values);
    if (!Results.ok())
      return Results.status();
    llvm::move(*Results, Values.begin());
  }
  Values.resize(Op->getNumResults());
  bind(Op.getResults(), std::move(Values));
  return absl::OkStatus();
}

absl::Status FunctionInterpreter::runFusion(FusionOp Op) {
  Block &Body = Op.getBody().front();
  bind(Body.getArguments(), valuesOf(Op.getInputs()));
  if (absl::Status Status = runBody(Body); !Status.ok())
    return Status;
  bind(Op.getResults(), valuesOf(Body.getTerminator()->getOperands()));
  return absl::OkStatus();
}

absl::Status FunctionInterpreter::runGuardedUpdate(GuardedUpdateOp Op) {
  ValueRange Chosen = Op.getOld();
  if (Environment.at(Op.getCondition()).values.front() != 0) {
    Block &Body = Op.getBody().front();
    if (absl::Status Status = runBody(Body); !Status.ok())
      return Status;
    Chosen = Body.getTerminator()->getOperands();
  }
  bind(Op.getResults(), valuesOf(Chosen));
  return absl::OkStatus();
}

absl::Status FunctionInterpreter::runReference(Operation &Op) {
  if (!isa_and_nonnull<MpcDialect>(Op.getDialect()) || Op.getNumRegions() != 0)
    return absl::FailedPreconditionError(absl::StrCat(describe(Op, Function), " cannot be run by the interpreter"));
  std::vector<Tensor> Inputs = valuesOf(Op.getOperands());
  std::vector<Tensor> Outputs;
  for (Value Result : Op.getResults()) {
    TensorSpec Spec = specOf(Result);
    Outputs.push_back({Spec, std::vector<double>(Spec.num_elements())});
  }
  absl::Status Status = reference::Run(std::string_view(Op.getName().stripDialect()), kernelAttributes(&Op), Inputs,
                                       absl::MakeSpan(Outputs), Rounding);
  if (!Status.ok())
    return absl::Status(Status.code(), absl::StrCat(describe(Op, Function), ": ", Status.message()));
  bind(Op.getResults(), std::move(Outputs));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> interpret(func::FuncOp Function, absl::Span<const Tensor> Inputs,
                                              reference::Rounding Rounding) {
  return FunctionInterpreter(Function, Rounding).run(Inputs);
}

} // namespace mpc
