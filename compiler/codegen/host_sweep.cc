#include "compiler/codegen/host_sweep.h"

#include "compiler/codegen/host_columns.h"
#include "compiler/codegen/host_conversion.h"
#include "compiler/codegen/host_phases.h"

#include <optional>

using namespace mlir;

namespace mpc::codegen {

// The tile that this call visits: in a sweep that turns, from the last one on.
static llvm::Value *tileOf(const HostFusion &region, HostFunction &f, unsigned sweep) {
  int64_t last = region.schedule.tiles() - 1;
  if (last == 0)
    return f.index(0);
  bool turns = region.schedule.turns && sweep % 2 == 1;
  return turns ? f.builder().CreateSub(f.index(last), f.tile()) : f.tile();
}

// Whether only a scalar can give a NaN that needs care when it is rounded to bf16. All other inputs of elements are
// bf16.
static bool shortensShared(const HostFusion &region) {
  FusionOp fusion = region.fusion;
  auto typeOf = [](Value v) { return cast<RankedTensorType>(v.getType()).getElementType(); };
  auto isWide = [&](Value input) {
    Extent e = region.plan.extent(input);
    bool ofElements = e == Extent::Full || e == Extent::PerColumn;
    return ofElements && isa<FloatType>(typeOf(input)) && !typeOf(input).isBF16();
  };
  return llvm::any_of(region.outputs.all(), [&](const auto &o) { return typeOf(o.value).isBF16(); }) &&
         llvm::none_of(fusion.getBody().front().getArguments(), isWide);
}

namespace {

class HostSweep {
public:
  HostSweep(HostFusion &region, HostFunction &f, unsigned number)
      : region(region), schedule(region.schedule), f(f), number(number), convert(shortensShared(region)),
        body(region.plan, convert), where(region, f, number), tile(tileOf(region, f, number)) {}

  void emit();

private:
  void clearColumns(HostColumns &columns);
  /// Visits the tile row by row, phase by phase.
  void visitRows(HostColumns &columns, llvm::Value *begin, llvm::Value *end);
  void visitPhase(HostColumns &columns, HostPhase &p, llvm::Value *row);
  void prefetch(const HostPhase &p, unsigned chain);
  /// Visits the tile column by column of a few rows, whose accumulators stay in registers.
  void visitColumns(HostColumns &columns, llvm::Value *begin, llvm::Value *end);
  int64_t visitsAhead() const;
  void beginVisit(HostColumnAccumulators &a, llvm::Value *firstRow, llvm::Value *column);
  void visitElement(HostPhase &p, unsigned chain);
  void store(HostPhase::ElementOutput &o, llvm::Value *value);
  void finishRows(HostPhase &p);
  void storeEverything();

