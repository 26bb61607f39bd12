// Which indices name which row of a table, as one list a row, ascending: gather's gradient sums lists, so that no sum
// depends on chance. Integer atomics count and place; where a list lies may change from run to run, what it holds not.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/cuda/integers.h"
#include "kernels/cuda/launch.h"
#include "kernels/host_device.h"

namespace mpc::cuda {

/// Entries of a piece: longer lists are summed piece by piece, by many teams at once.
inline constexpr unsigned kPieceRows = 64;

MPC_HOST_DEVICE inline unsigned PiecesOf(unsigned length) { return (length + kPieceRows - 1) / kPieceRows; }

/// In device memory. The list of `row` is order[ends[row] - counts[row]] .. order[ends[row] - 1].
struct GatherLists {
  unsigned* piece_count;  ///< of all lists longer than kPieceRows
  unsigned* placed;       ///< entries of all lists
  unsigned* counts;       ///< of each row
  unsigned* ends;         ///< of each row
  unsigned* first_piece;  ///< of each row whose list is longer than kPieceRows; its others follow
  unsigned* row_of_piece;
  unsigned* unordered;  ///< the lists as they were filled
  unsigned* order;      ///< the lists
};

struct GatherListsPlan {
  std::int64_t rows = 0, count = 0, most_pieces = 0;

  /// For `count` indices into a table of `rows` rows. UNIMPLEMENTED for 2^31 or more of either.
  static absl::StatusOr<GatherListsPlan> For(std::int64_t rows, std::int64_t count);
  /// A multiple of 256.
  std::size_t bytes() const;
  /// Laid out in `workspace`.
  GatherLists Lists(void* workspace) const;
  /// Indices outside the table are in no list.
  absl::Status Enqueue(const IntegerSource& indices, const GatherLists& lists, LaunchQueue& queue) const;
};

}  // namespace mpc::cuda
