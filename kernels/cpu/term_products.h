// Products of f32 whose terms lie anywhere in their operands. Gradients of a convolution's weight are such products:
// their terms are the pixels that a tap of the window meets.
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

/// Where a term's rows begin in a block and its columns in a panel, in floats.
struct Term {
  std::int32_t left, right;
};

/// The first `rows` rows of a block times a panel.
struct TermProduct {
  const float* block;
  std::int64_t rows;
  const float* panel;
  absl::Span<const Term> terms;
};

/// sums = product, or sums += product where it `adds`. Each sum of the product is one chain of fused multiply-adds from
/// 0 on. Nothing but the terms is multiplied.
void SumTerms(const TermProduct& product, bool adds, float* sums);

/// to[j * stride + i] = rows[i][j] for 8 rows of 16 floats.
void TransposeEightRows(const float* const (&rows)[8], float* to, std::int64_t stride);

}  // namespace mpc::cpu
