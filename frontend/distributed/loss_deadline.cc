#include "frontend/distributed/loss_deadline.h"

#include <unistd.h>

#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/distributed/socket.h"

namespace mpc::distributed::internal {

LossDeadline::LossDeadline(std::chrono::milliseconds limit, std::function<void()> end)
    : limit_(limit), end_(end ? std::move(end) : [] { ::_exit(1); }) {}

LossDeadline::~LossDeadline() { Cancel(); }

void LossDeadline::Cancel() {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->cancelled = true;
  state_->changed.notify_all();
}

std::function<void(const absl::Status&)> LossDeadline::Watcher() const {
  return [state = state_, limit = limit_, end = end_](const absl::Status& loss) {
    std::unique_lock<std::mutex> lock(state->mutex);
    if (state->changed.wait_for(lock, limit, [&state] { return state->cancelled; })) return;
    // One piece, since other processes write there too.
    std::cerr << absl::StrCat("mpc: this process is ended with status 1, ", runtime::SecondsText(limit),
                              " after its group has failed: ", loss.message(), "\n")
              << std::flush;
    end();
  };
}

}  // namespace mpc::distributed::internal
