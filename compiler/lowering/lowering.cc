#include "compiler/lowering/lowering.h"

#include "absl/strings/str_cat.h"
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/inference_support.h"
#include "compiler/dialect/step_signature.h"
#include "compiler/lowering/function_lowering.h"
#include "compiler/lowering/program_data.h"
#include "compiler/lowering/region_instruction.h"
#include "runtime/aligned_buffer.h"

using namespace mlir;

namespace mpc::compiler {

namespace {

/// A step with what it calls.
class ProgramLowering {
public:
  ProgramLowering(func::FuncOp Function, const runtime::Device &Target, const runtime::PlanOptions &Options,
                  codegen::GeneratedCode Code)
      : Function(Function), Signature(Function), Parts{Target, Options, std::move(Code)}, Step(Function, Parts) {}

  absl::StatusOr<runtime::Program> run() {
    describe();
    addArguments();
    addConstants();
    Parts.Packer.emplace(Result, updatedState(), Parts.Options.keep_packed_weights);
    if (absl::Status Status = Step.run(); !Status.ok())
      return Status;
    addResults();
    if (absl::Status Status = addRefreshes(); !Status.ok())
      return Status;
    plan();
    Result.code = std::move(Parts.Code.blobs);
    return std::move(Result);
  }

  const std::vector<std::string> &remarks() const { return Parts.Remarks; }

private:
  func::FuncOp Function;
  StepSignature Signature;
  ProgramParts Parts;
  FunctionLowering Step;
  runtime::Program &Result = Parts.Program;
  llvm::StringMap<runtime::ValueId> StateByName;
  /// The name of the state that each state argument belongs to; empty for none.
  SmallVector<StringRef> Owners;

  void describe() {
    Result.name = Function.getSymName().str();
    Result.device = std::string(Parts.Target.name());
    Result.allow_tf32 = Parts.Options.allow_tf32;
    Result.arch = std::string(Parts.Target.arch());
    Result.required_cpu_features = Parts.Code.required_cpu_features.empty() ? Parts.Target.required_cpu_features()
                                                                            : Parts.Code.required_cpu_features;
  }

  void addArguments() {
    for (BlockArgument Argument : Function.getArguments()) {
      unsigned Index = Argument.getArgNumber();
      std::optional<Role> Own = argumentRole(Function, Index);
      std::string Name = argumentName(Function, Index).str();
      if (Name.empty())
        Name = ("argument" + llvm::Twine(Index)).str();
      runtime::Value Record;
      Record.spec = toTensorSpec(cast<RankedTensorType>(Argument.getType()));
      Record.storage = isState(Own) ? runtime::Storage::kState : runtime::Storage::kInput;
      Record.index = isState(Own) ? Result.state.size() : Result.inputs.size();
      runtime::ValueId Id = Step.addValue(Record);
      Step.bind(Argument, Id);
      if (!isState(Own)) {
        Result.inputs.push_back({Name, Id});
        Step.placeInArena(Argument);
        continue;
      }
      Result.state.push_back({Name, *Own, Record.spec, false});
      Owners.push_back(argumentState(Function, Index).getOf());
      StateByName[Name] = Id;
    }
  }

  void addConstants() {
    SmallVector<ConstantOp> Ops;
    for (func::FuncOp Each : withCalled(Function))
      llvm::append_range(Ops, Each.getOps<ConstantOp>());
    auto Elements = llvm::map_to_vector(Ops, [](ConstantOp Op) { return cast<DenseElementsAttr>(Op.getValue()); });
    for (auto [Op, Offset] : llvm::zip_equal(Ops, placeConstants(Elements, Result)))
      Parts.Constants[Op] = Offset;
  }

  OperandRange results() { return Function.getBody().front().getTerminator()->getOperands(); }

  /// For each state whether the function gives it a new value.
  std::vector<bool> updatedState() {
    std::vector<bool> Updated(Result.state.size());
    for (auto [Index, Operand] : llvm::enumerate(results())) {
      std::optional<unsigned> Argument = Signature.argumentOf(Index);
      if (Argument && Operand != Function.getArgument(*Argument))
        Updated[Result.values[*Step.oldValue(Index)].index] = true;
    }
    return Updated;
  }

