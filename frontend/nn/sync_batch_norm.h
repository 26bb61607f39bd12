// Batch normalisation by the rows of all processes that train together.
#pragma once

#include <cstddef>
#include <cstdint>

#include "frontend/nn/layers.h"

namespace mpc::nn {

/// Batch normalisation of [N, C] or [N, C, H, W] by the rows of all processes: BatchNorm1d or BatchNorm2d of their
/// batches put together. MindSpore's and PyTorch's nn.SyncBatchNorm.
///
/// Each process computes mean and variance of its own rows, and gathers those of the others with their numbers of rows.
/// Processes may have different numbers. Statistics are merged in f32 and in the order of ranks. A process's share of
/// the rows is the weight of its mean, and of its variance plus the squared distance of its mean. The formula is that
/// of Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979. So
/// all processes have the same statistics, and running statistics of the same bits. Gradients by x follow the rows of
/// all processes. Those by gamma and beta are those of a process's own rows, which a step in data parallel averages. At
/// an AMP level, x and y are as BatchNorm has them, and all else is f32.
///
/// In one process, outside training, and in what a Model measures, it is BatchNorm. A step that reaches it runs in all
/// processes at once. Errors: a Model whose accumulation_steps is more than 1; those of BatchNorm.
class SyncBatchNorm : public BatchNorm {
 public:
  MPC_CELL(SyncBatchNorm)
  explicit SyncBatchNorm(std::int64_t num_features, const BatchNormOptions& options = {})
      : BatchNorm(num_features, /*rank=*/0, options) {
    Synchronize();
  }
  Tensor Construct(const Tensor& x) { return BatchNorm::Construct(x); }
};

/// Makes every BatchNorm1d and BatchNorm2d below `network`, and `network` itself, normalise as SyncBatchNorm does, from
/// the next call on. Their names, Parameters and running statistics stay. Returns how many there are. PyTorch's
/// convert_sync_batchnorm and apex's convert_syncbn_model, which return another network.
std::size_t ConvertToSyncBatchNorm(Cell& network);

}  // namespace mpc::nn
