#include "tools/mpc-run/replay.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "frontend/state/step_capsule.h"
#include "kernels/cpu/kernel.h"

namespace mpc::tools {
namespace {

/// "2.3012" of a number; of more elements how many there are, how many are not finite, and the largest of the others.
std::string Summary(const Tensor& value) {
  const std::vector<float> elements = value.ToFloats();
  if (elements.size() == 1) return absl::StrFormat("%.9g", elements.front());
  std::size_t bad = 0;
  float largest = 0;
  for (const float element : elements) {
    if (!std::isfinite(element)) ++bad;
    if (std::isfinite(element)) largest = std::max(largest, std::abs(element));
  }
  return absl::StrCat(value.spec().ToString(), ", ", bad, " not finite, largest of the others ", largest);
}

std::string OriginOf(const StepCapsule& capsule) {
  std::string text;
  for (const char* key : {"model", "mpc", "device", "threads"}) {
    const auto entry = capsule.origin.find(key);
    if (entry != capsule.origin.end()) absl::StrAppend(&text, ", ", key, " ", entry->second);
  }
  return text;
}

}  // namespace

absl::StatusOr<ReplayReport> ReplayCapsule(const RunOptions& options) {
  const absl::StatusOr<StepCapsule> capsule = ReadStepCapsule(options.replay_path);
  if (!capsule.ok()) return capsule.status();
  if (options.threads > 0) cpu::SetNumThreads(static_cast<int>(options.threads));
  const absl::StatusOr<StepReplay> replay = ReplayStep(*capsule);
  if (!replay.ok()) {
    return absl::Status(replay.status().code(), absl::StrCat(options.replay_path, ": ", replay.status().message()));
  }
  ReplayReport report;
  report.is_equal = replay->differences.empty();
  report.text =
      absl::StrCat(options.replay_path, ": step ", capsule->step, " (", capsule->reason, ")", OriginOf(*capsule), "\n");
  for (const auto& [name, value] : replay->record)
    absl::StrAppend(&report.text, "  ", name, ": ", Summary(value), "\n");
  const std::size_t compared = replay->record.size() + replay->after.size();
  if (report.is_equal) {
    absl::StrAppend(&report.text, "every bit is equal: ", replay->record.size(), " outputs and ", replay->after.size(),
                    " state entries after the step\n");
    return report;
  }
  absl::StrAppend(&report.text, replay->differences.size(), " of ", compared, " outputs and state entries differ:\n");
  for (const std::string& difference : replay->differences) absl::StrAppend(&report.text, "  ", difference, "\n");
  return report;
}

}  // namespace mpc::tools
