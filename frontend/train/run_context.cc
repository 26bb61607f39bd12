#include "frontend/train/run_context.h"

#include <limits>

namespace mpc {

float RunContext::loss() const {
  if (!loss_ && read_loss_) loss_ = read_loss_();
  return loss_.value_or(std::numeric_limits<float>::quiet_NaN());
}

void RunContext::set_loss(float loss) {
  loss_ = loss;
  read_loss_ = nullptr;
}

void RunContext::set_loss(std::function<float()> read) {
  loss_.reset();
  read_loss_ = std::move(read);
}

absl::Status RunContext::SaveCheckpoint(const std::string& path) const {
  if (save_ == nullptr) return absl::FailedPreconditionError("there is no Model whose state could be saved");
  return save_(path);
}

}  // namespace mpc
