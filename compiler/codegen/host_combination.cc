#include "compiler/codegen/host_conversion.h"
#include "compiler/codegen/host_function.h"
#include "compiler/codegen/host_sweep.h"

using namespace mlir;

namespace mpc::codegen {

namespace {

class Combination {
public:
  Combination(HostRegion &Region, HostFunction &F, unsigned Sweep)
      : Region(Region), Schedule(Region.schedule), F(F), Sweep(Sweep), Body(Region.plan, Convert),
        Where(Region, F, Sweep) {}

  void emit(bool Reduces);

private:
  using Partials = HostWorkspace::Partials;
  void prepare(bool Reduces);
  void finish(const RegionPlan::Step &Step, llvm::ArrayRef<llvm::Value *> Accumulated);
  void combineEverything();
  void visitColumns();
  void visitColumn(llvm::Value *Column, llvm::Constant *Mask);
  llvm::Value *combinedColumn(const Partials &P, llvm::Value *Column);
  /// Stores the outputs, results and kept values of extent \p E at the position.
  void store(Extent E);

  HostRegion &Region;
  const HostSchedule &Schedule;
  HostFunction &F;
  unsigned Sweep;
  HostConversion Convert;
  BodyEmitter Body;
  HostPosition Where;
  llvm::SmallVector<const RegionPlan::Step *> Everything, Columns;
  llvm::SmallVector<RegionOutputs::Output> Outputs;
  /// The values that later sweeps load: reduced results, and what each step keeps. Slots of kept values are made when
  /// the values are known.
  llvm::SmallVector<std::pair<Value, HostWorkspace::Slot>> Results;
  llvm::DenseMap<Operation *, llvm::SmallVector<HostWorkspace::Slot>> Kept;
};

} // namespace

static bool isOutput(const RegionOutputs &Outputs, Value V) {
  return llvm::any_of(Outputs.all(), [&](const RegionOutputs::Output &O) { return O.value == V; });
}

void Combination::prepare(bool Reduces) {
  for (Operation *Op : Region.plan.body())
    Body.setFirstKept(Op, Region.workspace.kept(Op).size());
  for (const RegionPlan::Step &Step : Region.plan.steps())
    if (Reduces && Step.when.sweep == Sweep && Step.reduction.axis != Axis::Row)
      (Step.reduction.axis == Axis::All ? Everything : Columns).push_back(&Step);
  for (const RegionOutputs::Output &O : Region.outputs.all())
    if (Reduces ? Region.outputs.isCombined(O, Sweep) : O.extent == Extent::PerColumn || O.extent == Extent::Single)
      Outputs.push_back(O);
  for (auto *Steps : {&Everything, &Columns})
    for (const RegionPlan::Step *Step : *Steps)
      for (Value Result : Step->op->getResults())
        if (Region.plan.available(Result) == Availability{Sweep + 1, 0} && !Result.use_empty() &&
            Region.plan.extent(Result) != Extent::Full && !isOutput(Region.outputs, Result))
          Results.push_back({Result, Region.workspace.addReduced(Result, Region.plan.extent(Result))});
}

void Combination::finish(const RegionPlan::Step &Step, ArrayRef<llvm::Value *> Accumulated) {
  Body.forgetKept(Step.op);
  Body.finish(Step, Accumulated);
  SmallVector<HostWorkspace::Slot> &Slots = Kept[Step.op];
  Extent E = Step.reduction.axis == Axis::All ? Extent::Single : Extent::PerColumn;
  while (Slots.size() < Body.kept(Step.op).size())
    Slots.push_back(Region.workspace.addKept(Step.op, E));
}

void Combination::store(Extent E) {
  SmallVector<llvm::Value *> Values;
  for (const RegionOutputs::Output &O : Outputs)
    if (O.extent == E)
      Values.push_back(Body.stored(O.value));
  for (auto [Result, Slot] : Results)
    if (Slot.extent == E)
      Where.store(Slot, Body.stored(Result));
  for (const RegionPlan::Step *Step : E == Extent::Single ? Everything : Columns)
    for (auto [Slot, Value] : llvm::zip_equal(Kept[Step->op], Body.kept(Step->op)))
      Where.store(Slot, Value.value());
  for (auto [O, Value] :
       llvm::zip_equal(llvm::make_filter_range(Outputs, [&](const auto &O) { return O.extent == E; }), Values))
    Where.store(O, Value);
}

void Combination::combineEverything() {
  llvm::IRBuilder<> &B = F.builder();
  Where.setAnchor(Extent::Single, F.placeAnchor());
  Body.moveTo(Where);
  for (const RegionPlan::Step *Step : Everything) {
    SmallVector<llvm::Value *> Values;
    for (const Partials &P : Region.workspace.partials(*Step)) {
      llvm::Type *T = identity(P.how)->getType();
      llvm::AllocaInst *Sum = F.variable(T);
      B.CreateStore(identity(P.how), Sum);
      F.loop(F.index(0), F.index(Schedule.tiles()), 1, [&](llvm::Value *Tile) {
        llvm::Value *Partial = B.CreateLoad(T, B.CreateGEP(T, F.workspace(P.offset), Tile));
        B.CreateStore(combine(P.how, B.CreateLoad(T, Sum), Partial), Sum);
      });
      Values.push_back(B.CreateLoad(T, Sum));
    }
    Where.setAnchor(Extent::Single, F.placeAnchor());
    finish(*Step, Values);
  }
  Where.setAnchor(Extent::Single, F.placeAnchor());
  // Every block computes single values, for its columns may need them; one stores them.
  Body.moveTo(Where);
  for (const RegionOutputs::Output &O : Outputs)
    if (O.extent == Extent::Single)
      Body.stored(O.value);
  F.when(combinationBlocks(Region) == 1 ? B.getTrue() : B.CreateICmpEQ(F.tile(), F.index(0)),
         [&] { store(Extent::Single); });
}

llvm::Value *Combination::combinedColumn(const Partials &P, llvm::Value *Column) {
  llvm::IRBuilder<> &B = F.builder();
  llvm::Type *T = identity(P.how)->getType();
  llvm::AllocaInst *Sum = F.variable(llvm::FixedVectorType::get(T, Schedule.lanes));
  B.CreateStore(Where.lanes(identity(P.how)), Sum);
  F.loop(F.index(0), F.index(Schedule.rowTiles()), 1, [&](llvm::Value *Tile) {
    llvm::Value *First = B.CreateAdd(B.CreateMul(Tile, F.index(Schedule.width)), Column);
    F.loop(F.index(0), F.index(Schedule.copies), 1, [&](llvm::Value *Copy) {
      llvm::Value *At = B.CreateAdd(First, B.CreateMul(Copy, F.index(Schedule.columns)));
      llvm::Value *Partial = Where.loadVector(T, B.CreateGEP(T, F.workspace(P.offset), At));
      B.CreateStore(combine(P.how, B.CreateLoad(Sum->getAllocatedType(), Sum), Partial), Sum);
    });
  });
  return B.CreateLoad(Sum->getAllocatedType(), Sum);
}

void Combination::visitColumn(llvm::Value *Column, llvm::Constant *Mask) {
  Where.setColumn(Column, Mask);
  Body.moveTo(Where);
  for (const RegionPlan::Step *Step : Columns) {
    SmallVector<llvm::Value *> Values;
    for (const Partials &P : Region.workspace.partials(*Step))
      Values.push_back(combinedColumn(P, Column));
    finish(*Step, Values);
  }
  store(Extent::PerColumn);
}

void Combination::visitColumns() {
  llvm::IRBuilder<> &B = F.builder();
  int64_t Blocks = combinationBlocks(Region), Tail = Schedule.columns % Schedule.lanes;
  llvm::Value *Begin = F.index(0), *End = F.index(Schedule.columns - Tail);
  llvm::Value *IsLast = B.getTrue();
  if (Blocks > 1) {
    Begin = B.CreateMul(F.tile(), F.index(HostSchedule::columnsPerCombination));
    End = B.CreateBinaryIntrinsic(llvm::Intrinsic::smin, End,
                                  B.CreateAdd(Begin, F.index(HostSchedule::columnsPerCombination)));
    IsLast = B.CreateICmpEQ(F.tile(), F.index(Blocks - 1));
  }
  F.loop(Begin, End, Schedule.lanes, [&](llvm::Value *Column) { visitColumn(Column, nullptr); });
  if (Tail != 0)
    F.when(IsLast, [&] { visitColumn(F.index(Schedule.columns - Tail), firstLanes(Schedule.lanes, Tail)); });
}

void Combination::emit(bool Reduces) {
  prepare(Reduces);
  combineEverything();
  bool HasColumns = !Columns.empty() ||
                    llvm::any_of(Outputs, [](const RegionOutputs::Output &O) { return O.extent == Extent::PerColumn; });
  if (HasColumns)
    visitColumns();
}

int64_t combinationBlocks(const HostRegion &Region) {
  bool HasColumns =
      llvm::any_of(Region.plan.steps(), [](const RegionPlan::Step &S) { return S.reduction.axis == Axis::Column; }) ||
      llvm::any_of(Region.outputs.all(), [](const RegionOutputs::Output &O) { return O.extent == Extent::PerColumn; });
  return HasColumns ? llvm::divideCeil(Region.schedule.columns, HostSchedule::columnsPerCombination) : 1;
}

void emitCombination(HostRegion &Region, HostFunction &F, unsigned Sweep) {
  Combination(Region, F, Sweep).emit(/*Reduces=*/true);
}

void emitSharedOutputs(HostRegion &Region, HostFunction &F) { Combination(Region, F, 0).emit(/*Reduces=*/false); }

} // namespace mpc::codegen
