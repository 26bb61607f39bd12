// A sweep by rows: teams of threads reduce theirs, and columns are reduced over rows, teams and blocks.
#include "compiler/codegen/gpu_stages.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace mpc::codegen {

namespace {

class RowSweep {
public:
  RowSweep(GpuRegion &Region, const Sweep &S, const Sweep &Next, const SweepTiling &T);
  Partials emit();

private:
  /// Neighbouring columns that a thread has.
  struct Place {
    llvm::Value *column, *inside;
    unsigned number; ///< among the thread's
  };
  using Places = SmallVector<Place, 8>;
  /// Their elements of one row.
  struct Slot : Place {
    std::unique_ptr<RowPosition> at;
  };
  using Slots = SmallVector<Slot, 8>;
  /// A row of the thread's team, with its slots where they are resident.
  struct Row {
    llvm::Value *index, *inside;
    std::unique_ptr<RowPosition> at;
    Slots resident;
  };
  using Variables = SmallVector<llvm::AllocaInst *>;

  Variables variables(ArrayRef<Accumulator> Of);
  void add(const Accumulator &A, llvm::AllocaInst *Sum, Float Term, llvm::Value *Mask);

  Row rowAt(llvm::Value *First, unsigned Number);
  Places placesAt(llvm::Value *Begin);
  Slots slotsAt(const Row &R, ArrayRef<Place> At);
  void eachSlot(const Row &R, llvm::function_ref<void(const Slot &)> Visit);
  void visitRows(llvm::Value *First);
  void reduceRow(const Row &R, ArrayRef<const Sweep::Step *> Steps);
  void lastPass(const Row &R, const Slot &At);
  void addToColumns(const Row &R, const Slot &At);
  void storeOfRow(const Row &R);

  bool leavesColumns() const { return !Left.columns.empty(); }
  llvm::Value *partial(unsigned Number, llvm::Value *Column);
  void clearPartials();
  void reduceColumns();
  void reduceAll();

  GpuRegion &Region;
  const Sweep &S;
  const Sweep &Next;
  const SweepTiling &T;
  const int64_t Rows, Columns;
  GpuFunction F;
  llvm::IRBuilder<> &B;
  const unsigned Lanes;
  const SmallVector<Accumulator> ColumnAccumulators, Accumulators;
  llvm::Value *Lane, *Team, *TileBegin, *RowBlock, *RowBegin, *RowEnd;
  /// For each slot, one an accumulator of columns; those of rows that are not resident are in the workspace.
  SmallVector<Variables> ColumnSums;
  Variables Sums;
  Places Resident; ///< where they are the whole row or tile
  llvm::Instruction *ColumnAnchor = nullptr;
  Partials Left;
};

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
  // One slot: its columns are the thread's for good.
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
    unsigned Number = 0;
    for (const Sweep::Step *Step : Steps)
      for (Float Term : Body.terms(*Step)) {
        add(OfRow[Number], RowSums[Number], Term, At.inside);
        ++Number;
      }
  });
  SmallVector<llvm::Value *> Values;
  for (auto [A, Sum] : llvm::zip_equal(OfRow, RowSums))
    Values.push_back(F.acrossTeam(A.how, GpuFunction::acrossVector(A.how, F.get(Sum)), T.lanes));
  Body.moveTo(*R.at);
  ArrayRef<llvm::Value *> Rest = Values;
  for (const Sweep::Step *Step : Steps) {
    unsigned Taken = Step->reduction.accumulators.size();
    Body.finish(*Step, Rest.take_front(Taken));
    Rest = Rest.drop_front(Taken);
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
  unsigned Number = 0;
  for (const Sweep::Step *Step : S.allSteps)
    for (Float Term : Body.terms(*Step)) {
      add(Accumulators[Number], Sums[Number], Term, Inside);
      ++Number;
    }
  SmallVector<std::pair<llvm::Value *, llvm::Value *>> Stores;
  for (unsigned Output : S.stores)
    if (Value V = Region.yielded(Output); Region.plan.extent(V) == Extent::Full)
      Stores.push_back({F.operand(Region.numInputs() + Output), Body.stored(V)});
  F.when(Inside, [&] {
    for (auto [Base, V] : Stores)
      At.at->storeTo(Base, V, Extent::Full);
  });
}

