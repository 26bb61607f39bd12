#include "frontend/nn/embedding.h"

namespace mpc::nn {

Embedding::Embedding(std::int64_t vocab_size, std::int64_t embedding_size, const EmbeddingOptions& options)
    : embedding_table({vocab_size, embedding_size}, options.embedding_table) {}

Tensor Embedding::Construct(const Tensor& indices) { return gather(embedding_table, indices); }

}  // namespace mpc::nn
