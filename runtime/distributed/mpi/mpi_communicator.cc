#include "runtime/distributed/mpi/mpi_communicator.h"

#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/distributed/reduction_checks.h"

namespace mpc::distributed {

absl::StatusOr<std::unique_ptr<Communicator>> MpiCommunicator::Open(const MpiOptions& options) {
  if (options.timeout.count() <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("transport \"mpi\": the time limit is ", options.timeout.count(), " ms; it must be positive"));
  }
  absl::StatusOr<std::shared_ptr<MpiProcess>> process = MpiProcess::Enter();
  if (!process.ok()) return process.status();
  absl::StatusOr<std::unique_ptr<MpiExchange>> exchange = MpiExchange::Open(options.timeout, options.on_wait);
  if (!exchange.ok()) {
    (*process)->LeaveUnfinished();
    return exchange.status();
  }
  std::unique_ptr<MpiCommunicator> group(new MpiCommunicator(*std::move(process), *std::move(exchange)));
  if (options.size != 0 && options.size != group->size()) {
    group->Fail();
    return absl::FailedPreconditionError(absl::StrCat("transport \"mpi\": MPI has started ", group->size(),
                                                      " processes, but ", options.size, " are expected"));
  }
  return group;
}

MpiCommunicator::MpiCommunicator(std::shared_ptr<MpiProcess> process, std::unique_ptr<MpiExchange> exchange)
    : process_(std::move(process)),
      exchange_(std::move(exchange)),
      collectives_(std::make_unique<TreeCollectives>(exchange_.get())),
      own_sums_(std::make_unique<MpiAllReduce>(exchange_.get())) {}

MpiCommunicator::~MpiCommunicator() {
  if (!failed_) {
    exchange_->set_function("leaving the group");
    const absl::Status status = exchange_->Leave();
    failed_ = !status.ok();
    // No call is left that could return it. One piece, since other processes write there too.
    if (failed_) std::cerr << absl::StrCat("mpc: MPI is not ended, for ", status.message(), "\n") << std::flush;
  }
  if (!failed_) return;
  // MPI_Finalize waits for all processes without a limit, and after an error one may not come. MPI_Abort would end this
  // process before it has said what happened. So neither is called: mpirun ends the job when this process exits.
  process_->LeaveUnfinished();
  // A message may still be under way to this memory.
  static_cast<void>(collectives_.release());
  static_cast<void>(own_sums_.release());
}

void MpiCommunicator::Fail() {
  if (failed_) return;
  failed_ = true;
  exchange_->Fail();
}

template <typename Exchanges>
absl::Status MpiCommunicator::Call(Collective function, const Exchanges& exchanges) {
  if (!error_.ok()) return error_;
  exchange_->set_function(CollectiveName(function));
  error_ = exchanges();
  if (!error_.ok()) Fail();
  return error_;
}

absl::Status MpiCommunicator::AllReduce(absl::Span<const ReducedPart> parts) {
  return Call(Collective::kAllReduce, [&] { return collectives_->AllReduce(parts); });
}

absl::Status MpiCommunicator::AllReduceInAnyOrder(absl::Span<const ReducedPart> parts) {
  // The maximum of a check travels with sums of gradients. Reduced apart, it leaves them to MPI.
  const auto is_sum = [](const ReducedPart& part) { return part.reduction == Reduction::kSum; };
  any_order_sums_.clear();
  others_.clear();
  for (const ReducedPart& part : parts) (is_sum(part) ? any_order_sums_ : others_).push_back(part);
  if (!MpiAllReduce::Takes(any_order_sums_)) return AllReduce(parts);
  if (!others_.empty()) {
    if (absl::Status status = AllReduce(others_); !status.ok()) return status;
  }
  return Call(Collective::kAllReduce, [&] {
    absl::Status status = CheckAllReduce(any_order_sums_, size());
    return status.ok() ? own_sums_->Run(any_order_sums_) : status;
  });
}

absl::Status MpiCommunicator::ReduceScatter(const ReducedPart& part) {
  return Call(Collective::kReduceScatter, [&] { return collectives_->ReduceScatter(part); });
}

absl::Status MpiCommunicator::AllGather(const void* input, void* output, std::size_t bytes) {
  return Call(Collective::kAllGather, [&] { return collectives_->AllGather(input, output, bytes); });
}

absl::Status MpiCommunicator::Broadcast(void* data, std::size_t bytes, int root) {
  return Call(Collective::kBroadcast, [&] { return collectives_->Broadcast(data, bytes, root); });
}

absl::Status MpiCommunicator::Barrier() {
  return Call(Collective::kBarrier, [&] { return collectives_->Barrier(); });
}

}  // namespace mpc::distributed
