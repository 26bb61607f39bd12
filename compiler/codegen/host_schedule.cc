#include "compiler/codegen/host_schedule.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;

namespace mpc::codegen {

// The bytes that a tile reads and writes, about. They fit the second-level cache, and their time is above the cost of
// starting a tile.
static constexpr int64_t TileBytes = 64 * 1024;
// The width of a row of the loops that stands for several rows. It is at least MergedWidth, so that starting a row
// costs little. It is at most WidestMerged, because what is spread over a row lies on the stack.
static constexpr int64_t MergedWidth = 64;
static constexpr int64_t WidestMerged = 1024;
// The partial sums of a tile are written and read again. They are at most this share of what the tile reads, and their
// number is bounded.
static constexpr int64_t RowsPerPartial = 64;
static constexpr int64_t MostPartials = 64;

// This many rows, one for each tile, keep all threads busy.
static constexpr int64_t FewRows = 64;

// A sweep over less than this share of the last-level cache finds more in its cores' own caches if each visits the same
// tiles again.
static constexpr int64_t TurningShare = 2;

/// The approximate bytes of a core's own cache.
static constexpr int64_t CoreCacheBytes = 1 << 20;

static int64_t bytesPerElement(FusionOp Fusion, const RegionPlan &Plan) {
  int64_t Bytes = 0;
  auto Add = [&](Value V) {
    if (Plan.extent(V) == Extent::Full)
      Bytes += llvm::divideCeil(cast<RankedTensorType>(V.getType()).getElementTypeBitWidth(), 8);
  };
  llvm::for_each(Fusion.getBody().front().getArguments(), Add);
  llvm::for_each(Fusion.getBody().front().getTerminator()->getOperands(), Add);
  return std::max<int64_t>(Bytes, 1);
}

static bool reduces(const RegionPlan &Plan, Axis Along) {
  return llvm::any_of(Plan.steps(), [&](const RegionPlan::Step &S) { return S.reduction.axis == Along; });
}

static bool hasExtent(FusionOp Fusion, const RegionPlan &Plan, Extent E) {
  auto Has = [&](Value V) { return Plan.extent(V) == E; };
  return llvm::any_of(Fusion.getBody().front().getArguments(), Has) ||
         llvm::any_of(Plan.body(), [&](Operation *Op) { return llvm::any_of(Op->getResults(), Has); });
}

// How many rows of the region make one row of the loops.
static int64_t mergedRows(int64_t Rows, int64_t Columns, int64_t Lanes) {
  int64_t Copies = Lanes / std::gcd(Columns, Lanes);
  if (Columns * Copies < MergedWidth)
    Copies *= llvm::divideCeil(MergedWidth, Columns * Copies);
  return Columns * Copies > WidestMerged ? 1 : std::min(Rows, Copies);
}

// Whether a visit to columns reads few places: one input of elements, or such of 16 bits, of which two vectors are a
// cache line.
static bool readsFewLines(FusionOp Fusion, const RegionPlan &Plan) {
  unsigned Inputs = 0, Wide = 0;
  for (Value V : Fusion.getBody().front().getArguments())
    if (Plan.extent(V) == Extent::Full) {
      ++Inputs;
      Wide += cast<RankedTensorType>(V.getType()).getElementTypeBitWidth() > 16;
    }
  return Inputs <= 1 || Wide == 0;
}

// Whether elements are computed two vectors at a time. The instructions of one vector hide the latency of the other's.
// A processor with few registers left for results in flight looks no further ahead. With two vectors, 16-bit results
// fill a cache line. Sums keep the order of one vector, so only sums of columns may be computed in pairs. They are
// where a visit, which jumps from row to row, reads few places. Random numbers take many registers.
static bool takesPairs(FusionOp Fusion, const RegionPlan &Plan, const CodeTarget &Target) {
  constexpr size_t MostOperations = 8;
  auto IsOfColumns = [](const RegionPlan::Step &S) { return S.reduction.axis == Axis::Column; };
  bool MayPair = Plan.steps().empty() || (llvm::all_of(Plan.steps(), IsOfColumns) && readsFewLines(Fusion, Plan));
  return Target.vector_bits == 512 && MayPair && Plan.body().size() <= MostOperations &&
         llvm::none_of(Plan.body(), [](Operation *Op) { return isa<DropoutOp>(Op); });
}

// Vectors in pairs where a row of the loops is made of them: others may be stored shifted, by single vectors.
static unsigned lanesOf(FusionOp Fusion, const RegionPlan &Plan, const CodeTarget &Target, bool HasRows,
                        bool HasColumns) {
  unsigned Lanes = Target.vector_bits / 32;
  int64_t Copies = HasRows ? 1 : HasColumns ? mergedRows(Plan.rows(), Plan.columns(), 2 * Lanes) : 2 * Lanes;
  return takesPairs(Fusion, Plan, Target) && Plan.columns() * Copies % (2 * Lanes) == 0 ? 2 * Lanes : Lanes;
}

HostSchedule HostSchedule::of(FusionOp Fusion, const RegionPlan &Plan, const CodeTarget &Target) {
  bool ReducesRows = reduces(Plan, Axis::Row), ReducesColumns = reduces(Plan, Axis::Column);
  bool HasRows = ReducesRows || hasExtent(Fusion, Plan, Extent::PerRow);
  bool HasColumns = ReducesColumns || hasExtent(Fusion, Plan, Extent::PerColumn);
  int64_t Bytes = bytesPerElement(Fusion, Plan);

  HostSchedule S;
  S.lanes = lanesOf(Fusion, Plan, Target, HasRows, HasColumns);
  S.columns = Plan.columns();
  S.streams = Plan.elements() * Bytes > Target.cache_bytes;
  S.fetches = Plan.elements() * Bytes > CoreCacheBytes;
  S.turns = Plan.elements() * Bytes > Target.cache_bytes / TurningShare;
  if (!HasRows && !HasColumns) {
    S.width = std::min<int64_t>(Plan.elements(), llvm::bit_floor<uint64_t>(TileBytes / Bytes));
  } else {
    S.copies = HasRows ? 1 : mergedRows(Plan.rows(), Plan.columns(), S.lanes);
    S.width = S.columns * S.copies;
  }
  S.rows = llvm::divideCeil(Plan.elements(), S.width);
  S.lastWidth = Plan.elements() - (S.rows - 1) * S.width;

  S.rowsPerTile = std::max<int64_t>(1, TileBytes / (S.width * Bytes));
  if (ReducesColumns)
    // Whole visits: the same rows share one, and so one rounding in f32, however many a tile has.
    S.rowsPerTile = llvm::alignTo(std::max({S.rowsPerTile, RowsPerPartial / S.copies,
                                            static_cast<int64_t>(llvm::divideCeil(S.rows, MostPartials))}),
                                  rowsPerVisit);
  S.rowsPerTile = std::min(S.rowsPerTile, S.rows);

  S.columnsPerTile = S.width;
  // A value of a row is stored by one tile.
  bool GivesRows = ReducesRows || llvm::any_of(Fusion.getBody().front().getTerminator()->getOperands(),
                                               [&](Value V) { return Plan.extent(V) == Extent::PerRow; });
  // Rows that are not made of whole vectors are visited from end to end where there are enough of them.
  bool StaysWhole = S.width % S.lanes != 0 && !ReducesColumns && S.rows >= FewRows;
  if (int64_t Column = S.rowsPerTile * Bytes; !GivesRows && !StaysWhole && S.width * Column > 2 * TileBytes)
    S.columnsPerTile =
        std::min<int64_t>(S.width, std::max<int64_t>(256, llvm::bit_floor<uint64_t>(TileBytes / Column)));
  S.shifts = S.streams && Target.cpu == "x86-64-v4" && S.lanes == 16 && S.columnTiles() == 1;
  return S;
}

} // namespace mpc::codegen
