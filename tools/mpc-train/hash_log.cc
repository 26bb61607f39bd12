#include "tools/mpc-train/hash_log.h"

#include <filesystem>
#include <iostream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "runtime/atomic_file.h"
#include "tools/support/state_hashes.h"

namespace mpc::tools {

absl::StatusOr<std::string> HashLog::LinesBefore() const {
  std::string lines;
  std::error_code ignored;
  if (last_step_ == 0 || !std::filesystem::is_regular_file(path_, ignored)) return lines;
  const absl::StatusOr<StateHashes> hashes = ReadStateHashes(path_);
  if (!hashes.ok()) return hashes.status();
  for (const auto& [step, hash] : *hashes) {
    if (step <= last_step_) lines += StateHashLine(step, hash);
  }
  return lines;
}

void HashLog::OnTrainBegin(RunContext& context) {
  last_step_ = context.global_step;
  const absl::StatusOr<std::string> before = LinesBefore();
  if (!before.ok()) return context.Fail(before.status());
  const std::string begin = absl::StrCat(kStateHashesHead, kStateHashesVersion, "\n", *before);
  context.Fail(runtime::WriteTextFile(path_, begin));
  bytes_ = begin.size();
  file_.open(path_, std::ios::app | std::ios::binary);
}

void HashLog::OnStepEnd(RunContext& context) {
  // While gradients are accumulated the global step stands still.
  if (context.global_step == last_step_ || !context.state_hash.has_value()) return;
  last_step_ = context.global_step;
  if (!file_) return;
  const std::string line = StateHashLine(last_step_, *context.state_hash);
  file_ << line << std::flush;
  if (file_) {
    bytes_ += line.size();
    return;
  }
  std::cerr << "warning: '" << path_ << "' cannot be written; it has no hashes from step " << last_step_
            << " on; training goes on\n";
  // A part of the line may be there, and closing tries to write the rest.
  file_.close();
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path_, ignored)) std::filesystem::resize_file(path_, bytes_, ignored);
}

}  // namespace mpc::tools
