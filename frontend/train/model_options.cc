// The short form of a Model's precision and amp::Options as one choice.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/train/model_impl.h"

namespace mpc::internal {
namespace {

absl::Status Contradiction(const char* short_name, const std::string& short_value, const char* option,
                           const std::string& value) {
  return absl::InvalidArgumentError(absl::StrCat("Model: ", short_name, " = ", short_value, " and amp.", option, " = ",
                                                 value, " contradict each other; give one of them"));
}

bool Same(const LossScaleConfig& a, const LossScaleConfig& b) {
  return a.mode == b.mode && a.skip == b.skip && a.unscale == b.unscale && a.init == b.init;
}

/// `amp` with what only the short form gives.
absl::StatusOr<amp::Options> Merge(const ModelOptions& given) {
  amp::Options merged = given.amp;
  if (!given.amp_level.empty()) {
    if (!merged.level.empty() && merged.level != given.amp_level) {
      return Contradiction("amp_level", given.amp_level, "level", merged.level);
    }
    merged.level = given.amp_level;
  }
  if (given.keep_batchnorm_fp32.has_value()) {
    const amp::OptionValue keep = *given.keep_batchnorm_fp32;
    if (merged.keep_batchnorm_fp32.given() && merged.keep_batchnorm_fp32.AsBool() != given.keep_batchnorm_fp32) {
      return Contradiction("keep_batchnorm_fp32", keep.text(), "keep_batchnorm_fp32",
                           merged.keep_batchnorm_fp32.text());
    }
    merged.keep_batchnorm_fp32 = keep;
  }
  if (given.amp_dtype.has_value()) {
    const amp::OptionValue dtype = *given.amp_dtype;
    if (merged.dtype.given() && merged.dtype.AsDType() != given.amp_dtype) {
      return Contradiction("amp_dtype", dtype.text(), "dtype", merged.dtype.text());
    }
    merged.dtype = dtype;
  }
  return merged;
}

/// Errors: `given` has limits, and `scale`, which `option` gave, does not move. A level's own scale takes any.
absl::Status CheckLimits(const amp::Options& given, const LossScaleConfig& scale, const char* option,
                         const std::string& value) {
  if (scale.mode == LossScaleConfig::Mode::kDynamic) return absl::OkStatus();
  if (!given.min_loss_scale.given() && !given.max_loss_scale.given()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("amp: ", amp::LimitText(given), " with ", option, " = ", value,
                                                 ": only a dynamic loss scale has limits; leave one of them out"));
}

/// The configuration of a manager within the limits of `given`, whose numbers are in `resolved`. Errors: limits of a
/// scale that does not move; what Validate says.
absl::StatusOr<LossScaleConfig> WithLimits(LossScaleConfig manager, const amp::Options& given,
                                           const LossScaleConfig& resolved) {
  const std::string mode(manager.mode_name());
  if (absl::Status status = CheckLimits(given, manager, "loss_scale_manager", mode); !status.ok()) return status;
  if (given.min_loss_scale.given()) manager.minimum = resolved.minimum;
  if (given.max_loss_scale.given()) {
    manager.maximum = resolved.maximum;
    manager.init = std::min(manager.init, manager.maximum);
  }
  if (absl::Status status = manager.Validate(); !status.ok()) return status;
  return manager;
}

using Entries = std::vector<std::string>;

/// Compares what a Model is given with what amp::Initialize gave its network, and keeps the first difference.
class Comparison {
 public:
  explicit Comparison(const std::string& network) : network_(network) {}

  /// `asks`: the option is given. `in_effect`: what it is in the session.
  void Add(const char* option, bool asks, bool agrees, const std::string& given, const std::string& in_effect) {
    if (!asks || agrees || !status_.ok()) return;
    status_ = absl::InvalidArgumentError(absl::StrCat("Model: ", option, " = ", given, ", but amp::Initialize gave ",
                                                      network_, " ", in_effect, "; give one of them"));
  }
  void AddValue(const char* name, const amp::OptionValue& given, bool agrees, const std::string& in_effect) {
    Add(absl::StrCat("amp.", name).c_str(), given.given(), agrees, given.text(), absl::StrCat(name, " ", in_effect));
  }
  void AddFlag(const char* name, const amp::OptionValue& given, bool in_effect) {
    AddValue(name, given, given.AsBool() == in_effect, in_effect ? "true" : "false");
  }
  void AddType(const char* name, const amp::OptionValue& given, DType in_effect) {
    AddValue(name, given, given.AsDType() == in_effect, std::string(DTypeName(in_effect)));
  }
  void AddNumber(const char* name, const amp::OptionValue& given, double in_effect) {
    // A number need not have the text that it was given as.
    const bool agrees = given.AsNumber().has_value() && *given.AsNumber() == in_effect;
    AddValue(name, given, agrees, absl::StrCat(in_effect));
  }
  void AddList(const char* name, const Entries& given, const Entries& in_effect) {
    Add(absl::StrCat("amp.", name).c_str(), !given.empty(), given == in_effect, absl::StrJoin(given, ","),
        in_effect.empty() ? absl::StrCat("no ", name) : absl::StrCat(name, " ", absl::StrJoin(in_effect, ",")));
  }
  const absl::Status& status() const { return status_; }

