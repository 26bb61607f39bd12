#include "compiler/lowering/lowering.h"

#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/inference_support.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/region_plan.h"
#include "compiler/dialect/step_signature.h"
#include "compiler/lowering/arena_plan.h"
#include "compiler/lowering/program_data.h"
#include "compiler/lowering/region_instruction.h"
#include "compiler/lowering/storage_assignment.h"
#include "runtime/aligned_buffer.h"
#include "runtime/packed_weights.h"

using namespace mlir;

namespace mpc::compiler {

namespace {

class Lowering {
public:
  Lowering(func::FuncOp Function, const runtime::Device &Target, const runtime::PlanOptions &Options,
           codegen::GeneratedCode Code)
      : Function(Function), Target(Target), Options(Options), Code(std::move(Code)), Signature(Function),
        Storage(Function, &Target) {}

  absl::StatusOr<runtime::Program> run() {
    Result.name = Function.getSymName().str();
    Result.device = std::string(Target.name());
    Result.allow_tf32 = Options.allow_tf32;
    Result.arch = std::string(Target.arch());
    Result.required_cpu_features =
        Code.required_cpu_features.empty() ? Target.required_cpu_features() : Code.required_cpu_features;
    addArguments();
    addConstants();
    Packer.emplace(Result, updatedState(), Options.keep_packed_weights);
    for (Operation *Op : Storage.instructions()) {
      size_t First = Result.instructions.size();
      if (absl::Status Status = addInstruction(Op); !Status.ok())
        return Status;
      InstructionsOf.push_back({First, Result.instructions.size() - 1});
    }
    addResults();
    if (absl::Status Status = addRefreshes(); !Status.ok())
      return Status;
    plan();
    Result.code = std::move(Code.blobs);
    return std::move(Result);
  }

  const std::vector<std::string> &remarks() const { return Remarks; }

private:
  func::FuncOp Function;
  const runtime::Device &Target;
  const runtime::PlanOptions &Options;
  codegen::GeneratedCode Code;
  StepSignature Signature;
  StorageAssignment Storage;
  runtime::Program Result;
  std::optional<runtime::WeightPacker> Packer;
  llvm::DenseMap<Value, runtime::ValueId> Ids;
  /// Temporary roots (and inputs) in the order of their first appearance, with the values that live in them.
  llvm::MapVector<Value, SmallVector<runtime::ValueId>> ArenaValues;
  llvm::StringMap<runtime::ValueId> StateByName;
  /// What each state argument belongs to; empty for none.
  SmallVector<StringRef> Owners;

  // The record of a value: its own shape, the storage of its root.
  runtime::ValueId valueId(Value V) {
    if (auto It = Ids.find(V); It != Ids.end())
      return It->second;
    Value Root = Storage.root(V);
    runtime::Value Record;
    if (Root != V && (isa<BlockArgument>(Root) || Root.getDefiningOp<ConstantOp>()))
      Record = Result.values[valueId(Root)];
    Record.spec = toTensorSpec(cast<RankedTensorType>(V.getType()));
    runtime::ValueId Id = Result.values.size();
    Result.values.push_back(Record);
    Ids[V] = Id;
    if (Record.storage == runtime::Storage::kTemporary || Record.storage == runtime::Storage::kInput)
      ArenaValues[Root].push_back(Id);
    return Id;
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
      runtime::ValueId Id = Result.values.size();
      if (!isState(Own)) {
        Record.storage = runtime::Storage::kInput;
        Record.index = Result.inputs.size();
        Result.inputs.push_back({Name, Id});
        ArenaValues[Argument].push_back(Id);
      } else {
        Record.storage = runtime::Storage::kState;
        Record.index = Result.state.size();
        Result.state.push_back({Name, *Own, Record.spec, false});
        Owners.push_back(argumentState(Function, Index).getOf());
        StateByName[Name] = Id;
      }
      Result.values.push_back(Record);
      Ids[Argument] = Id;
    }
  }

  void addConstants() {
    SmallVector<ConstantOp> Ops(Function.getOps<ConstantOp>());
    auto Elements = llvm::map_to_vector(Ops, [](ConstantOp Op) { return cast<DenseElementsAttr>(Op.getValue()); });
    for (auto [Op, Offset] : llvm::zip_equal(Ops, placeConstants(Elements, Result))) {
      runtime::Value Record;
      Record.spec = toTensorSpec(cast<RankedTensorType>(Op.getType()));
      Record.storage = runtime::Storage::kConstant;
      Record.offset = Offset;
      Ids[Op.getOutput()] = Result.values.size();
      Result.values.push_back(Record);
    }
  }

  absl::Status addRegion(FusionOp Fusion) {
    auto Call = Code.calls.find(Fusion);
    if (Call == Code.calls.end())
      return absl::InvalidArgumentError(
          absl::StrCat("@", Function.getSymName().str(), ": no code was generated for an mpc.fusion"));
    runtime::Instruction Instruction = regionInstruction(Fusion, Call->second, Storage.aliases(Fusion));
    for (Value Operand : Fusion.getInputs())
      Instruction.inputs.push_back(valueId(Operand));
    // The code stores what the region yields, whether or not something reads it.
    for (Value Output : Fusion.getOutputs())
      Instruction.outputs.push_back(valueId(Output));
    Result.instructions.push_back(std::move(Instruction));
    return absl::OkStatus();
  }

