// Processes that run one function in lockstep, each in a thread of the interpreter.
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/reference/reference.h"

#include <atomic>
#include <barrier>
#include <string_view>
#include <vector>

namespace mpc {

/// What processes exchange in collective operations. Each process calls collect() as often as the others.
class ProcessGrid {
public:
  explicit ProcessGrid(int64_t size) : given(size), rendezvous(size) {}

  int64_t getSize() const { return int64_t(given.size()); }
  /// The tensors that all processes give, in the order of ranks, once each has given its own. None where a process has
  /// left.
  std::vector<reference::Tensor> collect(int64_t rank, const reference::Tensor &own);
  /// Ends the part of a process that fails, so that the others do not wait for it.
  void leave();

private:
  std::vector<reference::Tensor> given;
  std::barrier<> rendezvous;
  std::atomic<bool> isBroken = false;
};

/// The result of collective operation \p name, as kernels have it, of what processes \p gave. \p rank is that of the
/// process. Each addition of a sum rounds as \p rounding says. Errors: no collective operation has this name.
absl::StatusOr<std::vector<double>> runCollective(std::string_view name, int64_t rank,
                                                  absl::Span<const reference::Tensor> gave,
                                                  reference::Rounding rounding);

} // namespace mpc
