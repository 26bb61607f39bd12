#include "compiler/codegen/host_sweep.h"

#include "compiler/codegen/host_columns.h"
#include "compiler/codegen/host_conversion.h"
#include "compiler/codegen/host_phases.h"

#include <optional>

using namespace mlir;

namespace mpc::codegen {

// The tile that this call visits: in a sweep that turns, from the last one on.
static llvm::Value *tileOf(const HostRegion &Region, HostFunction &F, unsigned Sweep) {
  int64_t Last = Region.schedule.tiles() - 1;
  if (Last == 0)
    return F.index(0);
  bool Turns = Region.schedule.turns && Sweep % 2 == 1;
  return Turns ? F.builder().CreateSub(F.index(Last), F.tile()) : F.tile();
}

// Whether only a scalar can give a NaN that needs care when it is rounded to bf16. All other inputs of elements are
// bf16.
static bool shortensShared(const HostRegion &Region) {
  FusionOp Fusion = Region.fusion;
  auto TypeOf = [](Value V) { return cast<RankedTensorType>(V.getType()).getElementType(); };
  auto IsWide = [&](Value Input) {
    Extent E = Region.plan.extent(Input);
    bool OfElements = E == Extent::Full || E == Extent::PerColumn;
    return OfElements && isa<FloatType>(TypeOf(Input)) && !TypeOf(Input).isBF16();
  };
  return llvm::any_of(Region.outputs.all(), [&](const auto &O) { return TypeOf(O.value).isBF16(); }) &&
         llvm::none_of(Fusion.getBody().front().getArguments(), IsWide);
}

namespace {

class Sweep {
public:
  Sweep(HostRegion &Region, HostFunction &F, unsigned Number)
      : Region(Region), Schedule(Region.schedule), F(F), Number(Number), Convert(shortensShared(Region)),
        Body(Region.plan, Convert), Where(Region, F, Number), Tile(tileOf(Region, F, Number)) {}

  void emit();

private:
  void clearColumns(HostColumns &Columns);
  /// Visits the tile row by row, phase by phase.
  void visitRows(HostColumns &Columns, llvm::Value *Begin, llvm::Value *End);
  void visitPhase(HostColumns &Columns, HostPhase &P, llvm::Value *Row);
  void prefetch(const HostPhase &P, unsigned Chain);
  /// Visits the tile column by column of a few rows, whose accumulators stay in registers.
  void visitColumns(HostColumns &Columns, llvm::Value *Begin, llvm::Value *End);
  int64_t visitsAhead() const;
  void beginVisit(HostColumnAccumulators &A, llvm::Value *FirstRow, llvm::Value *Column);
  void visitElement(HostPhase &P, unsigned Chain);
  void store(HostPhase::ElementOutput &O, llvm::Value *Value);
  void finishRows(HostPhase &P);
  void storeEverything();

