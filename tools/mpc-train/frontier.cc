#include "tools/mpc-train/frontier.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace mpc::tools {

namespace {

/// A flag for the largest error that a chosen precision may have.
void AddLimit(FlagSet& flags, const char* name, const char* help, double& limit) {
  flags.Custom(name, "E", help, /*is_switch=*/false, [&limit](const std::string& value) {
    if (absl::SimpleAtod(value, &limit) && limit > 0 && std::isfinite(limit)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("it takes a number above 0, such as 1e-3, not '", value, "'"));
  });
}

/// "a gradient error of at most 0.001 and a loss error of at most 1e-05"
std::string LimitsOf(const PrecisionFrontierOptions& wanted) {
  std::vector<std::string> limits;
  if (wanted.max_gradient_error.has_value()) {
    limits.push_back(absl::StrFormat("a gradient error of at most %g", *wanted.max_gradient_error));
  }
  if (wanted.max_loss_error.has_value()) {
    limits.push_back(absl::StrFormat("a loss error of at most %g", *wanted.max_loss_error));
  }
  return absl::StrJoin(limits, " and ");
}

}  // namespace

void AddFrontierFlags(FlagSet& flags, TrainOptions& options) {
  flags.Integer("precision-frontier", 1, kNoLimit,
                "Instead of training, runs so many precisions between the fastest and the most exact one.",
                &options.precision_frontier_points);
  AddLimit(flags, "max-gradient-error",
           "Of these chooses the fastest one whose gradient has at most this relative error, such as 1e-3.",
           options.max_gradient_error);
  AddLimit(flags, "max-loss-error", "As --max-gradient-error, for the relative error of the loss. Both may be given.",
           options.max_loss_error);
  flags.Custom("frontier-error", "WHICH",
               "The error that is weighed against time: gradient, loss. The other one is predicted beside it.",
               /*is_switch=*/false, [&options](const std::string& value) {
                 options.frontier_error = value;
                 if (value == "gradient" || value == "loss") return absl::OkStatus();
                 return absl::InvalidArgumentError(absl::StrCat("it takes gradient or loss, not '", value, "'"));
               });
  flags.Integer(
      "frontier-batches", 1, kNoLimit,
      "Batches that errors are told on. That of the loss differs from batch to batch more than the gradient's.",
      &options.frontier_batches);
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
  flags.Text("save-precision", "FILE", "With a largest error: writes the precision that was chosen.",
             &options.save_precision_path);
  flags.Text("precision", "FILE", "Trains at level auto with the precision of this file.", &options.precision_path);
}

absl::Status CheckFrontier(TrainOptions& options) {
  const bool finds = options.precision_frontier_points > 0;
  const char* flag = finds ? "--precision-frontier" : "--precision";
  for (const auto& [given, name] :
       {std::pair<bool, const char*>{options.max_gradient_error > 0, "--max-gradient-error"},
        {options.max_loss_error > 0, "--max-loss-error"},
        {options.frontier_error != "gradient", "--frontier-error"},
        {options.frontier_batches != PrecisionFrontierOptions().batches, "--frontier-batches"},
        {options.frontier_rates != "device", "--frontier-rates"},
        {options.frontier_errors != "estimated", "--frontier-errors"}}) {
    if (given && !finds) return absl::InvalidArgumentError(absl::StrCat(name, " needs --precision-frontier=K"));
  }
  if (!options.save_precision_path.empty() && options.max_gradient_error == 0 && options.max_loss_error == 0) {
    return absl::InvalidArgumentError(
        "--save-precision needs --max-gradient-error=E or --max-loss-error=E, which chooses the precision to write");
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
  PrecisionFrontierOptions wanted{.points = options.precision_frontier_points, .batches = options.frontier_batches};
  if (options.max_gradient_error > 0) wanted.max_gradient_error = options.max_gradient_error;
  if (options.max_loss_error > 0) wanted.max_loss_error = options.max_loss_error;
  if (options.frontier_error == "loss") wanted.weighed = FrontierError::kLoss;
  if (options.frontier_rates == "default") wanted.rates = compiler::DeviceRates{};
  if (options.frontier_errors == "measured") wanted.slot_errors = SlotErrorSource::kMeasured;
  const absl::StatusOr<PrecisionFrontier> frontier = model.FindPrecisionFrontier(rows, wanted);
  if (!frontier.ok()) return frontier.status();
  out << frontier->Table();
  if (frontier->points.size() < 2 && options.frontier_rates == "device") {
    out << "no low slot pays on this device; --frontier-rates=default predicts for one with fast low matrix units\n";
  }
  const std::string limits = LimitsOf(wanted);
  if (limits.empty()) return absl::OkStatus();
  if (!frontier->chosen.has_value()) {
    return absl::NotFoundError(absl::StrCat("no point of the frontier has ", limits));
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