  // Generated code would do without a kernel.
  static std::string whyNoRegion(Operation *Op) {
    if (!isa<FusibleOpInterface>(Op))
      return "";
    auto Plan = codegen::RegionPlan::of(ArrayRef(Op));
    return Plan ? "" : absl::StrCat("; a region cannot hold it: ", llvm::toString(Plan.takeError()));
  }

  absl::Status addInstruction(Operation *Op) {
    if (auto Fusion = dyn_cast<FusionOp>(Op))
      return addRegion(Fusion);
    // Kernels are made from the shapes of what they write.
    if (Op->getNumResults() > 0 && Op->use_empty() && isMemoryEffectFree(Op))
      return absl::InvalidArgumentError(absl::StrCat(Op->getName().getStringRef().str(),
                                                     ": none of its results is read; dead operations are removed "
                                                     "before lowering"));
    runtime::Instruction Instruction;
    Instruction.kernel = Op->getName().stripDialect().str();
    Instruction.attributes = kernelAttributes(Op);
    Instruction.scope = pathOf(Op).str();
    for (Value Operand : Op->getOperands())
      Instruction.inputs.push_back(valueId(Operand));
    // A kernel leaves out what nobody reads.
    for (Value Output : Op->getResults())
      Instruction.outputs.push_back(Output.use_empty() ? runtime::kNoValue : valueId(Output));
    absl::StatusOr<runtime::InstructionPlan> Plan = planned(Instruction);
    if (!Plan.ok())
      return absl::Status(Plan.status().code(), absl::StrCat(Plan.status().message(), whyNoRegion(Op)));
    if (Plan->packing)
      if (absl::Status Status = addPacking(*Plan->packing, Instruction); !Status.ok())
        return Status;
    if (IntegerAttr Group = dialectOf(Op).getFlatGroupAttrHelper().getAttr(Op))
      FlatGroups[Result.instructions.size()] = Group.getInt();
    Result.instructions.push_back(std::move(Instruction));
    return absl::OkStatus();
  }

  /// Gives an instruction its workspace, and the Program what was chosen for it.
  absl::StatusOr<runtime::InstructionPlan> planned(runtime::Instruction &Instruction) {
    absl::StatusOr<runtime::InstructionPlan> Plan = Target.Plan(Result, Instruction, Options);
    if (!Plan.ok())
      return absl::Status(Plan.status().code(),
                          absl::StrCat(Instruction.scope, Instruction.scope.empty() ? "" : ": ", "mpc.",
                                       Instruction.kernel, ": ", Plan.status().message()));
    Instruction.workspace_bytes = Plan->workspace_bytes;
    if (!Plan->choice.first.empty() && !llvm::is_contained(Result.choices, Plan->choice))
      addChoice(*Plan);
    return Plan;
  }

  /// Makes \p Instruction read its weight packed, and adds what packs it.
  absl::Status addPacking(const WeightPacking &Packing, runtime::Instruction &Instruction) {
    std::optional<runtime::Instruction> Pack = Packer->Pack(Packing, Instruction);
    if (absl::StatusOr<runtime::InstructionPlan> Plan = planned(Instruction); !Plan.ok() || !Pack)
      return Plan.status();
    if (absl::StatusOr<runtime::InstructionPlan> Plan = planned(*Pack); !Plan.ok())
      return Plan.status();
    PackedWeights.push_back({Pack->outputs[0], Result.instructions.size()});
    Result.instructions.push_back(*std::move(Pack));
    return absl::OkStatus();
  }

  /// The state whose new value a result is; none for data.
  std::optional<runtime::ValueId> oldState(unsigned Index) {
    std::optional<unsigned> Argument = Signature.argumentOf(Index);
    return Argument ? std::optional(Ids.lookup(Function.getArgument(*Argument))) : std::nullopt;
  }

  /// For each state whether the function gives it a new value.
  std::vector<bool> updatedState() {
    std::vector<bool> Updated(Result.state.size());
    Operation *Return = Function.getBody().front().getTerminator();
    for (auto [Index, Operand] : llvm::enumerate(Return->getOperands())) {
      std::optional<runtime::ValueId> Old = oldState(Index);
      auto Known = Ids.find(Operand);
      if (Old && (Known == Ids.end() || Known->second != *Old))
        Updated[Result.values[*Old].index] = true;
    }
    return Updated;
  }

  void addChoice(runtime::InstructionPlan &Plan) {
    if (!Plan.times.empty())
      Remarks.push_back(absl::StrCat("kernels timed for ", Plan.choice.first, ": ", Plan.times));
    Result.choices.push_back(std::move(Plan.choice));
  }

