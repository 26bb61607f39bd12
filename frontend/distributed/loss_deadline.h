// The end of a process that goes on after the loss of another one. Not part of the public API.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

#include "absl/status/status.h"

namespace mpc::distributed::internal {

/// Gives this process a limited time once its group has lost a rank. So a process does not outlive its group, even if
/// it computes for long or waits for something else.
class LossDeadline {
 public:
  /// `end` is called when the time is over; by default it ends the process with exit status 1.
  explicit LossDeadline(std::chrono::milliseconds limit, std::function<void()> end = nullptr);
  /// Cancels.
  ~LossDeadline();
  LossDeadline(const LossDeadline&) = delete;
  LossDeadline& operator=(const LossDeadline&) = delete;

  /// What to call with a loss, on a thread that may wait: it returns when the time is over or Cancel was called. When
  /// the time is over, it writes the loss to std::cerr and calls `end`. It may be called when this object is gone.
  std::function<void(const absl::Status&)> Watcher() const;

  /// From now on the process is not ended.
  void Cancel();

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool cancelled = false;  ///< guarded by mutex
  };

  const std::chrono::milliseconds limit_;
  const std::function<void()> end_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace mpc::distributed::internal
