#include "compiler/lowering/storage_assignment.h"

#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/step_signature.h"
#include "compiler/lowering/lowering.h"

using namespace mlir;

namespace mpc::compiler {

StorageAssignment::StorageAssignment(func::FuncOp Function, const runtime::Device *Target) : Target(Target) {
  for (Operation &Op : Function.getBody().front().without_terminator()) {
    if (isa<ConstantOp>(Op))
      continue;
    if (auto View = dyn_cast<ViewLikeOpInterface>(Op)) {
      Parent[View.getViewDest()] = root(View.getViewSource());
      continue;
    }
    Position[&Op] = Instructions.size();
    Instructions.push_back(&Op);
  }
  placeStateInPlace(Function);

  size_t End = Instructions.size();
  auto Extend = [&](Value Root, size_t At) {
    auto [It, New] = Lives.try_emplace(Root, At, At);
    if (!New) {
      It->second.first = std::min(It->second.first, At);
      It->second.second = std::max(It->second.second, At);
    }
  };
  // Inputs are copied in before the first instruction.
  for (BlockArgument Argument : Function.getArguments())
    Extend(root(Argument), 0);
  for (auto [Index, Op] : llvm::enumerate(Instructions)) {
    for (Value Operand : Op->getOperands())
      Extend(root(Operand), Index);
    for (Value Result : Op->getResults())
      Extend(root(Result), Index);
  }
  for (Value Result : Function.getBody().front().getTerminator()->getOperands())
    Extend(root(Result), End);
  reuseDyingOperands();
}

Value StorageAssignment::root(Value V) const {
  for (auto It = Parent.find(V); It != Parent.end(); It = Parent.find(V))
    V = It->second;
  return V;
}

std::pair<size_t, size_t> StorageAssignment::life(Value Root) const {
  auto It = Lives.find(Root);
  return It == Lives.end() ? std::pair<size_t, size_t>(0, 0) : It->second;
}

std::vector<RegionAlias> StorageAssignment::aliases(FusionOp Fusion) const {
  std::vector<RegionAlias> Pairs;
  for (auto [Output, Written] : llvm::enumerate(Fusion.getOutputs()))
    for (auto [Input, Read] : llvm::enumerate(Fusion.getInputs()))
      if (root(Written) == root(Read))
        Pairs.emplace_back(Output, Input);
  return Pairs;
}

bool mayAlias(Operation *Op, unsigned Result, unsigned Operand, const runtime::Device *Target) {
  // A result begins as its operand.
  if (isa<RepeatOp>(Op))
    return Result == Operand;
  if (auto Fusion = dyn_cast<FusionOp>(Op)) {
    llvm::Expected<codegen::RegionPlan> Plan = codegen::RegionPlan::of(Fusion);
    if (!Plan) {
      llvm::consumeError(Plan.takeError());
      return false;
    }
    return codegen::mayAlias(Fusion, *Plan, Result, Operand);
  }
  StringRef Kernel = Op->getName().stripDialect();
  return Target && Target->MayAlias(std::string_view(Kernel.data(), Kernel.size()), Result, Operand);
}

std::string StorageAssignment::obstacleInSequence(OpResult Update, Value Old) const {
  auto Reads = [&](Value Operand) { return root(Operand) == Old; };
  if (llvm::count_if(Update.getOwner()->getOperands(), Reads) > 1)
    return nameWithPath(Update.getOwner()) + " reads the old value twice";
  for (Value Operand : llvm::make_filter_range(Update.getOwner()->getOperands(), Reads))
    if (Operand.getType() != Update.getType())
      return nameWithPath(Update.getOwner()) + " reads the old value in another shape";
  return "";
}

std::string StorageAssignment::obstacleInside(OpResult Update, Value Old) const {
  Operation *Writer = Update.getOwner();
  unsigned Index = Update.getResultNumber();
  if (isSequence(Writer->getParentOp()))
    if (std::string Obstacle = obstacleInSequence(Update, Old); !Obstacle.empty())
      return Obstacle;
  if (isa<FusionOp>(Writer) || isSequence(Writer->getParentOp())) {
    for (auto [Other, Operand] : llvm::enumerate(Writer->getOperands()))
      if (root(Operand) == Old && !mayAlias(Writer, Index, Other, Target))
        return nameWithPath(Writer) + " reads the old value when it has begun to write the new one";
    return "";
  }
  if (!Writer->hasTrait<StateUpdate>())
    return nameWithPath(Writer) + " is no in-place update";
  // A shadow follows the parameter and has no operand of its own.
  bool Shadow = isShadow(Update);
  if (!Shadow && root(Writer->getOperand(Index)) != Old)
    return nameWithPath(Writer) + " does not update this state";
  for (auto [Other, Operand] : llvm::enumerate(Writer->getOperands()))
    if ((Shadow || Other != Index) && root(Operand) == Old)
      return nameWithPath(Writer) + (Shadow ? " reads what it writes" : " reads the old value twice");
  return "";
}

std::string StorageAssignment::inPlaceObstacle(OpResult Update, Value Old) const {
  Operation *Writer = Update.getOwner();
  if (std::string Obstacle = obstacleInside(Update, Old); !Obstacle.empty())
    return Obstacle;
  size_t WriterPosition = Position.lookup(Writer);
  for (Operation *Reader : Instructions) {
    if (Reader == Writer || Position.lookup(Reader) < WriterPosition)
      continue;
    for (Value Operand : Reader->getOperands())
      if (root(Operand) == Old)
        return nameWithPath(Reader) + " reads the old value after the update";
  }
  return "";
}

void StorageAssignment::placeStateInPlace(func::FuncOp Function) {
  StepSignature Signature(Function);
  Operation *Return = Function.getBody().front().getTerminator();
  llvm::DenseSet<Value> Returned;
  for (auto [Index, Value] : llvm::enumerate(Return->getOperands())) {
    std::optional<unsigned> Argument = Signature.argumentOf(Index);
    if (!Argument || root(Value) == Function.getArgument(*Argument))
      continue;
    mlir::Value Old = Function.getArgument(*Argument);
    auto Update = dyn_cast<OpResult>(Value);
    std::string Obstacle = !Update                          ? "the new value is another state or an input"
                           : !Returned.insert(Value).second ? "the new value becomes several states"
                           : Parent.contains(Value) || isa<ConstantOp>(Update.getOwner())
                               ? "the new value is a view or a constant"
                               : inPlaceObstacle(Update, Old);
    if (Obstacle.empty())
      Parent[Value] = Old;
    else
      Copies.push_back({static_cast<unsigned>(Index), Obstacle});
  }
}

void StorageAssignment::reuseDyingOperands() {
  for (auto [Index, Op] : llvm::enumerate(Instructions)) {
    for (OpResult Result : Op->getResults()) {
      if (root(Result) != Result || Result.use_empty())
        continue;
      for (OpOperand &Operand : Op->getOpOperands()) {
        Value Candidate = root(Operand.get());
        auto Life = Lives.find(Candidate);
        bool Temporary = !isa<BlockArgument>(Candidate) && !Candidate.getDefiningOp<ConstantOp>();
        bool Dies = Life != Lives.end() && Life->second.second == Index && Life->second.first < Index;
        bool Once = llvm::count_if(Op->getOperands(), [&](Value V) { return root(V) == Candidate; }) == 1;
        bool SameSpec = Operand.get().getType() == Result.getType() && Candidate.getType() == Result.getType();
        if (!Temporary || !Dies || !Once || !SameSpec ||
            !mayAlias(Op, Result.getResultNumber(), Operand.getOperandNumber(), Target))
          continue;
        Life->second.second = Lives.lookup(Result).second;
        Lives.erase(Result);
        Parent[Result] = Candidate;
        break;
      }
    }
  }
}

} // namespace mpc::compiler
