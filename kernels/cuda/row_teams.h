// Rows that threads share: a team of neighbouring threads takes a row, and steps along it in units (single elements, or
// vectors of them).
#pragma once

#include <cstdint>

#include "kernels/cuda/launch.h"

namespace mpc::cuda {

inline constexpr int kTeamThreads = 256;

struct RowTeams {
  std::int64_t rows = 0, units = 1;
  int lanes = 1;  ///< threads of a team: a power of two, at most kTeamThreads

  static RowTeams For(std::int64_t rows, std::int64_t units) {
    RowTeams teams{rows, units, 1};
    while (teams.lanes < kTeamThreads && teams.lanes < units) teams.lanes *= 2;
    return teams;
  }

  LaunchShape Shape() const {
    LaunchShape shape;
    shape.threads = kTeamThreads;
    shape.blocks_x = BlocksFor(rows, kTeamThreads / lanes);
    return shape;
  }

  /// `visit(row, lane)` for each row of this thread's team.
  template <typename Visit>
  __device__ __forceinline__ void ForEachRow(std::int64_t row_count, const Visit& visit) const {
    const int lane = static_cast<int>(threadIdx.x) % lanes;
    const std::int64_t teams = kTeamThreads / lanes;
    for (std::int64_t row = blockIdx.x * teams + static_cast<int>(threadIdx.x) / lanes; row < row_count;
         row += gridDim.x * teams) {
      visit(row, lane);
    }
  }
};

}  // namespace mpc::cuda