  void addResults() {
    for (auto [Index, Operand] : llvm::enumerate(results())) {
      std::string Name = resultName(Function, Index).str();
      if (!isState(resultRole(Function, Index))) {
        Result.outputs.push_back({Name.empty() ? ("result" + llvm::Twine(Index)).str() : Name, Step.keptId(Operand)});
        continue;
      }
      runtime::ValueId Old = *Step.oldValue(Index);
      Result.state[Result.values[Old].index].written |= Step.valueId(Operand) != Old;
    }
    Step.addCopies();
  }

  absl::Status addRefreshes() {
    std::vector<runtime::StateRefresh> OfPackedWeights = Parts.Packer->TakeRefreshes();
    addCastRefreshes(Owners, StateByName, Result);
    for (runtime::StateRefresh &Refresh : OfPackedWeights) {
      if (absl::StatusOr<runtime::InstructionPlan> Plan = Parts.planned(Refresh.instruction); !Plan.ok())
        return Plan.status();
      Result.refreshes.push_back(std::move(Refresh));
    }
    return absl::OkStatus();
  }

  void plan() {
    Result.arena_bytes = Step.plan();
    // State is rebuilt before the step begins, one entry after the other.
    for (const runtime::StateRefresh &Refresh : Result.refreshes)
      if (size_t Bytes = Refresh.instruction.workspace_bytes)
        Result.arena_bytes = std::max(Result.arena_bytes, runtime::AlignedBuffer::Padded(Bytes));
  }
};

/// "f32, f16 or i8": every type of the table.
std::string elementTypeNames() {
  std::string Names;
  for (const DTypeInfo &Info : kDTypes)
    absl::StrAppend(&Names, Names.empty() ? "" : &Info == &kDTypes.back() ? " or " : ", ", std::string(Info.name));
  return Names;
}

/// Errors: an argument or a value of the body that no Program can hold.
absl::Status checkTypes(func::FuncOp Function) {
  auto IsStorable = [](Type T) { return isKnownTensor(T) && !isTooLarge(cast<RankedTensorType>(T).getShape()); };
  auto Refuse = [&](StringRef What, Type T) {
    return absl::InvalidArgumentError(absl::StrCat("@", Function.getSymName().str(), ": ", What.str(), " is ",
                                                   typeText(T),
                                                   "; a Program holds tensors of a static shape, of at "
                                                   "most 2^47 elements, of ",
                                                   elementTypeNames()));
  };
  for (BlockArgument Argument : Function.getArguments())
    if (!IsStorable(Argument.getType()))
      return Refuse(("argument " + llvm::Twine(Argument.getArgNumber())).str(), Argument.getType());
  for (Operation &Op : Function.getBody().front())
    for (OpResult Value : Op.getResults())
      if (!IsStorable(Value.getType()))
        return Refuse(("a result of " + Op.getName().getStringRef()).str(), Value.getType());
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<runtime::Program> lowerToProgram(func::FuncOp Function, const runtime::Device &Target,
                                                const runtime::PlanOptions &Options, codegen::GeneratedCode Code,
                                                std::vector<std::string> *Remarks) {
  if (isSequence(Function))
    return absl::InvalidArgumentError(
        absl::StrCat("@", Function.getSymName().str(), " is a sequence; a step that calls it becomes a Program"));
  for (func::FuncOp Each : withCalled(Function)) {
    if (!Each.getBody().hasOneBlock())
      return absl::InvalidArgumentError(
          absl::StrCat("@", Each.getSymName().str(), " must be one block to become a Program"));
    if (absl::Status Status = checkTypes(Each); !Status.ok())
      return Status;
  }
  ProgramLowering Run(Function, Target, Options, std::move(Code));
  absl::StatusOr<runtime::Program> Result = Run.run();
  if (!Result.ok())
    return Result;
  if (Remarks)
    Remarks->insert(Remarks->end(), Run.remarks().begin(), Run.remarks().end());
  if (absl::Status Written = Target.EndPlanning(Options); !Written.ok())
    return Written;
  return Result;
}

} // namespace mpc::compiler
