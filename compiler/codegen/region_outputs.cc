#include "compiler/codegen/region_outputs.h"

#include "compiler/codegen/region_emitter.h"

using namespace mlir;

namespace mpc::codegen {

static bool isShared(Extent E) { return E == Extent::PerColumn || E == Extent::Single; }

RegionOutputs::RegionOutputs(FusionOp Fusion, const RegionPlan &Plan) : Plan(Plan) {
  for (auto [Index, V] : llvm::enumerate(cast<YieldOp>(Fusion.getBody().front().getTerminator()).getValues()))
    Outputs.push_back({V, static_cast<unsigned>(Index), Plan.extent(V), Plan.available(V)});
}

// A sum of two of the region's inputs.
static bool isSumOfInputs(const RegionPlan &Plan, Value V) {
  auto IsInput = [&](Value Operand) {
    Operation *Op = Operand.getDefiningOp();
    return !Op || !llvm::is_contained(Plan.body(), Op);
  };
  auto Sum = V.getDefiningOp<AddOp>();
  return Sum && cast<RankedTensorType>(V.getType()).getElementType().isF32() &&
         llvm::all_of(Sum->getOperands(), IsInput);
}

void RegionOutputs::putOffSums() {
  for (unsigned Sweep = 0; Sweep < Plan.numSweeps(); ++Sweep) {
    Availability Last{Sweep, Plan.numPhases(Sweep) - 1};
    auto IsHere = [&](const Output &O) { return O.extent == Extent::Full && O.when.sweep == Sweep; };
    if (llvm::all_of(Outputs,
                     [&](const Output &O) { return !IsHere(O) || O.when == Last || isSumOfInputs(Plan, O.value); }))
      for (Output &O : Outputs)
        if (IsHere(O))
          O.when = Last;
  }
}

const RegionOutputs::Output *RegionOutputs::storedBefore(Value V, Availability Now) const {
  for (const Output &O : Outputs) {
    bool Before = isShared(O.extent) ? O.when.sweep > 0 && O.when.sweep <= Now.sweep : O.when < Now;
    if (O.value == V && Before)
      return &O;
  }
  return nullptr;
}

bool RegionOutputs::isCombined(const Output &O, unsigned Sweep) const {
  if (!isShared(O.extent) || !Plan.endsInCombination(Sweep))
    return false;
  return O.when.sweep == Sweep + 1 || (O.when.sweep == 0 && Sweep == 0);
}

// Whether the operation's reductions give V, rather than its elements.
bool RegionOutputs::isReduced(Value V) const {
  auto Fusible = V.getDefiningOp<FusibleOpInterface>();
  return Fusible && !Fusible.getReductions().empty() && Plan.extent(V) != Extent::Full;
}

void RegionOutputs::collect(Value V, Availability At, llvm::SetVector<Value> &Inputs, DenseSet<Value> &Seen) const {
  if (!Seen.insert(V).second)
    return;
  Operation *Op = V.getDefiningOp();
  if (!Op || !llvm::is_contained(Plan.body(), Op)) {
    Inputs.insert(V);
    return;
  }
  if (storedBefore(V, At) || isReduced(V))
    return;
  for (Value Operand : Op->getOperands())
    collect(Operand, At, Inputs, Seen);
}

llvm::SetVector<Value> RegionOutputs::inputsBehind(ArrayRef<Value> Values, Availability At) const {
  llvm::SetVector<Value> Inputs;
  DenseSet<Value> Seen;
  for (Value V : Values)
    collect(V, At, Inputs, Seen);
  return Inputs;
}

llvm::SetVector<Value> RegionOutputs::inputsRead(Availability At) const {
  SmallVector<Value> Wanted;
  for (const RegionPlan::Step &S : Plan.steps())
    if (S.when == At)
      llvm::append_range(Wanted, S.op->getOperands());
  for (const Output &O : Outputs)
    if (O.when == At && (!isShared(O.extent) || (At.sweep == 0 && !Plan.endsInCombination(0))))
      Wanted.push_back(O.value);
  return inputsBehind(Wanted, At);
}

llvm::SetVector<Value> RegionOutputs::inputsCombined(unsigned Sweep) const {
  SmallVector<Value> Wanted;
  for (const RegionPlan::Step &S : Plan.steps())
    if (S.when.sweep == Sweep && S.reduction.axis != Axis::Row)
      for (Value Operand : S.op->getOperands())
        if (isShared(Plan.extent(Operand)))
          Wanted.push_back(Operand);
  for (const Output &O : Outputs)
    if (isCombined(O, Sweep))
      Wanted.push_back(O.value);
  return inputsBehind(Wanted, {Sweep, 0});
}

// An output of columns may lie over an input that no sweep after its combination reads. One block of the combination
// reads and writes each column.
static bool mayAliasColumns(const RegionPlan &Plan, const RegionOutputs &Outputs, const RegionOutputs::Output &O,
                            Value Input) {
  std::optional<unsigned> StoredAfter;
  for (unsigned Sweep = 0; Sweep < Plan.numSweeps(); ++Sweep) {
    if (StoredAfter) {
      for (unsigned Phase = 0; Phase < Plan.numPhases(Sweep); ++Phase)
        if (Outputs.inputsRead({Sweep, Phase}).contains(Input))
          return false;
      if (Outputs.inputsCombined(Sweep).contains(Input))
        return false;
    } else if (Outputs.isCombined(O, Sweep)) {
      StoredAfter = Sweep;
    }
  }
  return StoredAfter.has_value();
}

bool mayAlias(FusionOp Fusion, const RegionPlan &Plan, unsigned Output, unsigned Input) {
  RegionOutputs Outputs(Fusion, Plan);
  const RegionOutputs::Output &O = Outputs.all()[Output];
  Value Argument = Fusion.getBody().front().getArgument(Input);
  if (Argument.getType() != O.value.getType() || Plan.extent(Argument) != O.extent || O.extent == Extent::Single)
    return false;
  if (O.extent == Extent::PerColumn)
    return mayAliasColumns(Plan, Outputs, O, Argument);
  for (unsigned Sweep = O.when.sweep; Sweep < Plan.numSweeps(); ++Sweep)
    for (unsigned Phase = 0; Phase < Plan.numPhases(Sweep); ++Phase)
      if (Availability At{Sweep, Phase}; O.when < At && Outputs.inputsRead(At).contains(Argument))
        return false;
  return true;
}

} // namespace mpc::codegen
