#include "tools/mpc-train/frontier.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mpc::tools {

void AddFrontierFlags(FlagSet& flags, TrainOptions& options) {
  flags.Integer("precision-frontier", 1, kNoLimit,
                "Instead of training, runs so many precisions between the fastest and the most exact one.",
                &options.precision_frontier_points);
  flags.Custom(
      "max-gradient-error", "E",
      "Of these chooses the fastest one whose gradient has at most this relative error, such as 1e-3.",
      /*is_switch=*/false, [&options](const std::string& value) {
        if (absl::SimpleAtod(value, &options.max_gradient_error) && options.max_gradient_error > 0 &&
            std::isfinite(options.max_gradient_error)) {
          return absl::OkStatus();
        }
        return absl::InvalidArgumentError(absl::StrCat("it takes a number above 0, such as 1e-3, not '", value, "'"));
      });
  flags.Custom("frontier-rates", "WHICH",
               "Rates that predict times: device (measured here), default (those that come with mpc).",
               /*is_switch=*/false, [&options](const std::string& value) {
                 options.frontier_rates = value;
                 if (value == "device" || value == "default") return absl::OkStatus();
                 return absl::InvalidArgumentError(absl::StrCat("it takes device or default, not '", value, "'"));
               });
  flags.Custom("frontier-errors", "HOW",
               "Errors of single slots: estimated (from a few f32 steps), measured (each slot alone runs low).",
               /*is_switch=*/false, [&options](const std::string& value) {
                 options.frontier_errors = value;
                 if (value == "estimated" || value == "measured") return absl::OkStatus();
                 return absl::InvalidArgumentError(absl::StrCat("it takes estimated or measured, not '", value, "'"));
               });
  flags.Text("save-precision", "FILE", "With --max-gradient-error: writes the precision that was chosen.",
             &options.save_precision_path);
  flags.Text("precision", "FILE", "Trains at level auto with the precision of this file.", &options.precision_path);
}

absl::Status CheckFrontier(TrainOptions& options) {
  const bool finds = options.precision_frontier_points > 0;
  const char* flag = finds ? "--precision-frontier" : "--precision";
  for (const auto& [given, name] :
       {std::pair<bool, const char*>{options.max_gradient_error > 0, "--max-gradient-error"},
        {options.frontier_rates != "device", "--frontier-rates"},
        {options.frontier_errors != "estimated", "--frontier-errors"}}) {
    if (given && !finds) return absl::InvalidArgumentError(absl::StrCat(name, " needs --precision-frontier=K"));
  }
  if (!options.save_precision_path.empty() && options.max_gradient_error == 0) {
    return absl::InvalidArgumentError(
        "--save-precision needs --max-gradient-error=E, which chooses the precision to write");
  }
  if (!finds && options.precision_path.empty()) return absl::OkStatus();
  if (finds && !options.precision_path.empty()) {
    return absl::InvalidArgumentError(
        "--precision-frontier and --precision contradict each other: --save-precision=FILE writes what is chosen");
  }
  if (!options.amp.level.empty() && options.amp.level != "auto") {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " is for --amp-level=auto, not ", options.amp.level, ", which decides by itself"));
  }
  if (options.resume) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " and --resume contradict each other: a checkpoint has its precision"));
  }
  if (options.distributed) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " and --distributed contradict each other: it is of one process"));
  }
  if (!options.emit_path.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--emit trains nothing and takes no ", flag));
  }
  if (options.model == kDcgan) return absl::InvalidArgumentError(absl::StrCat("dcgan takes no ", flag));
  options.amp.level = "auto";
  return absl::OkStatus();
}

absl::Status RunFrontier(const TrainOptions& options, const data::Dataset& rows, Model& model, std::ostream& out) {
  PrecisionFrontierOptions wanted{.points = options.precision_frontier_points};
  if (options.max_gradient_error > 0) wanted.max_gradient_error = options.max_gradient_error;
  if (options.frontier_rates == "default") wanted.rates = compiler::DeviceRates{};
  if (options.frontier_errors == "measured") wanted.slot_errors = SlotErrorSource::kMeasured;
  const absl::StatusOr<PrecisionFrontier> frontier = model.FindPrecisionFrontier(rows, wanted);
  if (!frontier.ok()) return frontier.status();
  out << frontier->Table();
  if (frontier->points.size() < 2 && options.frontier_rates == "device") {
    out << "no low slot pays on this device; --frontier-rates=default predicts for one with fast low matrix units\n";
  }
  if (!wanted.max_gradient_error.has_value()) return absl::OkStatus();
  if (!frontier->chosen.has_value()) {
    return absl::NotFoundError(
        absl::StrFormat("no point of the frontier has a gradient error of at most %g", *wanted.max_gradient_error));
  }
  if (options.save_precision_path.empty()) return absl::OkStatus();
  return compiler::WritePrecisionFile(options.save_precision_path, frontier->points[*frontier->chosen].precision);
}

absl::Status TakePrecision(const TrainOptions& options, const data::Dataset& rows, Model& model) {
  if (options.precision_path.empty()) return absl::OkStatus();
  const absl::StatusOr<compiler::ChosenPrecision> chosen = compiler::ReadPrecisionFile(options.precision_path);
  if (!chosen.ok()) return chosen.status();
  const absl::Status status = model.UsePrecision(*chosen, rows);
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("'", options.precision_path, "': ", status.message()));
}

}  // namespace mpc::tools
