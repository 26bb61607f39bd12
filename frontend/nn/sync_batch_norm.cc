#include "frontend/nn/sync_batch_norm.h"

#include <string>
#include <vector>

#include "frontend/graph/cell_stack.h"
#include "frontend/graph/context.h"
#include "frontend/graph/trace.h"

namespace mpc::nn {
namespace {

using mpc::internal::CellStack;
using mpc::internal::Trace;

struct ChannelStatistics {
  Tensor mean;
  Tensor variance;
};

/// The statistics of the rows of all processes, of those of each process's own rows, which are equally many.
ChannelStatistics MergeOfAll(Trace& trace, const ChannelStatistics& own, std::int64_t processes) {
  // f32 at every AMP level.
  const compiler::Scope scope = trace.cells().scope();
  const CellStack::FixedScope fixed(trace.cells(),
                                    {.path = scope.path, .pin = DType::kF32, .recompute = scope.recompute});
  const std::int64_t channels = own.mean.dim(0);
  // One message for both.
  const Tensor gathered = trace.Emit("all_gather", {{concat({own.mean, own.variance})}}, {{"processes", processes}})[0];
  const std::vector<Tensor> each = split(gathered, {channels, channels}, 1);
  const Tensor mean = reduce_mean(each[0], {0});
  return {mean, reduce_mean(each[1] + square(each[0] - mean), {0})};
}

class NormSynchronizer : public internal::MemberVisitor {
 public:
  void Visit(const std::string&, Cell& cell) override {
    if (auto* norm = dynamic_cast<BatchNorm*>(&cell); norm != nullptr) {
      norm->Synchronize();
      ++count_;
    }
    cell.VisitMembers(*this);
  }
  void Visit(const std::string&, Parameter&) override {}
  std::size_t count() const { return count_; }

 private:
  std::size_t count_ = 0;
};

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
  const auto [mean, variance] = MergeOfAll(trace, {own[1], own[2]}, processes);
  return {trace.Emit("batch_norm_infer", {{x, gamma, beta, mean, variance}}, attributes)[0], mean, variance};
}

std::size_t ConvertToSyncBatchNorm(Cell& network) {
  NormSynchronizer synchronizer;
  synchronizer.Visit("", network);
  return synchronizer.count();
}

}  // namespace mpc::nn
