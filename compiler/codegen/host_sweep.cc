#include "compiler/codegen/host_sweep.h"

#include "compiler/codegen/host_accumulators.h"
#include "compiler/codegen/host_columns.h"
#include "compiler/codegen/host_conversion.h"
#include "compiler/codegen/host_stream.h"

#include <list>

using namespace mlir;

namespace mpc::codegen {

// Chains of accumulators that hide the latency of an addition.
static constexpr unsigned IndependentChains = 4;

// The tile that this call visits: in a sweep that turns, from the last one on.
static llvm::Value *tileOf(const HostRegion &Region, HostFunction &F, unsigned Sweep) {
  int64_t Last = Region.schedule.tiles() - 1;
  if (Last == 0)
    return F.index(0);
  bool Turns = Region.schedule.turns && Sweep % 2 == 1;
  return Turns ? F.builder().CreateSub(F.index(Last), F.tile()) : F.tile();
}

namespace {

/// An output of elements, and where it is shifted as it is stored, how.
struct ElementOutput {
  RegionOutputs::Output output;
  std::unique_ptr<HostStream> stream;
};

/// What one phase adds and stores.
struct Phase {
  unsigned number;
  std::list<HostAccumulators> rows;
  SmallVector<HostAccumulators *> everything;
  SmallVector<HostColumnAccumulators *> columns;
  std::vector<ElementOutput> elements;
  SmallVector<RegionOutputs::Output> rowOutputs;
  SmallVector<Value> prefetched; ///< inputs that the first phase of the next row waits for
  unsigned chains = 1;
  bool visitsElements() const { return !rows.empty() || !everything.empty() || !columns.empty() || !elements.empty(); }
};

class Sweep {
public:
  Sweep(HostRegion &Region, HostFunction &F, unsigned Number)
      : Region(Region), Schedule(Region.schedule), F(F), Number(Number), Body(Region.plan, Convert),
        Where(Region, F, Number), Tile(tileOf(Region, F, Number)), RowTile(Tile), ColumnTile(F.index(0)) {}

  void emit();

private:
  void prepare();
  bool visitsByColumns() const;
  void clearColumns(HostColumns &Columns);
  /// Visits the tile row by row, phase by phase.
  void visitRows(HostColumns &Columns, llvm::Value *Begin, llvm::Value *End);
  void visitPhase(HostColumns &Columns, Phase &P, llvm::Value *Row);
  /// Visits the tile column by column of a few rows, whose accumulators stay in registers.
  void visitColumns(HostColumns &Columns, llvm::Value *Begin, llvm::Value *End);
  int64_t visitsAhead() const;
  void beginVisit(HostColumnAccumulators &A, llvm::Value *FirstRow, llvm::Value *Column);
  std::unique_ptr<HostStream> streamOf(const RegionOutputs::Output &O);
  void visitElement(Phase &P, unsigned Chain);
  void store(ElementOutput &O, llvm::Value *Value);
  void finishRows(Phase &P);
  void storeEverything();

