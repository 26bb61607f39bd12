#include "tools/mpc-train/hash_log.h"

#include "absl/strings/str_cat.h"
#include "tools/support/state_hashes.h"

namespace mpc::tools {

void HashLog::Write(const std::string& line, RunContext& context) {
  file_ << line << std::flush;
  if (!file_) context.Fail(absl::UnavailableError(absl::StrCat("cannot write the hashes to ", path_)));
}

void HashLog::OnTrainBegin(RunContext& context) {
  last_step_ = context.global_step;
  file_.open(path_, std::ios::trunc | std::ios::binary);
  Write(absl::StrCat(kStateHashesHead, kStateHashesVersion, "\n"), context);
}

void HashLog::OnStepEnd(RunContext& context) {
  // While gradients are accumulated the global step stands still.
  if (context.global_step == last_step_ || !context.state_hash.has_value()) return;
  last_step_ = context.global_step;
  Write(StateHashLine(context.global_step, *context.state_hash), context);
}

}  // namespace mpc::tools