  void addResults() {
    Operation *Return = Function.getBody().front().getTerminator();
    for (auto [Index, Operand] : llvm::enumerate(Return->getOperands())) {
      std::string Name = resultName(Function, Index).str();
      if (!isState(resultRole(Function, Index))) {
        Result.outputs.push_back({Name.empty() ? ("result" + llvm::Twine(Index)).str() : Name, keptId(Operand)});
        continue;
      }
      runtime::ValueId Old = *oldState(Index);
      Result.state[Result.values[Old].index].written |= valueId(Operand) != Old;
    }
    for (const StorageAssignment::Copy &Copy : Storage.copies())
      Result.state_copies.push_back({keptId(Return->getOperand(Copy.Result)), *oldState(Copy.Result), Copy.Reason});
  }

  absl::Status addRefreshes() {
    std::vector<runtime::StateRefresh> OfPackedWeights = Packer->TakeRefreshes();
    addCastRefreshes(Owners, StateByName, Result);
    for (runtime::StateRefresh &Refresh : OfPackedWeights) {
      if (absl::StatusOr<runtime::InstructionPlan> Plan = planned(Refresh.instruction); !Plan.ok())
        return Plan.status();
      Result.refreshes.push_back(std::move(Refresh));
    }
    return absl::OkStatus();
  }

  // What leaves the step as an output, or becomes another state, must not change when state is updated in place: an old
  // value of state, or a view of one, is copied before the first instruction.
  runtime::ValueId keptId(Value Operand) {
    runtime::ValueId Id = valueId(Operand);
    if (!isa<BlockArgument>(behindViews(Operand)) || Result.values[Id].storage != runtime::Storage::kState)
      return Id;
    runtime::Value Copy;
    Copy.spec = Result.values[Id].spec;
    runtime::ValueId CopyId = Result.values.size();
    Result.values.push_back(Copy);
    runtime::Instruction Instruction;
    Instruction.kernel = "reshape";
    Instruction.attributes.Set("shape", std::vector<std::int64_t>(Copy.spec.shape));
    Instruction.inputs = {Id};
    Instruction.outputs = {CopyId};
    Prologue.push_back(std::move(Instruction));
    PinnedValues.push_back(CopyId);
    return CopyId;
  }

  /// The instructions of the operation at \p Position, or what comes behind the last one.
  std::pair<size_t, size_t> instructionsOf(size_t Position) const {
    if (Position < InstructionsOf.size())
      return InstructionsOf[Position];
    return {Result.instructions.size(), Result.instructions.size()};
  }

  void plan() {
    SmallVector<ArenaPlace> Places;
    for (auto &[Root, Values] : ArenaValues) {
      auto [First, Last] = Storage.life(Root);
      Places.push_back({Values, instructionsOf(First).first, instructionsOf(Last).second});
    }
    for (auto [Id, Pack] : PackedWeights)
      Places.push_back({{Id}, Pack, Pack + 1});
    for (runtime::ValueId Id : PinnedValues)
      Places.push_back({{Id}, 0, Result.instructions.size()});
    auto FlatGroup = [&](size_t Instruction) {
      auto Known = FlatGroups.find(Instruction);
      return Known == FlatGroups.end() ? -1 : Known->second;
    };
    planArena(Places, FlatGroup, Options.flat_share, Result);
    // State is rebuilt before the step begins, one entry after the other.
    for (const runtime::StateRefresh &Refresh : Result.refreshes)
      if (size_t Bytes = Refresh.instruction.workspace_bytes)
        Result.arena_bytes = std::max(Result.arena_bytes, runtime::AlignedBuffer::Padded(Bytes));
    Result.instructions.insert(Result.instructions.begin(), Prologue.begin(), Prologue.end());
    for (runtime::FlatUpdate &Update : Result.flat_updates)
      Update.first += Prologue.size();
  }

  /// Which instructions share flat buffers.
  llvm::DenseMap<size_t, int64_t> FlatGroups;
  /// First and last, of each operation in the order of Storage.instructions().
  std::vector<std::pair<size_t, size_t>> InstructionsOf;
  /// Packed weights with the instructions that write them; the next one reads them.
  std::vector<std::pair<runtime::ValueId, size_t>> PackedWeights;
  /// What was measured to choose kernels.
  std::vector<std::string> Remarks;
  /// Copies of state that is also an output: done before the first instruction, kept to the end.
  std::vector<runtime::Instruction> Prologue;
  std::vector<runtime::ValueId> PinnedValues;
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
  auto IsStorable = [](Type T) {
    auto Tensor = dyn_cast<RankedTensorType>(T);
    return Tensor && Tensor.hasStaticShape() && toDType(Tensor.getElementType()) && !isTooLarge(Tensor.getShape());
  };
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
  if (!Function.getBody().hasOneBlock())
    return absl::InvalidArgumentError(
        absl::StrCat("@", Function.getSymName().str(), " must be one block to become a Program"));
  if (absl::Status Status = checkTypes(Function); !Status.ok())
    return Status;
  Lowering Run(Function, Target, Options, std::move(Code));
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
