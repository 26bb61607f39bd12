// Parallel loops over independent tasks, and kernels made from a function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/cpu/kernel.h"

namespace mpc::cpu {

/// Does the tasks [begin, end) of a loop.
using TaskRange = absl::FunctionRef<void(std::int64_t begin, std::int64_t end)>;

/// Calls run(begin, end) for ranges that together are [0, count), on NumThreads() threads of our own. The calling
/// thread runs the loop alone where its `work` (a unit is about one element) is less than starting other threads costs.
/// It also does so within a loop, beside a loop of another thread, and on a machine that is too busy (join_history.h).
void RunTasks(std::int64_t count, std::int64_t work, TaskRange run);

/// Does the tasks [begin, end) of a loop with what belongs to `slot`, such as scratch memory.
using SlotRange = absl::FunctionRef<void(std::int64_t begin, std::int64_t end, std::int64_t slot)>;

/// RunTasks on at most `slots` threads. Ranges that run at a time have different slots in [0, slots).
void RunTasksInSlots(std::int64_t count, std::int64_t slots, std::int64_t work, SlotRange run);

/// Calls body(0) .. body(count - 1) in an order that depends on nothing; tasks must not write what others touch. A
/// task's result may not depend on which thread runs it: that is what makes results independent of the thread count.
template <typename Body>
void ParallelFor(std::int64_t count, std::int64_t work, const Body& body) {
  RunTasks(count, work, [&body](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(i);
  });
}

/// Splits `total` elements into blocks of `block` and calls body(begin, size) for each.
template <typename Body>
void ParallelBlocks(std::int64_t total, std::int64_t block, const Body& body) {
  ParallelFor((total + block - 1) / block, total, [&](std::int64_t i) {
    const std::int64_t begin = i * block;
    body(begin, begin + block < total ? block : total - begin);
  });
}

/// A kernel whose `Run` is `function(const KernelOperands&)`; what it captured is its configuration.
template <typename Function>
class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(Function function, std::size_t workspace) : function_(std::move(function)), workspace_(workspace) {}
  std::size_t workspace_bytes() const override { return workspace_; }
  void Run(const KernelOperands& operands) override { function_(operands); }

 private:
  Function function_;
  std::size_t workspace_;
};

template <typename Function>
absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(Function function, std::size_t workspace = 0) {
  return std::unique_ptr<Kernel>(std::make_unique<FunctionKernel<Function>>(std::move(function), workspace));
}

}  // namespace mpc::cpu
