#include "compiler/codegen/gpu_row_sweep.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace mpc::codegen {

RowSweep::RowSweep(GpuRegion &Region, const Sweep &S, const Sweep &Next, const SweepTiling &T)
    : Region(Region), S(S), Next(Next), T(T), Rows(Region.plan.rows()), Columns(Region.plan.columns()),
      F(Region, T.blocks(), T.threads), B(F.builder()), Lanes(T.vector > 1 ? T.vector : 0),
      ColumnAccumulators(accumulatorsOf(S.columnSteps)), Accumulators(accumulatorsOf(S.allSteps)) {
  Lane = T.teams() == 1 ? F.thread() : B.CreateURem(F.thread(), F.index(T.lanes));
  Team = T.teams() == 1 ? F.index(0) : B.CreateUDiv(F.thread(), F.index(T.lanes));
  TileBegin = B.CreateNUWMul(B.CreateURem(F.block(), F.index(T.columnTiles)), F.index(T.width()));
  RowBlock = B.CreateUDiv(F.block(), F.index(T.columnTiles));
  RowBegin = B.CreateNUWMul(RowBlock, F.index(T.rowsPerBlock));
  RowEnd = F.minimum(B.CreateNUWAdd(RowBegin, F.index(T.rowsPerBlock)), F.index(Rows));
  Sums = variables(Accumulators);
  for (unsigned I = 0; T.resident && I < T.slots; ++I)
    ColumnSums.push_back(variables(ColumnAccumulators));
  if (!ColumnAccumulators.empty() && (T.rowBlocks > 1 || !T.resident || !Accumulators.empty())) {
    Left.columnParts = T.rowBlocks;
    for (const Accumulator &A : ColumnAccumulators)
      Left.columns.push_back(
          Region.allocate(T.rowBlocks * Columns * A.type()->getPrimitiveSizeInBits().getFixedValue() / 8));
  }
}

Partials RowSweep::emit() {
  if (T.resident)
    Resident = placesAt(TileBegin);
  else
    clearPartials();
  // With one slot, the thread keeps the same columns for the whole sweep.
  if (T.resident && T.slots == 1)
    ColumnAnchor = F.placeAnchor();
  int64_t AtOnce = int64_t{T.ahead} * T.teams();
  if (T.rowsPerBlock <= AtOnce)
    visitRows(RowBegin);
  else
    F.loop(RowBegin, RowEnd, F.index(AtOnce), [&](llvm::Value *First) { visitRows(First); });
  if (T.resident && !ColumnAccumulators.empty())
    reduceColumns();
  if (!Accumulators.empty())
    reduceAll();
  F.finish();
  return std::move(Left);
}

RowSweep::Variables RowSweep::variables(ArrayRef<Accumulator> Of) {
  Variables Made;
  for (const Accumulator &A : Of) {
    llvm::Value *Nothing = spread(identity(A.how), Lanes);
    Made.push_back(F.variable(Nothing->getType(), Nothing));
  }
  return Made;
}

void RowSweep::add(const Accumulator &A, llvm::AllocaInst *Sum, Float Term, llvm::Value *Mask) {
  F.set(Sum, combine(A.how, F.get(Sum), maskedTerm(A, Term, Mask, Lanes)));
}

SmallVector<llvm::Value *> RowSweep::acrossTeam(ArrayRef<Accumulator> Of, const Variables &Sums, unsigned Lanes) {
  SmallVector<llvm::Value *> Values;
  for (auto [A, Sum] : llvm::zip_equal(Of, Sums))
    Values.push_back(F.acrossTeam(A.how, GpuFunction::acrossVector(A.how, F.get(Sum)), Lanes));
  return Values;
}

// A team beyond the last row visits that once more, and what it computes is not used: barriers and shuffles take all.
RowSweep::Row RowSweep::rowAt(llvm::Value *First, unsigned Number) {
  bool Even = Rows % T.rowsPerBlock == 0 && T.rowsPerBlock % (T.ahead * T.teams()) == 0;
  llvm::Value *Index = B.CreateNUWAdd(B.CreateNUWAdd(First, F.index(Number * T.teams())), Team);
  Row R;
  R.inside = Even ? B.getTrue() : F.isBelow(Index, RowEnd);
  R.index = Even ? Index : F.minimum(Index, F.index(Rows - 1));
  R.at = std::make_unique<RowPosition>(F, R.index, F.index(0), /*Lanes=*/0);
  if (T.resident)
    R.resident = slotsAt(R, Resident);
  return R;
}

