#include "tools/mpc-run/replay.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "frontend/state/step_capsule.h"
#include "kernels/cpu/kernel.h"
#include "runtime/state_record.h"
#include "tools/mpc-run/first_bad_result.h"

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

/// As files of `mpc-train --record-hashes` have it.
std::string HashText(const Tensor& hash) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, hash.bytes().data(), sizeof(bits));
  return absl::StrFormat("%016x", bits);
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
  const bool looks = !IsFinite(*capsule, capsule->record);
  FirstBadResult first_bad(*capsule);
  const absl::StatusOr<StepReplay> replay =
      looks ? ReplayStep(*capsule,
                         [&](std::int64_t run, const runtime::ObservedResult& seen) { first_bad.See(run, seen); })
            : ReplayStep(*capsule);
  if (!replay.ok()) {
    return absl::Status(replay.status().code(), absl::StrCat(options.replay_path, ": ", replay.status().message()));
  }
  ReplayReport report;
  report.is_equal = replay->differences.empty();
  report.text =
      absl::StrCat(options.replay_path, ": step ", capsule->step, " (", capsule->reason, ")", OriginOf(*capsule), "\n");
  if (capsule->runs > 1) absl::StrAppend(&report.text, "  of ", DescribeRuns(*capsule), "\n");
  for (const auto& [name, value] : replay->record) {
    const bool is_hash = absl::StartsWith(name, runtime::kStateHashOutput);
    absl::StrAppend(&report.text, "  ", name, ": ", is_hash ? HashText(value) : Summary(value), "\n");
  }
  if (looks) absl::StrAppend(&report.text, first_bad.Describe());
  const std::string in_ranks = capsule->ranks > 1 ? absl::StrCat(", in each of ", capsule->ranks, " ranks") : "";
  const std::size_t compared = replay->record.size() + replay->after.size();
  if (report.is_equal) {
    absl::StrAppend(&report.text, "every bit is equal: ", replay->record.size(), " outputs and ", replay->after.size(),
                    " state entries after the step", in_ranks, "\n");
    return report;
  }
  absl::StrAppend(&report.text, replay->differences.size(), " of ", compared, " outputs and state entries", in_ranks,
                  " differ:\n");
  for (const std::string& difference : replay->differences) absl::StrAppend(&report.text, "  ", difference, "\n");
  return report;
}

}  // namespace mpc::tools