// Columns beyond the last have sums too, which nobody reads; the workspace has no room for theirs.
void RowSweep::addToColumns(const Row &R, const Slot &At) {
  SmallVector<std::pair<llvm::Value *, llvm::Value *>> Stores;
  unsigned Number = 0;
  for (const Sweep::Step *Step : S.columnSteps)
    for (Float Term : F.body().terms(*Step)) {
      const Accumulator &A = ColumnAccumulators[Number];
      if (T.resident) {
        add(A, ColumnSums[At.number][Number++], Term, R.inside);
        continue;
      }
      llvm::Value *Address = partial(Number++, At.column);
      llvm::Value *More = maskedTerm(A, Term, R.inside, Lanes);
      Stores.push_back({combine(A.how, F.load(More->getType(), Address), More), Address});
    }
  F.when(At.inside, [&] {
    for (auto [V, Address] : Stores)
      F.store(V, Address);
  });
}

void RowSweep::storeOfRow(const Row &R) {
  SmallVector<std::pair<llvm::Value *, llvm::Value *>> Stores;
  F.body().moveTo(*R.at);
  for (unsigned Output : S.stores)
    if (Value V = Region.yielded(Output); Region.plan.extent(V) == Extent::PerRow)
      Stores.push_back({F.operand(Region.numInputs() + Output), F.body().stored(V)});
  if (Stores.empty())
    return;
  // The place may be that of an input, which other threads of the team read.
  F.barrier();
  F.when(B.CreateAnd(R.inside, B.CreateICmpEQ(Lane, F.index(0))), [&] {
    for (auto [Base, V] : Stores)
      R.at->storeTo(Base, V, Extent::PerRow);
  });
}

llvm::Value *RowSweep::partial(unsigned Number, llvm::Value *Column) {
  llvm::Value *At = B.CreateNUWAdd(B.CreateNUWMul(RowBlock, F.index(Columns)), Column);
  return F.element(F.workspace(Left.columns[Number]), ColumnAccumulators[Number].type(), At);
}

// Each column's thread is the same in every row, so no barrier is needed between its additions.
void RowSweep::clearPartials() {
  if (ColumnAccumulators.empty())
    return;
  llvm::Value *Begin = B.CreateNUWMul(Lane, F.index(T.vector));
  F.loop(Begin, F.index(Columns), F.index(int64_t{T.lanes} * T.vector), [&](llvm::Value *Column) {
    for (auto [Number, A] : llvm::enumerate(ColumnAccumulators))
      F.store(spread(identity(A.how), Lanes), partial(Number, Column));
  });
}

void RowSweep::reduceColumns() {
  for (unsigned I = 0; I < T.slots; ++I) {
    SmallVector<llvm::Value *> Values;
    for (llvm::AllocaInst *Sum : ColumnSums[I])
      Values.push_back(F.get(Sum));
    llvm::Value *Begin = B.CreateNUWAdd(TileBegin, F.index(int64_t{I} * T.lanes * T.vector));
    combineTeams(F, ColumnAccumulators, Values, T.lanes, T.teams(),
                 [&](llvm::Value *Offset, llvm::Value *Inside, ArrayRef<llvm::Value *> Combined) {
                   llvm::Value *Column = B.CreateNUWAdd(Begin, Offset);
                   Inside = B.CreateAnd(Inside, F.isBelow(Column, F.index(Columns)));
                   if (!leavesColumns())
                     return finishColumn(F, S.columnSteps, Next, Column, Inside, Combined);
                   F.when(Inside, [&] {
                     for (auto [Number, V] : llvm::enumerate(Combined))
                       F.store(V, partial(Number, Column));
                   });
                 });
  }
}

void RowSweep::reduceAll() {
  SmallVector<llvm::Value *> Values;
  for (auto [A, Sum] : llvm::zip_equal(Accumulators, Sums))
    Values.push_back(F.acrossTeam(A.how, GpuFunction::acrossVector(A.how, F.get(Sum)), T.threads));
  if (T.blocks() == 1 && ColumnAccumulators.empty())
    return finishAll(F, S.allSteps, Next, Values);
  Left.allParts = T.blocks();
  for (unsigned I = 0; I < Values.size(); ++I)
    Left.all.push_back(Region.allocate(Left.allParts * sizeof(double)));
  F.when(B.CreateICmpEQ(F.thread(), F.index(0)), [&] {
    for (auto [Offset, V] : llvm::zip_equal(Left.all, Values))
      F.store(V, F.element(F.workspace(Offset), V->getType(), F.block()));
  });
}

} // namespace

Partials emitRowSweep(GpuRegion &Region, const Sweep &S, const Sweep &Next, const SweepTiling &T) {
  return RowSweep(Region, S, Next, T).emit();
}

} // namespace mpc::codegen