 private:
  std::string network_;
  absl::Status status_;
};

void CompareScaling(const amp::Options& given, const LossScaleConfig& in_effect, Comparison& comparison) {
  const bool is_number = in_effect.mode == LossScaleConfig::Mode::kStatic;
  if (is_number && given.loss_scale.AsNumber().has_value()) {
    comparison.AddNumber("loss_scale", given.loss_scale, in_effect.init);
  } else {
    const std::string text = is_number ? absl::StrCat(in_effect.init) : std::string(in_effect.mode_name());
    comparison.AddValue("loss_scale", given.loss_scale, given.loss_scale.text() == text, text);
  }
  comparison.AddNumber("min_loss_scale", given.min_loss_scale, in_effect.minimum);
  comparison.AddNumber("max_loss_scale", given.max_loss_scale, in_effect.maximum);
}

}  // namespace

absl::Status CheckAgreement(const ModelOptions& options, const amp::Precision& session, bool takes_scaler,
                            const std::string& network) {
  const absl::StatusOr<amp::Options> given = Merge(options);
  if (!given.ok()) return given.status();
  const bool is_off = session.level == "O0" && session.loss_scale.mode == LossScaleConfig::Mode::kNone;
  Comparison comparison(network);
  comparison.Add("amp.enabled", !given->enabled, is_off, "false", absl::StrCat("level ", session.level));
  // A disabled Model has checked its other options, and none of them acts.
  if (!given->enabled) return comparison.status();
  comparison.Add("amp_level", !given->level.empty(), given->level == session.level, given->level,
                 absl::StrCat("level ", session.level));
  comparison.AddType("dtype", given->dtype, session.level == "O0" ? DType::kF32 : session.dtype);
  comparison.AddFlag("keep_batchnorm_fp32", given->keep_batchnorm_fp32, session.keep_batchnorm_fp32.value_or(true));
  comparison.AddFlag("master_weights", given->master_weights, session.master_weights);
  comparison.AddType("cast_model_outputs", given->cast_model_outputs, session.cast_model_outputs.value_or(DType::kF32));
  comparison.AddFlag("patch_torch_functions", given->patch_torch_functions, session.level == "O1");
  comparison.AddList("allow_add", given->allow_add, session.lists.allow);
  comparison.AddList("deny_add", given->deny_add, session.lists.deny);
  comparison.AddList("infer_add", given->infer_add, session.lists.infer);
  comparison.AddList("clear_add", given->clear_add, session.lists.clear);
  comparison.Add("amp.num_losses", given->num_losses != 1, given->num_losses == session.num_losses,
                 absl::StrCat(given->num_losses), absl::StrCat("num_losses ", session.num_losses));
  if (takes_scaler) CompareScaling(*given, session.loss_scale, comparison);
  return comparison.status();
}

absl::StatusOr<amp::Precision> ResolveModelOptions(const ModelOptions& options) {
  absl::StatusOr<amp::Options> merged = Merge(options);
  if (!merged.ok()) return merged.status();
  absl::StatusOr<amp::Precision> precision = amp::ResolveOptions(*merged, amp::Front::kModel);
  if (!precision.ok()) return precision.status();
  if (options.amp.loss_scale.given() && merged->enabled) {
    absl::Status limits = CheckLimits(*merged, precision->loss_scale, "loss_scale", options.amp.loss_scale.text());
    if (!limits.ok()) return limits;
  }
  if (const std::optional<LossScaleConfig>& manager = options.loss_scale_manager.config();
      manager.has_value() && merged->enabled) {
    if (options.amp.loss_scale.given() && !Same(*manager, precision->loss_scale)) {
      return Contradiction("loss_scale_manager", std::string(manager->mode_name()), "loss_scale",
                           options.amp.loss_scale.text());
    }
    absl::StatusOr<LossScaleConfig> limited = WithLimits(*manager, *merged, precision->loss_scale);
    if (!limited.ok()) return limited.status();
    precision->loss_scale = *std::move(limited);
  }
  if (!options.amp.level.empty() || !options.amp.enabled) {
    amp::Announce(*merged, *precision, amp::Front::kModel);
  }
  return precision;
}

}  // namespace mpc::internal
