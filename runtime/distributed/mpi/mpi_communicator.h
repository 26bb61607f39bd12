// A group of processes that MPI has started.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/communicator.h"
#include "runtime/distributed/collective_call.h"
#include "runtime/distributed/mpi/mpi_all_reduce.h"
#include "runtime/distributed/mpi/mpi_exchange.h"
#include "runtime/distributed/mpi/mpi_library.h"
#include "runtime/distributed/mpi/mpi_process.h"
#include "runtime/distributed/tree_reduction.h"

namespace mpc::distributed {

/// Sums of AllReduce are those of the tree over ranks, and not MPI_Allreduce's, whose order is MPI's own. Those of
/// AllReduceInAnyOrder are MPI's, where all sums of a message have one floating type. It has no thread.
class MpiCommunicator final : public Communicator {
 public:
  /// OpenMpiCommunicator inside libmpc_mpi.so.
  static absl::StatusOr<std::unique_ptr<Communicator>> Open(const MpiOptions& options);

  ~MpiCommunicator() override;

  std::string_view transport() const override { return "mpi"; }
  int rank() const override { return exchange_->rank(); }
  int size() const override { return exchange_->size(); }
  absl::Status status() const override { return error_; }
  std::chrono::milliseconds time_limit() const override { return exchange_->time_limit(); }
  absl::Status LookForLoss() override { return status().ok() ? exchange_->LookForLoss() : status(); }

  absl::Status AllReduce(absl::Span<const ReducedPart> parts) override;
  absl::Status AllReduceInAnyOrder(absl::Span<const ReducedPart> parts) override;
  absl::Status ReduceScatter(const ReducedPart& part) override;
  absl::Status AllGather(const void* input, void* output, std::size_t bytes) override;
  absl::Status Broadcast(void* data, std::size_t bytes, int root) override;
  absl::Status Barrier() override;

 private:
  MpiCommunicator(std::shared_ptr<MpiProcess> process, std::unique_ptr<MpiExchange> exchange);

  void Fail();
  /// Calls `exchanges`, whose messages are those of `function`. The first error is kept, and told to all processes.
  template <typename Exchanges>
  absl::Status Call(Collective function, const Exchanges& exchanges);

  std::shared_ptr<MpiProcess> process_;
  std::unique_ptr<MpiExchange> exchange_;
  std::unique_ptr<TreeCollectives> collectives_;
  std::unique_ptr<MpiAllReduce> own_sums_;
  std::vector<ReducedPart> any_order_sums_, others_;  ///< parts of a message, whose memory is used again
  absl::Status error_;
  bool failed_ = false;
};

}  // namespace mpc::distributed