RowSweep::Places RowSweep::placesAt(llvm::Value *Begin) {
  Places Made;
  for (unsigned I = 0; I < T.slots; ++I) {
    int64_t First = int64_t{I} * T.lanes * T.vector;
    int64_t Past = First + int64_t{T.lanes} * T.vector;
    bool Whole = Columns % T.width() == 0 || (T.resident && T.columnTiles == 1 && Past <= Columns);
    llvm::Value *Column =
        B.CreateNUWAdd(B.CreateNUWAdd(Begin, F.index(First)), B.CreateNUWMul(Lane, F.index(T.vector)));
    llvm::Value *Inside = Whole ? B.getTrue() : F.isBelow(Column, F.index(Columns));
    Made.push_back({Whole ? Column : F.minimum(Column, F.index(Columns - T.vector)), Inside, I});
  }
  return Made;
}

RowSweep::Slots RowSweep::slotsAt(const Row &R, ArrayRef<Place> At) {
  Slots Made;
  for (const Place &P : At) {
    Made.push_back({P, std::make_unique<RowPosition>(F, R.index, P.column, Lanes, ColumnAnchor)});
    Made.back().at->preload(S.elements);
  }
  return Made;
}

void RowSweep::eachSlot(const Row &R, llvm::function_ref<void(const Slot &)> Visit) {
  if (T.resident) {
    for (const Slot &At : R.resident)
      Visit(At);
    return;
  }
  F.loop(F.index(0), F.index(Columns), F.index(T.width()), [&](llvm::Value *Begin) {
    for (const Slot &At : slotsAt(R, placesAt(Begin)))
      Visit(At);
  });
}

void RowSweep::visitRows(llvm::Value *First) {
  SmallVector<Row, 4> Visited;
  for (unsigned I = 0; I < T.ahead; ++I)
    Visited.push_back(rowAt(First, I));
  for (const Row &R : Visited) {
    for (const Sweep::Steps &Steps : S.rowPasses)
      reduceRow(R, Steps);
    eachSlot(R, [&](const Slot &At) { lastPass(R, At); });
    storeOfRow(R);
  }
}

void RowSweep::reduceRow(const Row &R, ArrayRef<const Sweep::Step *> Steps) {
  BodyEmitter &Body = F.body();
  SmallVector<Accumulator> OfRow = accumulatorsOf(Steps);
  Variables RowSums = variables(OfRow);
  eachSlot(R, [&](const Slot &At) {
    Body.moveTo(*At.at);
    eachTerm(Body, Steps, [&](unsigned Number, Float Term) { add(OfRow[Number], RowSums[Number], Term, At.inside); });
  });
  SmallVector<llvm::Value *> Values = acrossTeam(OfRow, RowSums, T.lanes);
  Body.moveTo(*R.at);
  finishSteps(Body, Steps, Values);
  for (const Sweep::Step *Step : Steps) {
    auto &Kept = Region.kept[Step->op];
    while (Body.firstKept(Step->op) == 0 && Kept.size() < Body.kept(Step->op).size())
      Kept.push_back({Extent::PerRow});
  }
}

void RowSweep::lastPass(const Row &R, const Slot &At) {
  BodyEmitter &Body = F.body();
  Body.moveTo(*At.at);
  addToColumns(R, At);
  llvm::Value *Inside = B.CreateAnd(R.inside, At.inside);
  eachTerm(Body, S.allSteps,
           [&](unsigned Number, Float Term) { add(Accumulators[Number], Sums[Number], Term, Inside); });
  auto Stores = storesOf(Extent::Full);
  F.when(Inside, [&] {
    for (auto [Base, V] : Stores)
      At.at->storeTo(Base, V, Extent::Full);
  });
}

SmallVector<std::pair<llvm::Value *, llvm::Value *>> RowSweep::storesOf(Extent E) {
  SmallVector<std::pair<llvm::Value *, llvm::Value *>> Stores;
  for (unsigned Output : S.stores)
    if (Value V = Region.yielded(Output); Region.plan.extent(V) == E)
      Stores.push_back({F.operand(Region.numInputs() + Output), F.body().stored(V)});
  return Stores;
}

void RowSweep::storeOfRow(const Row &R) {
  F.body().moveTo(*R.at);
  auto Stores = storesOf(Extent::PerRow);
  if (Stores.empty())
    return;
  // The place may be that of an input, which other threads of the team read.
  F.barrier();
  F.when(B.CreateAnd(R.inside, B.CreateICmpEQ(Lane, F.index(0))), [&] {
    for (auto [Base, V] : Stores)
      R.at->storeTo(Base, V, Extent::PerRow);
  });
}

void RowSweep::reduceAll() {
  SmallVector<llvm::Value *> Values = acrossTeam(Accumulators, Sums, T.threads);
  if (T.blocks() == 1 && ColumnAccumulators.empty())
    return finishAll(F, S.allSteps, Next, Values);
  leaveAll(F, T.blocks(), Values, Left);
}

Partials emitRowSweep(GpuRegion &Region, const Sweep &S, const Sweep &Next, const SweepTiling &T) {
  return RowSweep(Region, S, Next, T).emit();
}

} // namespace mpc::codegen
