// The group of processes that one rank of a run is in.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/data/dataset.h"
#include "kernels/communicator.h"
#include "tools/mpc-bench/options.h"

namespace mpc::tools {

/// This process's place among the ranks of a run; a group of one where the run has one process. Leaves the group when
/// it goes.
class RankGroup {
 public:
  /// Where `options.ranks` is above 1, joins the group that the variables of torchrun name, over the transport
  /// "shared". Models that are made from then on train in it. Errors: a group of another size; those of
  /// distributed::Init.
  static absl::StatusOr<std::unique_ptr<RankGroup>> Join(const BenchOptions& options);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  /// Null where there is one process.
  Communicator* communicator() const { return communicator_.get(); }
  /// The rows of this rank in global batches: block r of as many as there are ranks.
  std::vector<data::Row> RowsOf(const std::vector<data::Row>& batches) const;
  /// Gives every rank the number of rank 0. Errors are those of the communicator.
  absl::Status TakeFromFirst(std::int64_t& number) const;

 private:
  explicit RankGroup(std::shared_ptr<Communicator> communicator) : communicator_(std::move(communicator)) {}
  std::shared_ptr<Communicator> communicator_;
};

}  // namespace mpc::tools