  HostFusion &region;
  const HostSchedule &schedule;
  HostFunction &f;
  unsigned number;
  HostConversion convert;
  BodyEmitter body;
  HostPosition where;
  llvm::Value *tile;
  std::optional<HostPhases> phases;
};

} // namespace

// How many visits by columns are prefetched: at least a page, which covers about the latency of a read from memory.
int64_t HostSweep::visitsAhead() const {
  constexpr int64_t leastElements = 1024;
  return std::max<int64_t>(1, leastElements / (HostSchedule::rowsPerVisit * schedule.width));
}

void HostSweep::visitElement(HostPhase &p, unsigned chain) {
  body.moveTo(where);
  // Everything is read before anything is stored, for an output may lie over an input.
  SmallVector<llvm::Value *> stored;
  for (const HostPhase::ElementOutput &o : p.elements)
    stored.push_back(body.stored(o.output.value));
  for (HostAccumulators &a : p.rows)
    a.add(where, body.terms(a.getStep()), chain);
  for (HostAccumulators *a : p.everything)
    a->add(where, body.terms(a->getStep()), chain);
  for (HostColumnAccumulators *a : p.columns)
    a->add(where, body.terms(a->getStep()));
  for (auto [o, value] : llvm::zip_equal(p.elements, stored))
    store(o, value);
}

void HostSweep::store(HostPhase::ElementOutput &o, llvm::Value *value) {
  if (o.stream && !where.getMask())
    return o.stream->store(where.lanes(value), where.firstColumn());
  // The last elements of a row.
  if (o.stream)
    o.stream->end(where.firstColumn());
  where.store(o.output, value);
}

void HostSweep::finishRows(HostPhase &p) {
  for (HostAccumulators &a : p.rows)
    body.finish(a.getStep(), a.combined());
  SmallVector<llvm::Value *> stored;
  for (const FusionOutputs::Output &o : p.rowOutputs)
    stored.push_back(body.stored(o.value));
  for (auto [o, value] : llvm::zip_equal(p.rowOutputs, stored))
    where.store(o, value);
}

// Once a cache line, as far as chains let tell.
void HostSweep::prefetch(const HostPhase &p, unsigned chain) {
  constexpr uint64_t lineBits = 512;
  constexpr int64_t bytesAhead = 8192;
  for (Value input : p.prefetched) {
    uint64_t bitsBefore = uint64_t(chain) * schedule.lanes * storageType(input)->getScalarSizeInBits();
    if (p.fetch == HostPhase::Fetch::All) {
      if (bitsBefore % lineBits == 0)
        where.prefetchBelow(input);
    } else if (p.fetch == HostPhase::Fetch::Ahead) {
      if (bitsBefore % lineBits == 0)
        where.prefetchAhead(input, bytesAhead);
    } else if (bitsBefore % (2 * lineBits) == 0) {
      where.prefetchHalfBelow(input, p.fetch == HostPhase::Fetch::SecondHalf);
    }
  }
}

void HostSweep::visitPhase(HostColumns &columns, HostPhase &p, llvm::Value *row) {
  where.setPhase(p.number);
  where.setAnchor(Extent::PerRow, f.placeAnchor());
  for (HostAccumulators &a : p.rows)
    a.reset();
  where.setColumn(f.index(0), nullptr);
  for (HostPhase::ElementOutput &o : p.elements)
    if (o.stream)
      o.stream->begin(where.address(o.output));
  if (p.visitsElements())
    columns.visit(row, p.chains, [&](llvm::Value *column, llvm::Constant *mask, unsigned chain) {
      where.setColumn(column, mask);
      for (HostColumnAccumulators *a : p.columns)
        a->begin(where, column);
      if (!mask)
        prefetch(p, chain);
      visitElement(p, chain);
      for (HostColumnAccumulators *a : p.columns)
        a->end(where, column);
    });
  where.setColumn(f.index(0), nullptr);
  body.moveTo(where);
  finishRows(p);
}

void HostSweep::visitRows(HostColumns &columns, llvm::Value *begin, llvm::Value *end) {
  f.loop(begin, end, 1, [&](llvm::Value *row) {
    where.setRow(row);
    for (HostPhase &p : phases->all)
      visitPhase(columns, p, row);
  });
}

// The first row's terms are computed once more in their turn.
void HostSweep::beginVisit(HostColumnAccumulators &a, llvm::Value *firstRow, llvm::Value *column) {
  if (!a.areMoments())
    return a.begin(where, column);
  where.setRow(firstRow);
  body.moveTo(where);
  a.beginAbout(where, body.terms(a.getStep()).front());
}

void HostSweep::visitColumns(HostColumns &columns, llvm::Value *begin, llvm::Value *end) {
  llvm::IRBuilder<> &b = f.builder();
  auto smaller = [&](llvm::Value *x, llvm::Value *y) { return b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, y); };
  constexpr int64_t rows = HostSchedule::rowsPerVisit;
  HostPhase &p = phases->all.front();
  // A last row that is shorter is visited alone, after the others.
  llvm::Value *last = f.index(schedule.rows - 1);
  llvm::Value *limit = schedule.hasShortRow() ? smaller(end, last) : end;
  llvm::Value *visits = b.CreateUDiv(b.CreateAdd(b.CreateSub(limit, begin), f.index(rows - 1)), f.index(rows));
  if (schedule.hasShortRow())
    visits = b.CreateAdd(visits, b.CreateZExt(b.CreateICmpSGT(end, last), b.getInt64Ty()));
  f.loop(f.index(0), visits, 1, [&](llvm::Value *visit) {
    llvm::Value *from = b.CreateAdd(begin, b.CreateMul(visit, f.index(rows)));
    llvm::Value *to = smaller(b.CreateAdd(from, f.index(rows)), limit);
    if (schedule.hasShortRow()) {
      from = smaller(from, last);
      to = b.CreateSelect(b.CreateICmpEQ(from, last), f.index(schedule.rows), to);
    }
    columns.visit(from, 1, [&](llvm::Value *column, llvm::Constant *mask, unsigned) {
      where.setColumn(column, mask);
      where.setAnchor(Extent::PerColumn, f.placeAnchor());
      body.forget(Extent::PerColumn);
      for (HostColumnAccumulators *a : p.columns)
        beginVisit(*a, from, column);
      f.loop(from, to, 1, [&](llvm::Value *row) {
        where.setRow(row);
        if (!mask)
          for (Value input : p.prefetched)
            where.prefetchBelow(input, visitsAhead() * rows);
        visitElement(p, 0);
      });
      for (HostColumnAccumulators *a : p.columns)
        a->areMoments() ? a->endAbout(where, column, b.CreateSub(to, from)) : a->end(where, column);
    });
  });
}

