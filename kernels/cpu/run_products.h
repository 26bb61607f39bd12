// Products of f32 whose terms lie in runs: so many that follow each other in both operands. Gradients of a
// convolution's weight are such products. Their terms are pixels, and a run is a row of pixels that a tap of the window
// meets.
//
// Left operands are packed into blocks of 6 rows, right ones into panels of 16 columns (row_products.h). The sums of a
// block and a panel fill the sixteen registers of AVX.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/cpu/row_products.h"

namespace mpc::cpu {

/// Rows of a block of a left operand.
inline constexpr std::int64_t kBlockRows = 6;
/// Sums of a block and a panel, row by row.
inline constexpr std::int64_t kBlockSums = kBlockRows * kPanel;

/// Where terms begin in a block and in a panel, in floats, and how many there are.
struct TermRun {
  std::int64_t left, right, count;
};

/// The first `rows` rows of a block times a panel. The rows of a term follow each other, terms of a run are `step`
/// apart.
struct RunProduct {
  const float* block;
  std::int64_t rows, step;
  const float* panel;
  absl::Span<const TermRun> runs;
};

/// sums = product, or sums += product where it `adds`. Each sum is one chain of fused multiply-adds from 0 on. No
/// number outside of the runs is multiplied.
void SumRuns(const RunProduct& product, bool adds, float* sums);

/// to[j * stride + i] = rows[i][j] for 8 rows of 16 floats.
void TransposeEightRows(const float* const (&rows)[8], float* to, std::int64_t stride);

}  // namespace mpc::cpu
