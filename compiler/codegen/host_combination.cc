#include "compiler/codegen/host_conversion.h"
#include "compiler/codegen/host_function.h"
#include "compiler/codegen/host_sweep.h"

using namespace mlir;

namespace mpc::codegen {

namespace {

class Combination {
public:
  Combination(HostFusion &region, HostFunction &f, unsigned sweep)
      : region(region), schedule(region.schedule), f(f), sweep(sweep), body(region.plan, convert),
        where(region, f, sweep) {}

  void emit(bool reduces);

private:
  using Partials = HostWorkspace::Partials;
  void prepare(bool reduces);
  void finish(const FusionPlan::Step &step, llvm::ArrayRef<llvm::Value *> accumulated);
  void combineEverything();
  void visitColumns();
  void visitColumn(llvm::Value *column, llvm::Constant *mask);
  llvm::Value *combinedColumn(const Partials &p, llvm::Value *column);
  /// Stores the outputs, results and kept values of extent \p e at the position.
  void store(Extent e);

  HostFusion &region;
  const HostSchedule &schedule;
  HostFunction &f;
  unsigned sweep;
  HostConversion convert;
  BodyEmitter body;
  HostPosition where;
  llvm::SmallVector<const FusionPlan::Step *> everything, columns;
  llvm::SmallVector<FusionOutputs::Output> outputs;
  /// The values that later sweeps load: reduced results, and what each step keeps. Places of kept values are made when
  /// the values are known.
  llvm::SmallVector<std::pair<Value, HostWorkspace::SavedValue>> results;
  llvm::DenseMap<Operation *, llvm::SmallVector<HostWorkspace::SavedValue>> kept;
};

} // namespace

static bool isOutput(const FusionOutputs &outputs, Value v) {
  return llvm::any_of(outputs.all(), [&](const FusionOutputs::Output &o) { return o.value == v; });
}

void Combination::prepare(bool reduces) {
  for (Operation *op : region.plan.getBody())
    body.setFirstKept(op, region.workspace.kept(op).size());
  for (const FusionPlan::Step &step : region.plan.getSteps())
    if (reduces && step.when.sweep == sweep && step.reduction.axis != Axis::Row)
      (step.reduction.axis == Axis::All ? everything : columns).push_back(&step);
  for (const FusionOutputs::Output &o : region.outputs.all())
    if (reduces ? region.outputs.isCombined(o, sweep) : o.extent == Extent::PerColumn || o.extent == Extent::Single)
      outputs.push_back(o);
  for (auto *steps : {&everything, &columns})
    for (const FusionPlan::Step *step : *steps)
      for (Value result : step->op->getResults())
        if (region.plan.available(result) == Availability{sweep + 1, 0} && !result.use_empty() &&
            region.plan.extent(result) != Extent::Full && !isOutput(region.outputs, result))
          results.push_back({result, region.workspace.addReduced(result, region.plan.extent(result))});
}

void Combination::finish(const FusionPlan::Step &step, ArrayRef<llvm::Value *> accumulated) {
  body.forgetKept(step.op);
  body.finish(step, accumulated);
  SmallVector<HostWorkspace::SavedValue> &saved = kept[step.op];
  Extent e = step.reduction.axis == Axis::All ? Extent::Single : Extent::PerColumn;
  while (saved.size() < body.kept(step.op).size())
    saved.push_back(region.workspace.addKept(step.op, e));
}

void Combination::store(Extent e) {
  SmallVector<llvm::Value *> values;
  for (const FusionOutputs::Output &o : outputs)
    if (o.extent == e)
      values.push_back(body.stored(o.value));
  for (auto [result, saved] : results)
    if (saved.extent == e)
      where.store(saved, body.stored(result));
  for (const FusionPlan::Step *step : e == Extent::Single ? everything : columns)
    for (auto [saved, value] : llvm::zip_equal(kept[step->op], body.kept(step->op)))
      where.store(saved, value.value());
  for (auto [o, value] :
       llvm::zip_equal(llvm::make_filter_range(outputs, [&](const auto &o) { return o.extent == e; }), values))
    where.store(o, value);
}

void Combination::combineEverything() {
  llvm::IRBuilder<> &b = f.builder();
  where.setAnchor(Extent::Single, f.placeAnchor());
  body.moveTo(where);
  for (const FusionPlan::Step *step : everything) {
    SmallVector<llvm::Value *> values;
    for (const Partials &p : region.workspace.partials(*step)) {
      llvm::Type *t = identity(p.how)->getType();
      llvm::AllocaInst *sum = f.variable(t);
      b.CreateStore(identity(p.how), sum);
      f.loop(f.index(0), f.index(schedule.tiles()), 1, [&](llvm::Value *tile) {
        llvm::Value *partial = b.CreateLoad(t, b.CreateGEP(t, f.workspace(p.offset), tile));
        b.CreateStore(combine(p.how, b.CreateLoad(t, sum), partial), sum);
      });
      values.push_back(b.CreateLoad(t, sum));
    }
    where.setAnchor(Extent::Single, f.placeAnchor());
    finish(*step, values);
  }
  where.setAnchor(Extent::Single, f.placeAnchor());
  // Every block computes single values, for its columns may need them; one stores them.
  body.moveTo(where);
  for (const FusionOutputs::Output &o : outputs)
    if (o.extent == Extent::Single)
      body.stored(o.value);
  f.when(combinationBlocks(region) == 1 ? b.getTrue() : b.CreateICmpEQ(f.tile(), f.index(0)),
         [&] { store(Extent::Single); });
}

llvm::Value *Combination::combinedColumn(const Partials &p, llvm::Value *column) {
  llvm::IRBuilder<> &b = f.builder();
  llvm::Type *t = identity(p.how)->getType();
  llvm::AllocaInst *sum = f.variable(llvm::FixedVectorType::get(t, schedule.lanes));
  b.CreateStore(where.lanes(identity(p.how)), sum);
  f.loop(f.index(0), f.index(schedule.rowTiles()), 1, [&](llvm::Value *tile) {
    llvm::Value *first = b.CreateAdd(b.CreateMul(tile, f.index(schedule.width)), column);
    f.loop(f.index(0), f.index(schedule.copies), 1, [&](llvm::Value *copy) {
      llvm::Value *at = b.CreateAdd(first, b.CreateMul(copy, f.index(schedule.columns)));
      llvm::Value *partial = where.loadVector(t, b.CreateGEP(t, f.workspace(p.offset), at));
      b.CreateStore(combine(p.how, b.CreateLoad(sum->getAllocatedType(), sum), partial), sum);
    });
  });
  return b.CreateLoad(sum->getAllocatedType(), sum);
}

void Combination::visitColumn(llvm::Value *column, llvm::Constant *mask) {
  where.setColumn(column, mask);
  body.moveTo(where);
  for (const FusionPlan::Step *step : columns) {
    SmallVector<llvm::Value *> values;
    for (const Partials &p : region.workspace.partials(*step))
      values.push_back(combinedColumn(p, column));
    finish(*step, values);
  }
  store(Extent::PerColumn);
}

void Combination::visitColumns() {
  llvm::IRBuilder<> &b = f.builder();
  int64_t blocks = combinationBlocks(region), tail = schedule.columns % schedule.lanes;
  llvm::Value *begin = f.index(0), *end = f.index(schedule.columns - tail);
  llvm::Value *isLast = b.getTrue();
  if (blocks > 1) {
    begin = b.CreateMul(f.tile(), f.index(HostSchedule::columnsPerCombination));
    end = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, end,
                                  b.CreateAdd(begin, f.index(HostSchedule::columnsPerCombination)));
    isLast = b.CreateICmpEQ(f.tile(), f.index(blocks - 1));
  }
  f.loop(begin, end, schedule.lanes, [&](llvm::Value *column) { visitColumn(column, nullptr); });
  if (tail != 0)
    f.when(isLast, [&] { visitColumn(f.index(schedule.columns - tail), firstLanes(schedule.lanes, tail)); });
}

void Combination::emit(bool reduces) {
  prepare(reduces);
  combineEverything();
  bool hasColumns = !columns.empty() ||
                    llvm::any_of(outputs, [](const FusionOutputs::Output &o) { return o.extent == Extent::PerColumn; });
  if (hasColumns)
    visitColumns();
}

int64_t combinationBlocks(const HostFusion &region) {
  bool hasColumns =
      llvm::any_of(region.plan.getSteps(),
                   [](const FusionPlan::Step &s) { return s.reduction.axis == Axis::Column; }) ||
      llvm::any_of(region.outputs.all(), [](const FusionOutputs::Output &o) { return o.extent == Extent::PerColumn; });
  return hasColumns ? llvm::divideCeil(region.schedule.columns, HostSchedule::columnsPerCombination) : 1;
}

void emitCombination(HostFusion &region, HostFunction &f, unsigned sweep) {
  Combination(region, f, sweep).emit(/*reduces=*/true);
}

void emitSharedOutputs(HostFusion &region, HostFunction &f) { Combination(region, f, 0).emit(/*reduces=*/false); }

} // namespace mpc::codegen