  HostRegion &Region;
  const HostSchedule &Schedule;
  HostFunction &F;
  unsigned Number;
  HostConversion Convert;
  BodyEmitter Body;
  HostPosition Where;
  llvm::Value *Tile;
  std::optional<HostPhases> Phases;
};

} // namespace

// How many visits by columns are prefetched: at least a page, which covers about the latency of a read from memory.
int64_t Sweep::visitsAhead() const {
  constexpr int64_t LeastElements = 1024;
  return std::max<int64_t>(1, LeastElements / (HostSchedule::rowsPerVisit * Schedule.width));
}

void Sweep::visitElement(HostPhase &P, unsigned Chain) {
  Body.moveTo(Where);
  // Everything is read before anything is stored, for an output may lie over an input.
  SmallVector<llvm::Value *> Stored;
  for (const HostPhase::ElementOutput &O : P.elements)
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

void Sweep::store(HostPhase::ElementOutput &O, llvm::Value *Value) {
  if (O.stream && !Where.mask())
    return O.stream->store(Where.lanes(Value), Where.firstColumn());
  // The last elements of a row.
  if (O.stream)
    O.stream->end(Where.firstColumn());
  Where.store(O.output, Value);
}

void Sweep::finishRows(HostPhase &P) {
  for (HostAccumulators &A : P.rows)
    Body.finish(A.step(), A.combined());
  SmallVector<llvm::Value *> Stored;
  for (const RegionOutputs::Output &O : P.rowOutputs)
    Stored.push_back(Body.stored(O.value));
  for (auto [O, Value] : llvm::zip_equal(P.rowOutputs, Stored))
    Where.store(O, Value);
}

// Once a cache line, as far as chains let tell.
void Sweep::prefetch(const HostPhase &P, unsigned Chain) {
  constexpr uint64_t LineBits = 512;
  constexpr int64_t BytesAhead = 8192;
  for (Value Input : P.prefetched) {
    uint64_t BitsBefore = uint64_t(Chain) * Schedule.lanes * storageType(Input)->getScalarSizeInBits();
    if (P.fetch == HostPhase::Fetch::All) {
      if (BitsBefore % LineBits == 0)
        Where.prefetchBelow(Input);
    } else if (P.fetch == HostPhase::Fetch::Ahead) {
      if (BitsBefore % LineBits == 0)
        Where.prefetchAhead(Input, BytesAhead);
    } else if (BitsBefore % (2 * LineBits) == 0) {
      Where.prefetchHalfBelow(Input, P.fetch == HostPhase::Fetch::SecondHalf);
    }
  }
}

void Sweep::visitPhase(HostColumns &Columns, HostPhase &P, llvm::Value *Row) {
  Where.setPhase(P.number);
  Where.setAnchor(Extent::PerRow, F.placeAnchor());
  for (HostAccumulators &A : P.rows)
    A.reset();
  Where.setColumn(F.index(0), nullptr);
  for (HostPhase::ElementOutput &O : P.elements)
    if (O.stream)
      O.stream->begin(Where.address(O.output));
  if (P.visitsElements())
    Columns.visit(Row, P.chains, [&](llvm::Value *Column, llvm::Constant *Mask, unsigned Chain) {
      Where.setColumn(Column, Mask);
      for (HostColumnAccumulators *A : P.columns)
        A->begin(Where, Column);
      if (!Mask)
        prefetch(P, Chain);
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
    for (HostPhase &P : Phases->all)
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
  HostPhase &P = Phases->all.front();
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
    for (HostColumnAccumulators &A : Phases->columns)
      A.clear(Where, Column);
  });
}

void Sweep::storeEverything() {
  llvm::IRBuilder<> &B = F.builder();
  for (HostAccumulators &A : Phases->everything)
    for (auto [P, Value] : llvm::zip_equal(Region.workspace.partials(A.step()), A.combined()))
      B.CreateStore(Value, B.CreateGEP(Value->getType(), F.workspace(P.offset), Tile));
}

void Sweep::emit() {
  llvm::IRBuilder<> &B = F.builder();
  llvm::Value *RowTile = Tile, *ColumnTile = F.index(0);
  if (Schedule.columnTiles() > 1) {
    RowTile = B.CreateSDiv(Tile, F.index(Schedule.columnTiles()));
    ColumnTile = B.CreateSRem(Tile, F.index(Schedule.columnTiles()));
  }
  Where.setAnchor(Extent::Single, F.entryAnchor());
  Where.spreadColumns();
  for (Operation *Op : Region.plan.body())
    Body.setFirstKept(Op, Region.workspace.kept(Op).size());
  Phases.emplace(Region, F, Number, RowTile);
  HostColumns Columns(F, Schedule, ColumnTile);
  if (!Phases->columns.empty())
    clearColumns(Columns);

  llvm::Value *Begin = B.CreateMul(RowTile, F.index(Schedule.rowsPerTile));
  llvm::Value *End = B.CreateAdd(Begin, F.index(Schedule.rowsPerTile));
  if (Schedule.rows % Schedule.rowsPerTile != 0)
    End = B.CreateBinaryIntrinsic(llvm::Intrinsic::smin, End, F.index(Schedule.rows));
  if (Phases->byColumns)
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