  HostRegion &Region;
  const HostSchedule &Schedule;
  HostFunction &F;
  unsigned Number;
  HostConversion Convert;
  BodyEmitter Body;
  HostPosition Where;
  llvm::Value *Tile, *RowTile, *ColumnTile;
  std::list<Phase> Phases;
  std::list<HostAccumulators> Everything;
  std::list<HostColumnAccumulators> Columns;
};

} // namespace

// Few accumulators depend on themselves from one vector to the next; many hide each other's latency.
static unsigned chainsOf(const HostRegion &Region, Availability At) {
  unsigned Accumulators = 0;
  for (const RegionPlan::Step &Step : Region.plan.steps())
    if (Step.when == At && Step.reduction.axis != Axis::Column)
      Accumulators += Step.reduction.accumulators.size();
  uint64_t Vectors = std::max<int64_t>(1, Region.schedule.width / Region.schedule.lanes);
  unsigned Chains = Accumulators == 0 ? 1 : std::max(1u, IndependentChains / llvm::bit_ceil(Accumulators));
  return std::min<uint64_t>(Chains, llvm::bit_floor(Vectors));
}

// Rows have nothing of their own: several can be visited column by column.
bool Sweep::visitsByColumns() const {
  bool HasColumns = false, HasRows = false;
  for (const RegionPlan::Step &Step : Region.plan.steps())
    if (Step.when.sweep == Number)
      (Step.reduction.axis == Axis::Row ? HasRows : HasColumns) |= Step.reduction.axis != Axis::All;
  for (const RegionOutputs::Output &O : Region.outputs.all())
    HasRows |= O.when.sweep == Number && O.extent == Extent::PerRow;
  return HasColumns && !HasRows;
}

void Sweep::prepare() {
  for (Operation *Op : Region.plan.body())
    Body.setFirstKept(Op, Region.workspace.kept(Op).size());
  for (unsigned Index = 0; Index < Region.plan.numPhases(Number); ++Index) {
    Availability At{Number, Index};
    Phase &P = Phases.emplace_back();
    P.number = Index;
    P.chains = visitsByColumns() ? 1 : chainsOf(Region, At);
    for (const RegionPlan::Step &Step : Region.plan.steps()) {
      if (Step.when != At)
        continue;
      if (Step.reduction.axis == Axis::Row)
        P.rows.emplace_back(F, Schedule, Step, P.chains);
      else if (Step.reduction.axis == Axis::All)
        P.everything.push_back(&Everything.emplace_back(F, Schedule, Step, P.chains));
      else
        P.columns.push_back(&Columns.emplace_back(Region, F, Step, RowTile));
    }
    for (const RegionOutputs::Output &O : Region.outputs.all())
      if (O.when == At && O.extent == Extent::Full)
        P.elements.push_back({O, streamOf(O)});
      else if (O.when == At && O.extent == Extent::PerRow)
        P.rowOutputs.push_back(O);
  }
  // The first phase of a row finds nothing in the caches; the second one has time to fetch the next row. A visit by
  // columns jumps from row to row, which hides from the processor that it will read all of the next ones.
  Phase *Fetches = Phases.size() > 1 ? &*std::next(Phases.begin()) : visitsByColumns() ? &Phases.front() : nullptr;
  if (Fetches)
    llvm::copy_if(Region.outputs.inputsRead({Number, 0}), std::back_inserter(Fetches->prefetched),
                  [&](Value Input) { return Region.plan.extent(Input) == Extent::Full; });
}

// How many visits by columns are fetched ahead: at least a page, about what a read from memory takes.
int64_t Sweep::visitsAhead() const {
  constexpr int64_t LeastElements = 1024;
  return std::max<int64_t>(1, LeastElements / (HostSchedule::rowsPerVisit * Schedule.width));
}

// Rows that are not made of whole vectors, each visited from its first element to its last.
std::unique_ptr<HostStream> Sweep::streamOf(const RegionOutputs::Output &O) {
  constexpr int64_t LeastVectors = 4;
  llvm::Type *T = storageType(O.value);
  bool HasForm = T->isFloatTy() || T->isIntegerTy(16);
  bool IsRagged = Schedule.width % HostStream::Lanes != 0 && Schedule.width >= LeastVectors * HostStream::Lanes;
  if (!Schedule.shifts || !HasForm || !IsRagged || visitsByColumns() || !canStream(Region, O))
    return nullptr;
  return std::make_unique<HostStream>(F, T);
}

void Sweep::visitElement(Phase &P, unsigned Chain) {
  Body.moveTo(Where);
  // Everything is read before anything is stored, for an output may lie over an input.
  SmallVector<llvm::Value *> Stored;
  for (const ElementOutput &O : P.elements)
    Stored.push_back(Body.stored(O.output.value));
  for (HostAccumulators &A : P.rows)
    A.add(Where, Body.terms(A.step()), Chain);
  for (HostAccumulators *A : P.everything)
    A->add(Where, Body.terms(A->step()), Chain);
  for (HostColumnAccumulators *A : P.columns)
    A->add(Where, Body.terms(A->step()));
  for (auto [O, Value] : llvm::zip_equal(P.elements, Stored))
    store(O, Value);
}

void Sweep::store(ElementOutput &O, llvm::Value *Value) {
  if (O.stream && !Where.mask())
    return O.stream->store(Where.lanes(Value), Where.firstColumn());
  // The last elements of a row.
  if (O.stream)
    O.stream->end(Where.firstColumn());
  Where.store(O.output, Value);
}

void Sweep::finishRows(Phase &P) {
  for (HostAccumulators &A : P.rows)
    Body.finish(A.step(), A.combined());
  SmallVector<llvm::Value *> Stored;
  for (const RegionOutputs::Output &O : P.rowOutputs)
    Stored.push_back(Body.stored(O.value));
  for (auto [O, Value] : llvm::zip_equal(P.rowOutputs, Stored))
    Where.store(O, Value);
}

void Sweep::visitPhase(HostColumns &Columns, Phase &P, llvm::Value *Row) {
  Where.setPhase(P.number);
  Where.setAnchor(Extent::PerRow, F.placeAnchor());
  for (HostAccumulators &A : P.rows)
    A.reset();
  Where.setColumn(F.index(0), nullptr);
  for (ElementOutput &O : P.elements)
    if (O.stream)
      O.stream->begin(Where.address(O.output));
  if (P.visitsElements())
    Columns.visit(Row, P.chains, [&](llvm::Value *Column, llvm::Constant *Mask, unsigned Chain) {
      Where.setColumn(Column, Mask);
      for (HostColumnAccumulators *A : P.columns)
        A->begin(Where, Column);
      if (!Mask)
        for (Value Input : P.prefetched)
          Where.prefetchBelow(Input);
      visitElement(P, Chain);
      for (HostColumnAccumulators *A : P.columns)
        A->end(Where, Column);
    });
  Where.setColumn(F.index(0), nullptr);
  Body.moveTo(Where);
  finishRows(P);
}

void Sweep::visitRows(HostColumns &Columns, llvm::Value *Begin, llvm::Value *End) {
  F.loop(Begin, End, 1, [&](llvm::Value *Row) {
    Where.setRow(Row);
    for (Phase &P : Phases)
      visitPhase(Columns, P, Row);
  });
}

// The first row's terms are computed once more in their turn.
void Sweep::beginVisit(HostColumnAccumulators &A, llvm::Value *FirstRow, llvm::Value *Column) {
  if (!A.areMoments())
    return A.begin(Where, Column);
  Where.setRow(FirstRow);
  Body.moveTo(Where);
  A.beginAbout(Where, Body.terms(A.step()).front());
}

void Sweep::visitColumns(HostColumns &Columns, llvm::Value *Begin, llvm::Value *End) {
  llvm::IRBuilder<> &B = F.builder();
  auto Smaller = [&](llvm::Value *X, llvm::Value *Y) { return B.CreateBinaryIntrinsic(llvm::Intrinsic::smin, X, Y); };
  constexpr int64_t Rows = HostSchedule::rowsPerVisit;
  Phase &P = Phases.front();
  // A last row that is shorter is visited alone, after the others.
  llvm::Value *Last = F.index(Schedule.rows - 1);
  llvm::Value *Limit = Schedule.hasShortRow() ? Smaller(End, Last) : End;
  llvm::Value *Visits = B.CreateUDiv(B.CreateAdd(B.CreateSub(Limit, Begin), F.index(Rows - 1)), F.index(Rows));
  if (Schedule.hasShortRow())
    Visits = B.CreateAdd(Visits, B.CreateZExt(B.CreateICmpSGT(End, Last), B.getInt64Ty()));
  F.loop(F.index(0), Visits, 1, [&](llvm::Value *Visit) {
    llvm::Value *From = B.CreateAdd(Begin, B.CreateMul(Visit, F.index(Rows)));
    llvm::Value *To = Smaller(B.CreateAdd(From, F.index(Rows)), Limit);
    if (Schedule.hasShortRow()) {
      From = Smaller(From, Last);
      To = B.CreateSelect(B.CreateICmpEQ(From, Last), F.index(Schedule.rows), To);
    }
    Columns.visit(From, 1, [&](llvm::Value *Column, llvm::Constant *Mask, unsigned) {
      Where.setColumn(Column, Mask);
      Where.setAnchor(Extent::PerColumn, F.placeAnchor());
      Body.forget(Extent::PerColumn);
      for (HostColumnAccumulators *A : P.columns)
        beginVisit(*A, From, Column);
      F.loop(From, To, 1, [&](llvm::Value *Row) {
        Where.setRow(Row);
        if (!Mask)
          for (Value Input : P.prefetched)
            Where.prefetchBelow(Input, visitsAhead() * Rows);
        visitElement(P, 0);
      });
      for (HostColumnAccumulators *A : P.columns)
        A->areMoments() ? A->endAbout(Where, Column, B.CreateSub(To, From)) : A->end(Where, Column);
    });
  });
}

void Sweep::clearColumns(HostColumns &Columns) {
  Columns.visitLongest([&](llvm::Value *Column, llvm::Constant *Mask, unsigned) {
    Where.setColumn(Column, Mask);
    for (HostColumnAccumulators &A : this->Columns)
      A.clear(Where, Column);
  });
}

void Sweep::storeEverything() {
  llvm::IRBuilder<> &B = F.builder();
  for (HostAccumulators &A : Everything)
    for (auto [P, Value] : llvm::zip_equal(Region.workspace.partials(A.step()), A.combined()))
      B.CreateStore(Value, B.CreateGEP(Value->getType(), F.workspace(P.offset), Tile));
}

void Sweep::emit() {
  llvm::IRBuilder<> &B = F.builder();
  if (Schedule.columnTiles() > 1) {
    RowTile = B.CreateSDiv(Tile, F.index(Schedule.columnTiles()));
    ColumnTile = B.CreateSRem(Tile, F.index(Schedule.columnTiles()));
  }
  Where.setAnchor(Extent::Single, F.entryAnchor());
  Where.spreadColumns();
  prepare();
  HostColumns Columns(F, Schedule, ColumnTile);
  if (!this->Columns.empty())
    clearColumns(Columns);

  llvm::Value *Begin = B.CreateMul(RowTile, F.index(Schedule.rowsPerTile));
  llvm::Value *End = B.CreateAdd(Begin, F.index(Schedule.rowsPerTile));
  if (Schedule.rows % Schedule.rowsPerTile != 0)
    End = B.CreateBinaryIntrinsic(llvm::Intrinsic::smin, End, F.index(Schedule.rows));
  if (visitsByColumns())
    visitColumns(Columns, Begin, End);
  else
    visitRows(Columns, Begin, End);
  storeEverything();

  for (Operation *Op : Region.plan.body())
    Region.workspace.addKeptOfRows(Op, Body.kept(Op).size());
}

bool hasWork(const HostRegion &Region, unsigned Sweep) {
  auto Here = [&](const auto &Item) { return Item.when.sweep == Sweep; };
  return llvm::any_of(Region.plan.steps(), Here) ||
         llvm::any_of(Region.outputs.all(), [&](const RegionOutputs::Output &O) {
           return Here(O) && (O.extent == Extent::Full || O.extent == Extent::PerRow);
         });
}

void emitSweep(HostRegion &Region, HostFunction &F, unsigned Number) { Sweep(Region, F, Number).emit(); }

} // namespace mpc::codegen
