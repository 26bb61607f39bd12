// For each row of a table, an ascending list of the indices that name it. gather's gradient sums lists, so that no sum
// depends on chance. Integer atomics count and place. The place of a list may change from run to run, but not its
// content.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/cuda/integers.h"
#include "kernels/cuda/launch.h"
#include "kernels/host_device.h"

namespace mpc::cuda {

/// Entries of a piece. Longer lists are summed piece by piece, by many teams at once.
inline constexpr unsigned kPieceRows = 64;

MPC_HOST_DEVICE inline unsigned PiecesOf(unsigned length) { return (length + kPieceRows - 1) / kPieceRows; }

/// The lists, in device memory. The list of `row` is order[ends[row] - counts[row]] .. order[ends[row] - 1].
struct GatherLists {
  unsigned* piece_count;  ///< pieces of all lists longer than kPieceRows
  unsigned* placed;       ///< entries of all lists
  unsigned* counts;       ///< entries of each row's list
  unsigned* ends;         ///< where each row's list ends
  unsigned* first_piece;  ///< for each row with a list longer than kPieceRows, its first piece; the others follow
  unsigned* row_of_piece;
  unsigned* unordered;  ///< the lists as they were filled
  unsigned* order;      ///< the lists
};

struct GatherListsPlan {
  std::int64_t rows = 0, count = 0, most_pieces = 0;

  /// The plan for `count` indices into a table of `rows` rows. UNIMPLEMENTED for 2^31 or more of either.
  static absl::StatusOr<GatherListsPlan> For(std::int64_t rows, std::int64_t count);
  /// Bytes of the lists, a multiple of 256.
  std::size_t bytes() const;
  /// The lists, laid out in `workspace`.
  GatherLists Lists(void* workspace) const;
  /// Fills the lists. Indices outside the table are in no list.
  absl::Status Enqueue(const IntegerSource& indices, const GatherLists& lists, LaunchQueue& queue) const;
};

}  // namespace mpc::cuda
