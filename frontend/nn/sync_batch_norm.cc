#include "frontend/nn/sync_batch_norm.h"

#include <string>
#include <vector>

#include "frontend/graph/cell_members.h"
#include "frontend/graph/cell_stack.h"
#include "frontend/graph/context.h"
#include "frontend/graph/trace.h"

namespace mpc::nn {
namespace {

using mpc::internal::CellStack;
using mpc::internal::Trace;

/// The statistics of the rows of all processes.
struct ChannelStatistics {
  Tensor mean;
  Tensor variance;
  Tensor unbiased_variance;
};

/// Merges `mean` and `variance` of `count` elements a channel, which are those of this process's own rows, with the
/// others'.
ChannelStatistics MergeOfAll(Trace& trace, const Tensor& mean, const Tensor& variance, std::int64_t count,
                             std::int64_t processes) {
  // f32 at every AMP level.
  const compiler::Scope scope = trace.cells().scope();
  const CellStack::FixedScope fixed(trace.cells(),
                                    {.path = scope.path, .pin = DType::kF32, .recompute = scope.recompute});
  const std::int64_t channels = mean.dim(0);
  const Tensor elements = ops::Fill(DType::kF32, {1}, static_cast<double>(count));
  // One message for all.
  const Tensor gathered =
      trace.Emit("all_gather", {{concat({mean, variance, elements})}}, {{"processes", processes}})[0];
  const std::vector<Tensor> each = split(gathered, {channels, channels, 1}, 1);
  const Tensor counts = stop_gradient(each[2]), all = reduce_sum(counts);
  // Where processes have equally many rows, each has 1 / N exactly for N of 2, 4, ...
  const Tensor shares = counts / all;
  const Tensor merged_mean = reduce_sum(shares * each[0], {0});
  const Tensor merged_variance = reduce_sum(shares * (each[1] + square(each[0] - merged_mean)), {0});
  return {merged_mean, merged_variance, merged_variance * (all / (all - 1.0))};
}

}  // namespace

void BatchNorm::Synchronize() {
  synchronized_ = true;
  mpc::internal::StructureChanged();
}

std::vector<Tensor> BatchNorm::NormaliseByAll(const Tensor& x, std::int64_t processes) {
  Trace& trace = *Trace::Current();
  const Attributes attributes = {{"epsilon", eps_}};
  const Tensor one = ops::Fill(DType::kF32, {num_features_}, 1), zero = ops::Fill(DType::kF32, {num_features_}, 0);
  const std::vector<Tensor> own = trace.Emit("batch_norm_train", {{x, one, zero}}, attributes);
  const std::int64_t count = x.size() / num_features_;
  const auto [mean, variance, unbiased] = MergeOfAll(trace, own[1], own[2], count, processes);
  return {trace.Emit("batch_norm_infer", {{x, gamma, beta, mean, variance}}, attributes)[0], mean, unbiased};
}

std::size_t ConvertToSyncBatchNorm(Cell& network) {
  std::size_t count = 0;
  internal::ForEachCell(network, [&](Cell& cell) {
    auto* norm = dynamic_cast<BatchNorm*>(&cell);
    if (norm == nullptr) return;
    norm->Synchronize();
    ++count;
  });
  return count;
}

}  // namespace mpc::nn
