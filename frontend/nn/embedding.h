// Rows of a trained table by index.
#pragma once

#include <cstdint>

#include "frontend/graph/cell.h"
#include "frontend/graph/initializer.h"
#include "frontend/graph/ops.h"

namespace mpc::nn {

struct EmbeddingOptions {
  Initializer embedding_table = Normal();  ///< N(0, 0.01^2)
};

/// Integer indices (i32 or i64) of any shape -> the same shape with `embedding_size` behind it. embedding_table
/// [vocab_size, embedding_size]. An index outside [0, vocab_size) gives a row of NaN, so that the loss shows it.
class Embedding : public Cell {
 public:
  MPC_CELL(Embedding, embedding_table)
  Embedding(std::int64_t vocab_size, std::int64_t embedding_size, const EmbeddingOptions& options = {});
  Tensor Construct(const Tensor& indices);
  Parameter embedding_table;
};

}  // namespace mpc::nn