void HostSweep::clearColumns(HostColumns &columns) {
  columns.visitLongest([&](llvm::Value *column, llvm::Constant *mask, unsigned) {
    where.setColumn(column, mask);
    for (HostColumnAccumulators &a : phases->columns)
      a.clear(where, column);
  });
}

void HostSweep::storeEverything() {
  llvm::IRBuilder<> &b = f.builder();
  for (HostAccumulators &a : phases->everything)
    for (auto [p, value] : llvm::zip_equal(region.workspace.partials(a.getStep()), a.combined()))
      b.CreateStore(value, b.CreateGEP(value->getType(), f.workspace(p.offset), tile));
}

void HostSweep::emit() {
  llvm::IRBuilder<> &b = f.builder();
  llvm::Value *rowTile = tile, *columnTile = f.index(0);
  if (schedule.columnTiles() > 1) {
    rowTile = b.CreateSDiv(tile, f.index(schedule.columnTiles()));
    columnTile = b.CreateSRem(tile, f.index(schedule.columnTiles()));
  }
  where.setAnchor(Extent::Single, f.entryAnchor());
  where.spreadColumns();
  for (Operation *op : region.plan.getBody())
    body.setFirstKept(op, region.workspace.kept(op).size());
  phases.emplace(region, f, number, rowTile);
  HostColumns columns(f, schedule, columnTile);
  if (!phases->columns.empty())
    clearColumns(columns);

  llvm::Value *begin = b.CreateMul(rowTile, f.index(schedule.rowsPerTile));
  llvm::Value *end = b.CreateAdd(begin, f.index(schedule.rowsPerTile));
  if (schedule.rows % schedule.rowsPerTile != 0)
    end = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, end, f.index(schedule.rows));
  if (phases->byColumns)
    visitColumns(columns, begin, end);
  else
    visitRows(columns, begin, end);
  storeEverything();

  for (Operation *op : region.plan.getBody())
    region.workspace.addKeptOfRows(op, body.kept(op).size());
}

bool hasWork(const HostFusion &region, unsigned sweep) {
  auto here = [&](const auto &item) { return item.when.sweep == sweep; };
  return llvm::any_of(region.plan.getSteps(), here) ||
         llvm::any_of(region.outputs.all(), [&](const FusionOutputs::Output &o) {
           return here(o) && (o.extent == Extent::Full || o.extent == Extent::PerRow);
         });
}

void emitSweep(HostFusion &region, HostFunction &f, unsigned number) { HostSweep(region, f, number).emit(); }

} // namespace mpc::codegen
