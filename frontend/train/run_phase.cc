#include "frontend/train/run_phase.h"

#include "absl/strings/str_cat.h"

namespace mpc::internal {

absl::Status RunPhase::CheckNoRun(const char* what) const {
  if (!trains_ || resumes_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(what,
                   " is called while this Model trains; in a callback "
                   "RunContext::trained()->SetWeights sets weights, and ",
                   "RunContext::trained()->Resume continues a checkpoint in OnTrainBegin"));
}

}  // namespace mpc::internal
