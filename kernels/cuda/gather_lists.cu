#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/device_language.h"
#include "kernels/cuda/gather_lists.h"

namespace mpc::cuda {
namespace {

constexpr int kListThreads = 256;
/// Threads of a block that orders a long list alone, and their warps.
constexpr int kLongListThreads = 1024, kLongListWarps = kLongListThreads / kWarpSize;
/// Entries from which on a list is long: finding each rank in the list itself takes the square of them.
constexpr unsigned kLongList = 4096;
/// Blocks that look for long lists. A prime: first pieces of lists of one length do not meet in few blocks.
constexpr std::int64_t kMostLongListBlocks = 1021;

template <typename Visit>
__device__ __forceinline__ void ForEachIndex(std::int64_t count, const Visit& visit) {
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += threads) {
    visit(i);
  }
}

__device__ __forceinline__ bool Inside(std::int64_t row, std::int64_t rows) { return row >= 0 && row < rows; }

__global__ void __launch_bounds__(kListThreads)
    CountKernel(GatherListsPlan plan, IntegerSource indices, GatherLists lists) {
  AwaitEarlierLaunches();
  ForEachIndex(plan.count, [&](std::int64_t i) {
    const std::int64_t row = indices.Load(i);
    if (Inside(row, plan.rows)) atomicAdd(lists.counts + row, 1u);
  });
}

/// Reserves `amount` entries for this lane behind `*total` and returns where they begin. The whole warp enlarges
/// `*total` by one atomic operation.
__device__ __forceinline__ unsigned Reserve(unsigned* total, unsigned amount) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  unsigned sum = amount;
  for (int distance = 1; distance < kWarpSize; distance *= 2) {
    const unsigned before = __shfl_sync(kFullWarp, sum, lane >= distance ? lane - distance : lane);
    if (lane >= distance) sum += before;
  }
  unsigned begin = 0;
  if (lane == kWarpSize - 1 && sum > 0) begin = atomicAdd(total, sum);
  return __shfl_sync(kFullWarp, begin, kWarpSize - 1) + sum - amount;
}

/// Reserves room for each list and for the pieces of the long ones. Until the lists are filled, `ends` are their
/// beginnings.
__global__ void __launch_bounds__(kListThreads) ReserveKernel(GatherListsPlan plan, GatherLists lists) {
  AwaitEarlierLaunches();
  // Whole warps: the rows behind the last one have no entries.
  const std::int64_t padded = (plan.rows + kWarpSize - 1) / kWarpSize * kWarpSize;
  ForEachIndex(padded, [&](std::int64_t row) {
    const unsigned length = row < plan.rows ? lists.counts[row] : 0;
    const unsigned pieces = length > kPieceRows ? PiecesOf(length) : 0;
    const unsigned begin = Reserve(lists.placed, length);
    const unsigned first_piece = Reserve(lists.piece_count, pieces);
    if (row >= plan.rows) return;
    lists.ends[row] = begin;
    if (pieces == 0) return;
    lists.first_piece[row] = first_piece;
    for (unsigned piece = 0; piece < pieces; ++piece) {
      lists.row_of_piece[first_piece + piece] = static_cast<unsigned>(row);
    }
  });
}

__global__ void __launch_bounds__(kListThreads)
    FillKernel(GatherListsPlan plan, IntegerSource indices, GatherLists lists) {
  AwaitEarlierLaunches();
  ForEachIndex(plan.count, [&](std::int64_t i) {
    const std::int64_t row = indices.Load(i);
    if (Inside(row, plan.rows)) lists.unordered[atomicAdd(lists.ends + row, 1u)] = static_cast<unsigned>(i);
  });
}

/// Each entry of a list that is not long goes to its rank: the number of smaller ones in its list.
__global__ void __launch_bounds__(kListThreads) OrderKernel(IntegerSource indices, GatherLists lists) {
  AwaitEarlierLaunches();
  const unsigned placed = *lists.placed;
  ForEachIndex(placed, [&](std::int64_t slot) {
    const unsigned entry = lists.unordered[slot];
    const std::int64_t row = indices.Load(entry);
    const unsigned end = lists.ends[row], length = lists.counts[row], begin = end - length;
    if (length >= kLongList) return;
    unsigned rank = 0;
    for (unsigned other = begin; other < end; ++other) rank += lists.unordered[other] < entry ? 1 : 0;
    lists.order[begin + rank] = entry;
  });
}

