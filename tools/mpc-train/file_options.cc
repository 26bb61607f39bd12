#include "tools/mpc-train/file_options.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontend/inspect/precision_profile.h"
#include "tools/support/amp_flags.h"
#include "tools/support/path_flags.h"

namespace mpc::tools {

absl::Status CheckFiles(const TrainOptions& options) {
  if (!options.lock_precision_path.empty() && !options.check_precision_path.empty()) {
    return absl::InvalidArgumentError(
        "--lock-precision and --check-precision exclude each other: a lock that was just written always holds");
  }
  const bool written = true;
  return CheckPathsDiffer({{"--load", options.load_path},
                           {"--init", options.init_path},
                           {"--resume", options.resume_path},
                           {"--text-file", options.text_path},
                           {"--amp-profile", options.amp_profile_path},
                           {"--check-precision", options.check_precision_path},
                           {"--precision", options.precision_path},
                           {"--choice-cache", options.choice_cache, written},
                           {"--save", options.save_path, written},
                           {"--emit", options.emit_path, written},
                           {"--summary", options.summary_path, written},
                           {"--plot", options.plot_path, written},
                           {"--capsule", options.capsule_path, written},
                           {"--record-hashes", options.record_hashes_path, written},
                           {"--profile-precision", options.profile_path, written},
                           {"--lock-precision", options.lock_precision_path, written},
                           {"--save-precision", options.save_precision_path, written},
                           {"--trace", options.trace_path, written},
                           {"--report-html", options.report_html_path, written}},
                          {{"--save", "--load"}, {"--save", "--resume"}});
}

absl::Status FinishPrecision(TrainOptions& options) {
  const amp::Front front = options.model == kDcgan ? amp::Front::kInitialize : amp::Front::kModel;
  const absl::StatusOr<amp::Precision> precision = amp::ResolveOptions(options.amp, front);
  if (!precision.ok()) return precision.status();
  if (absl::Status status = CheckScaleLimits(options.amp, *precision); !status.ok()) return status;
  if (options.amp_profile_path.empty()) return absl::OkStatus();
  if (precision->level == "O0") {
    return absl::InvalidArgumentError(
        "--amp-profile and level O0 contradict each other: O0 computes every Cell in f32; choose O1, O2, O3 or auto");
  }
  const absl::StatusOr<std::vector<std::string>> cells =
      LossyCellsOfProfile(options.amp_profile_path, {.low = precision->dtype});
  if (!cells.ok()) {
    return absl::Status(cells.status().code(), absl::StrCat("--amp-profile: ", cells.status().message()));
  }
  options.amp.deny_add.insert(options.amp.deny_add.end(), cells->begin(), cells->end());
  return amp::ResolveOptions(options.amp, front).status();
}

}  // namespace mpc::tools
