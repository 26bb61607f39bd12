// A group whose sums have the transport's own order of additions.
#pragma once

#include <chrono>
#include <memory>
#include <string_view>
#include <utility>

#include "kernels/communicator.h"

namespace mpc::distributed {

/// The group of another Communicator, with which it may be used in turn: a call of either is one call of the group.
/// AllReduce is AllReduceInAnyOrder of the other one. All else is as there.
class AnyOrderCommunicator final : public Communicator {
 public:
  explicit AnyOrderCommunicator(std::shared_ptr<Communicator> group) : group_(std::move(group)) {}

  std::string_view transport() const override { return group_->transport(); }
  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  absl::Status status() const override { return group_->status(); }
  std::chrono::milliseconds time_limit() const override { return group_->time_limit(); }
  absl::Status LookForLoss() override { return group_->LookForLoss(); }
  bool adds_in_any_order() const override { return true; }

  absl::Status AllReduce(absl::Span<const ReducedPart> parts) override { return group_->AllReduceInAnyOrder(parts); }
  absl::Status AllReduceInAnyOrder(absl::Span<const ReducedPart> parts) override {
    return group_->AllReduceInAnyOrder(parts);
  }
  absl::Status ReduceScatter(const ReducedPart& part) override { return group_->ReduceScatter(part); }
  absl::Status AllGather(const void* input, void* output, std::size_t bytes) override {
    return group_->AllGather(input, output, bytes);
  }
  absl::Status Broadcast(void* data, std::size_t bytes, int root) override {
    return group_->Broadcast(data, bytes, root);
  }
  absl::Status Barrier() override { return group_->Barrier(); }

 private:
  std::shared_ptr<Communicator> group_;
};

}  // namespace mpc::distributed