/// The long lists. A block finds the entries of one among all indices. Each warp has a range of them: it counts the
/// entries there, and places them behind those of the warps before it.
__global__ void __launch_bounds__(kLongListThreads)
    OrderLongKernel(GatherListsPlan plan, IntegerSource indices, GatherLists lists) {
  AwaitEarlierLaunches();
  MPC_SHARED_ARRAY(unsigned, of_warp, kLongListWarps);
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize, lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const std::int64_t per_warp =
      (plan.count + kLongListThreads - 1) / kLongListThreads * static_cast<std::int64_t>(kWarpSize);
  const std::int64_t first = warp * per_warp;
  const std::int64_t last = first + per_warp < plan.count ? first + per_warp : plan.count;
  const unsigned pieces = *lists.piece_count;
  for (unsigned piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const unsigned row = lists.row_of_piece[piece], length = lists.counts[row];
    if (length < kLongList || lists.first_piece[row] != piece) continue;
    const auto entries_at = [&](std::int64_t begin) {
      const std::int64_t i = begin + lane;
      return __ballot_sync(kFullWarp, i < last && indices.Load(i) == static_cast<std::int64_t>(row));
    };
    unsigned entries = 0;
    for (std::int64_t begin = first; begin < last; begin += kWarpSize) entries += __popc(entries_at(begin));
    __syncthreads();  // all reads of the list before are done
    if (lane == 0) of_warp[warp] = entries;
    __syncthreads();
    unsigned next = lists.ends[row] - length;
    for (int before = 0; before < warp; ++before) next += of_warp[before];
    for (std::int64_t begin = first; begin < last; begin += kWarpSize) {
      const unsigned found = entries_at(begin);
      if (found >> lane & 1u)
        lists.order[next + __popc(found & ((1u << lane) - 1))] = static_cast<unsigned>(begin + lane);
      next += __popc(found);
    }
  }
}

}  // namespace

absl::StatusOr<GatherListsPlan> GatherListsPlan::For(std::int64_t rows, std::int64_t count) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (rows > kMost || count > kMost) {
    return absl::UnimplementedError(absl::StrCat("mpc.gather_grad and mpc.scatter_add take at most ", kMost,
                                                 " rows and indices on CUDA, got ", rows, " and ", count));
  }
  // A list with more than one piece has at least kPieceRows / 2 entries for each.
  return GatherListsPlan{rows, count, 2 * count / kPieceRows + 1};
}

std::size_t GatherListsPlan::bytes() const {
  constexpr std::size_t kAlignment = 256;
  const auto words = static_cast<std::size_t>(2 + 3 * rows + most_pieces + 2 * count);
  return (words * sizeof(unsigned) + kAlignment - 1) / kAlignment * kAlignment;
}

GatherLists GatherListsPlan::Lists(void* workspace) const {
  auto* next = static_cast<unsigned*>(workspace);
  const auto take = [&next](std::int64_t words) {
    unsigned* taken = next;
    next += words;
    return taken;
  };
  GatherLists lists;
  // The counters that start at zero lie together.
  lists.piece_count = take(1);
  lists.placed = take(1);
  lists.counts = take(rows);
  lists.ends = take(rows);
  lists.first_piece = take(rows);
  lists.row_of_piece = take(most_pieces);
  lists.unordered = take(count);
  lists.order = take(count);
  return lists;
}

absl::Status GatherListsPlan::Enqueue(const IntegerSource& indices, const GatherLists& lists,
                                      LaunchQueue& queue) const {
  LaunchShape of_indices, of_rows;
  of_indices.threads = of_rows.threads = kListThreads;
  of_indices.blocks_x = BlocksFor(count, kListThreads);
  of_rows.blocks_x = BlocksFor(rows, kListThreads);
  const auto zeros = static_cast<std::size_t>(2 + rows) * sizeof(unsigned);
  if (absl::Status status = queue.Fill(lists.piece_count, 0, zeros); !status.ok()) return status;
  if (absl::Status status = launch(queue, &CountKernel, of_indices, *this, indices, lists); !status.ok()) return status;
  if (absl::Status status = launch(queue, &ReserveKernel, of_rows, *this, lists); !status.ok()) return status;
  if (absl::Status status = launch(queue, &FillKernel, of_indices, *this, indices, lists); !status.ok()) return status;
  if (absl::Status status = launch(queue, &OrderKernel, of_indices, indices, lists); !status.ok()) return status;
  if (count < kLongList) return absl::OkStatus();
  LaunchShape of_long_lists;
  of_long_lists.threads = kLongListThreads;
  of_long_lists.blocks_x = BlocksFor(std::min(most_pieces, kMostLongListBlocks), 1);
  return launch(queue, &OrderLongKernel, of_long_lists, *this, indices, lists);
}

}  // namespace mpc::cuda
