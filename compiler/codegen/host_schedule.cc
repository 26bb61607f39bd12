#include "compiler/codegen/host_schedule.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;

namespace mpc::codegen {

// The bytes that a tile reads and writes, about. They fit the second-level cache, and their time is above the cost of
// starting a tile.
static constexpr int64_t tileBytes = 64 * 1024;
// The width of a row of the loops that stands for several rows. It is at least mergedWidth, so that starting a row
// costs little. It is at most widestMerged, because what is spread over a row lies on the stack.
static constexpr int64_t mergedWidth = 64;
static constexpr int64_t widestMerged = 1024;
// The partial sums of a tile are written and read again. They are at most this share of what the tile reads, and their
// number is bounded.
static constexpr int64_t rowsPerPartial = 64;
static constexpr int64_t mostPartials = 64;

// This many rows, one for each tile, keep all threads busy.
static constexpr int64_t fewRows = 64;

// A sweep over less than this share of the last-level cache finds more in its cores' own caches if each visits the same
// tiles again.
static constexpr int64_t turningShare = 2;

/// The approximate bytes of a core's own cache.
static constexpr int64_t coreCacheBytes = 1 << 20;

static int64_t bytesPerElement(FusionOp fusion, const FusionPlan &plan) {
  int64_t bytes = 0;
  auto add = [&](Value v) {
    if (plan.extent(v) == Extent::Full)
      bytes += llvm::divideCeil(cast<RankedTensorType>(v.getType()).getElementTypeBitWidth(), 8);
  };
  llvm::for_each(fusion.getBody().front().getArguments(), add);
  llvm::for_each(fusion.getBody().front().getTerminator()->getOperands(), add);
  return std::max<int64_t>(bytes, 1);
}

static bool reduces(const FusionPlan &plan, Axis along) {
  return llvm::any_of(plan.getSteps(), [&](const FusionPlan::Step &s) { return s.reduction.axis == along; });
}

static bool hasExtent(FusionOp fusion, const FusionPlan &plan, Extent e) {
  auto has = [&](Value v) { return plan.extent(v) == e; };
  return llvm::any_of(fusion.getBody().front().getArguments(), has) ||
         llvm::any_of(plan.getBody(), [&](Operation *op) { return llvm::any_of(op->getResults(), has); });
}

// How many rows of the region make one row of the loops.
static int64_t mergedRows(int64_t rows, int64_t columns, int64_t lanes) {
  int64_t copies = lanes / std::gcd(columns, lanes);
  if (columns * copies < mergedWidth)
    copies *= llvm::divideCeil(mergedWidth, columns * copies);
  return columns * copies > widestMerged ? 1 : std::min(rows, copies);
}

// Whether a visit to columns reads few places: one input of elements, or such of 16 bits, of which two vectors are a
// cache line.
static bool readsFewLines(FusionOp fusion, const FusionPlan &plan) {
  unsigned inputs = 0, wide = 0;
  for (Value v : fusion.getBody().front().getArguments())
    if (plan.extent(v) == Extent::Full) {
      ++inputs;
      wide += cast<RankedTensorType>(v.getType()).getElementTypeBitWidth() > 16;
    }
  return inputs <= 1 || wide == 0;
}

// Whether elements are computed two vectors at a time. The instructions of one vector hide the latency of the other's.
// A processor with few registers left for results in flight looks no further ahead. With two vectors, 16-bit results
// fill a cache line. Sums keep the order of one vector, so only sums of columns may be computed in pairs. They are
// where a visit, which jumps from row to row, reads few places. Random numbers take many registers.
static bool takesPairs(FusionOp fusion, const FusionPlan &plan, const CodeTarget &target) {
  constexpr size_t mostOperations = 8;
  auto isOfColumns = [](const FusionPlan::Step &s) { return s.reduction.axis == Axis::Column; };
  bool mayPair = plan.getSteps().empty() || (llvm::all_of(plan.getSteps(), isOfColumns) && readsFewLines(fusion, plan));
  return target.vector_bits == 512 && mayPair && plan.getBody().size() <= mostOperations &&
         llvm::none_of(plan.getBody(), [](Operation *op) { return isa<DropoutOp>(op); });
}

// Vectors in pairs where a row of the loops is made of them: others may be stored shifted, by single vectors.
static unsigned lanesOf(FusionOp fusion, const FusionPlan &plan, const CodeTarget &target, bool hasRows,
                        bool hasColumns) {
  unsigned lanes = target.vector_bits / 32;
  int64_t copies = hasRows ? 1 : hasColumns ? mergedRows(plan.rows(), plan.getColumns(), 2 * lanes) : 2 * lanes;
  return takesPairs(fusion, plan, target) && plan.getColumns() * copies % (2 * lanes) == 0 ? 2 * lanes : lanes;
}

HostSchedule HostSchedule::create(FusionOp fusion, const FusionPlan &plan, const CodeTarget &target) {
  bool reducesRows = reduces(plan, Axis::Row), reducesColumns = reduces(plan, Axis::Column);
  bool hasRows = reducesRows || hasExtent(fusion, plan, Extent::PerRow);
  bool hasColumns = reducesColumns || hasExtent(fusion, plan, Extent::PerColumn);
  int64_t bytes = bytesPerElement(fusion, plan);

  HostSchedule s;
  s.lanes = lanesOf(fusion, plan, target, hasRows, hasColumns);
  s.columns = plan.getColumns();
  s.streams = plan.getElements() * bytes > target.cache_bytes;
  s.fetches = plan.getElements() * bytes > coreCacheBytes;
  s.turns = plan.getElements() * bytes > target.cache_bytes / turningShare;
  if (!hasRows && !hasColumns) {
    s.width = std::min<int64_t>(plan.getElements(), llvm::bit_floor<uint64_t>(tileBytes / bytes));
  } else {
    s.copies = hasRows ? 1 : mergedRows(plan.rows(), plan.getColumns(), s.lanes);
    s.width = s.columns * s.copies;
  }
  s.rows = llvm::divideCeil(plan.getElements(), s.width);
  s.lastWidth = plan.getElements() - (s.rows - 1) * s.width;

  s.rowsPerTile = std::max<int64_t>(1, tileBytes / (s.width * bytes));
  if (reducesColumns)
    // Whole visits: the same rows share one, and so one rounding in f32, however many a tile has.
    s.rowsPerTile = llvm::alignTo(std::max({s.rowsPerTile, rowsPerPartial / s.copies,
                                            static_cast<int64_t>(llvm::divideCeil(s.rows, mostPartials))}),
                                  rowsPerVisit);
  s.rowsPerTile = std::min(s.rowsPerTile, s.rows);

  s.columnsPerTile = s.width;
  // A value of a row is stored by one tile.
  bool givesRows = reducesRows || llvm::any_of(fusion.getBody().front().getTerminator()->getOperands(),
                                               [&](Value v) { return plan.extent(v) == Extent::PerRow; });
  // Rows that are not made of whole vectors are visited from end to end where there are enough of them.
  bool staysWhole = s.width % s.lanes != 0 && !reducesColumns && s.rows >= fewRows;
  if (int64_t column = s.rowsPerTile * bytes; !givesRows && !staysWhole && s.width * column > 2 * tileBytes)
    s.columnsPerTile =
        std::min<int64_t>(s.width, std::max<int64_t>(256, llvm::bit_floor<uint64_t>(tileBytes / column)));
  s.shifts = s.streams && target.cpu == "x86-64-v4" && s.lanes == 16 && s.columnTiles() == 1;
  return s;
}

} // namespace mpc::codegen
