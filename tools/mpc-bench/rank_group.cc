#include "tools/mpc-bench/rank_group.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc/distributed.h"

namespace mpc::tools {
namespace {

/// Block `rank` of `ranks` along the rows of `batch`.
Tensor BlockOf(const Tensor& batch, int rank, int ranks) {
  TensorSpec spec = batch.spec();
  spec.shape[0] /= ranks;
  return Tensor::FromBytes(spec, batch.bytes().data() + static_cast<std::size_t>(rank) * spec.bytes(), spec.bytes());
}

}  // namespace

absl::StatusOr<std::unique_ptr<RankGroup>> RankGroup::Join(const BenchOptions& options) {
  if (options.ranks == 1) return std::unique_ptr<RankGroup>(new RankGroup(nullptr));
  absl::Status status = SetAutoParallelContext({.parallel_mode = ParallelMode::kDataParallel});
  if (status.ok()) status = distributed::Init({.transport = distributed::Transport::kShared});
  if (!status.ok()) return status;
  auto group = std::unique_ptr<RankGroup>(new RankGroup(distributed::internal::GetCommunicator()));
  if (distributed::GetRankSize() == options.ranks) return group;
  return absl::FailedPreconditionError(
      absl::StrCat("--single --ranks=", options.ranks, " is one process of ", options.ranks,
                   ", but RANK and WORLD_SIZE tell of ", distributed::GetRankSize(), "; mpc-bench sets them itself ",
                   "without --single, and so does torchrun --nproc-per-node=", options.ranks, " --no-python"));
}

RankGroup::~RankGroup() {
  communicator_ = nullptr;
  distributed::Finalize();
  ResetAutoParallelContext();
}

std::vector<data::Row> RankGroup::RowsOf(const std::vector<data::Row>& batches) const {
  if (communicator_ == nullptr) return batches;
  std::vector<data::Row> rows;
  for (const data::Row& batch : batches) {
    data::Row& row = rows.emplace_back();
    for (const Tensor& column : batch) row.push_back(BlockOf(column, communicator_->rank(), communicator_->size()));
  }
  return rows;
}

absl::Status RankGroup::TakeFromFirst(std::int64_t& number) const {
  return communicator_ == nullptr ? absl::OkStatus() : communicator_->Broadcast(&number, sizeof(number), 0);
}

}  // namespace mpc::tools
