#include "frontend/graph/amp_options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/dialect/step_limits.h"
#include "frontend/distributed/auto_parallel_context.h"
#include "frontend/distributed/distributed.h"
#include "frontend/graph/context.h"
#include "frontend/graph/device_rates.h"

namespace mpc::amp {
namespace {

constexpr std::string_view kDerivedScale = "derived";
constexpr std::array<std::string_view, 5> kLevels = {"O0", "O1", "O2", "O3", "auto"};

template <typename... Parts>
absl::Status Error(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("amp: ", parts...));
}

absl::Status NotBool(const char* name, const OptionValue& given) {
  return Error(name, " = '", given.text(), "' is not true or false");
}

std::string DefaultLevel(Front front) { return front == Front::kModel ? "O0" : "O1"; }

/// The levels where only the minimum cut decides what is low: nothing is pinned and nothing stored changes.
bool IsCutLevel(std::string_view level) { return level == "O1" || level == "auto"; }

DType DefaultLowType(const std::string& level) {
  return level == "auto" ? NativeLowType(GetContext().device) : DType::kF16;
}

absl::Status CheckLevel(const std::string& level) {
  if (std::find(kLevels.begin(), kLevels.end(), level) != kLevels.end()) return absl::OkStatus();
  const bool zero = level.size() == 2 && level[0] == '0';
  return Error("unknown level '", level, "'; choose O0, O1, O2, O3 or auto",
               zero ? " (the letter O, not the digit zero)" : "");
}

absl::StatusOr<DType> LowType(const Options& options, const std::string& level) {
  const DType by_default = DefaultLowType(level);
  if (!options.dtype.given()) return by_default;
  const std::optional<DType> dtype = options.dtype.AsDType();
  if (level == "O0" && dtype == DType::kF32) return by_default;
  if (!dtype.has_value() || !IsLowPrecision(*dtype)) {
    return Error("dtype = '", options.dtype.text(), "' is no low type; choose f16 or bf16",
                 dtype == DType::kF32 ? ", or level O0, which is f32 and takes a loss_scale too" : "");
  }
  if (level == "O0") {
    return Error("level O0 is full f32 and takes no dtype ", options.dtype.text(), "; choose O1, O2, O3 or auto");
  }
  return *dtype;
}

absl::Status SetKeepNorms(const Options& options, Precision& precision) {
  if (!options.keep_batchnorm_fp32.given()) return absl::OkStatus();
  const std::optional<bool> keep = options.keep_batchnorm_fp32.AsBool();
  if (!keep.has_value()) return NotBool("keep_batchnorm_fp32", options.keep_batchnorm_fp32);
  if (IsCutLevel(precision.level)) {
    return Error("level ", precision.level, " with keep_batchnorm_fp32 = ", options.keep_batchnorm_fp32.text(), ": ",
                 precision.level, " already runs norms in f32; leave it out, or choose O2 or O3");
  }
  precision.keep_batchnorm_fp32 = keep;
  return absl::OkStatus();
}

absl::Status SetMasterWeights(const Options& options, Precision& precision) {
  if (!options.master_weights.given()) return absl::OkStatus();
  const std::optional<bool> masters = options.master_weights.AsBool();
  if (!masters.has_value()) return NotBool("master_weights", options.master_weights);
  if (IsCutLevel(precision.level)) {
    return Error("level ", precision.level, " with master_weights = ", options.master_weights.text(), ": ",
                 precision.level, " never changes stored parameters, they are f32; leave it out, or choose O2 or O3");
  }
  if (precision.level == "O0" && !*masters) {
    return Error("level O0 with master_weights = ", options.master_weights.text(),
                 ": O0 is full f32 and has no low parameters; leave it out, or choose O2 or O3");
  }
  precision.master_weights = *masters;
  return absl::OkStatus();
}

absl::Status SetOutputs(const Options& options, Precision& precision) {
  if (!options.cast_model_outputs.given()) return absl::OkStatus();
  const std::optional<DType> dtype = options.cast_model_outputs.AsDType();
  if (!dtype.has_value() || (!IsLowPrecision(*dtype) && dtype != DType::kF32)) {
    return Error("cast_model_outputs = '", options.cast_model_outputs.text(), "' is not f32, f16 or bf16");
  }
  precision.cast_model_outputs = dtype;
  return absl::OkStatus();
}

LossScaleConfig DynamicScale(Front front) {
  LossScaleConfig config = DynamicLossScaleManager().config();
  if (front == Front::kModel) return config;
  config.init = 0x1p16;
  config.minimum = 0x1p-126;
  config.maximum = 0x1p24;
  return config;
}

LossScaleConfig StaticScale(double scale, Front front) {
  LossScaleConfig config = FixedLossScaleManager({.loss_scale = scale}).config();
  config.skip = front == Front::kModel;
  return config;
}

absl::StatusOr<LossScaleConfig> GivenScale(const OptionValue& given, Front front) {
  if (given.text() == "none") return LossScaleConfig{};
  if (given.text() == "dynamic") return DynamicScale(front);
  if (given.text() == kDerivedScale) {
    if (front == Front::kModel) return DynamicScale(front);
    return Error("loss_scale = 'derived' is of a Model, which sees the step before it runs; choose \"dynamic\"");
  }
  const std::optional<double> scale = given.AsNumber();
  if (!scale.has_value() || !(*scale >= 1) || !(*scale <= 0x1p126)) {
    return Error("loss_scale = '", given.text(),
                 "' is not \"dynamic\", \"derived\", \"none\" or a number >= 1 (at most 2^126)");
  }
  return StaticScale(*scale, front);
}

absl::StatusOr<double> ScaleBound(const OptionValue& given, const char* name) {
  const std::optional<double> bound = given.AsNumber();
  if (bound.has_value() && *bound >= 0x1p-126 && *bound <= 0x1p126) return *bound;
  return Error(name, " = '", given.text(), "' is not a number in [2^-126, 2^126]");
}

/// Errors: `precision` has no f16 gradients that a derived scale could leave room for, or several scalers.
absl::Status CheckDerivedScale(const Options& options, const Precision& precision) {
  if (options.loss_scale.text() != kDerivedScale) return absl::OkStatus();
  if (precision.level == "O0") {
    return Error("level O0 with loss_scale = 'derived': nothing is low at O0, so that no scale follows; choose ",
                 "\"dynamic\", a number, or another level");
  }
  if (precision.dtype != DType::kF16) {
    return Error("dtype ", std::string(DTypeName(precision.dtype)), " with loss_scale = 'derived': it has the range ",
                 "of f32, so that no scale follows; leave loss_scale out, which is 1 with check and skip");
  }
  if (options.num_losses == 1) return absl::OkStatus();
  return Error("num_losses = ", options.num_losses, " with loss_scale = 'derived': it is derived for one scaler; ",
               "choose \"dynamic\"");
}

absl::Status SetLossScale(const Options& options, Front front, Precision& precision) {
  if (options.loss_scale.given()) {
    absl::StatusOr<LossScaleConfig> scale = GivenScale(options.loss_scale, front);
    if (!scale.ok()) return scale.status();
    if (absl::Status status = CheckDerivedScale(options, precision); !status.ok()) return status;
    precision.loss_scale = *scale;
  }
  LossScaleConfig& config = precision.loss_scale;
  // Checked at every level and mode; a static scale has no use for them.
  if (options.min_loss_scale.given()) {
    absl::StatusOr<double> bound = ScaleBound(options.min_loss_scale, "min_loss_scale");
    if (!bound.ok()) return bound.status();
    config.minimum = *bound;
  }
  if (options.max_loss_scale.given()) {
    absl::StatusOr<double> bound = ScaleBound(options.max_loss_scale, "max_loss_scale");
    if (!bound.ok()) return bound.status();
    config.maximum = *bound;
  }
  if (!(config.minimum <= config.maximum)) {
    return Error(
        absl::StrFormat("min_loss_scale = %.10g exceeds max_loss_scale = %.10g", config.minimum, config.maximum));
  }
  if (config.mode != LossScaleConfig::Mode::kDynamic) return absl::OkStatus();
  config.init = std::min(config.init, config.maximum);
  return config.Validate();
}

absl::Status SetLists(const Options& options, OperationLists& lists) {
  std::map<std::string, std::string> list_of;
  const auto add = [&](const char* name, const std::vector<std::string>& entries) {
    for (const std::string& entry : entries) {
      if (entry.empty()) return Error(name, " has an empty entry; name an operation or a Cell path");
      const auto [known, is_new] = list_of.emplace(entry, name);
      if (!is_new && known->second != name) {
        return Error("'", entry, "' is in ", known->second, " and in ", name, "; an entry has one class");
      }
    }
    return absl::OkStatus();
  };
  absl::Status status = add("allow_add", options.allow_add);
  if (status.ok()) status = add("deny_add", options.deny_add);
  if (status.ok()) status = add("infer_add", options.infer_add);
  if (status.ok()) status = add("clear_add", options.clear_add);
  lists = {options.allow_add, options.deny_add, options.infer_add, options.clear_add};
  return status;
}

absl::Status CheckPatching(const Options& options, const std::string& level) {
  if (!options.patch_torch_functions.given()) return absl::OkStatus();
  const std::optional<bool> patch = options.patch_torch_functions.AsBool();
  if (!patch.has_value()) return NotBool("patch_torch_functions", options.patch_torch_functions);
  // apex's own values.
  if (level != "auto" && *patch == (level == "O1")) return absl::OkStatus();
  return Error("patch_torch_functions = ", options.patch_torch_functions.text(), " at level ", level,
               ": casting around single functions is what O1 is, and nothing else is; leave it out",
               level == "O1" ? "" : ", or choose O1");
}

std::string ScaleText(const LossScaleConfig& config) {
  if (config.mode == LossScaleConfig::Mode::kNone) return "none";
  const char* on_overflow = config.skip ? "" : ", without skip";
  if (config.mode == LossScaleConfig::Mode::kStatic) return absl::StrFormat("%.10g%s", config.init, on_overflow);
  return absl::StrFormat("dynamic from %.10g%s", config.init, on_overflow);
}

}  // namespace

std::string LimitText(const Options& options) {
  return options.min_loss_scale.given() ? absl::StrCat("min_loss_scale = ", options.min_loss_scale.text())
                                        : absl::StrCat("max_loss_scale = ", options.max_loss_scale.text());
}

Precision LevelDefaults(std::string_view level, DType dtype, Front front) {
  Precision precision;
  precision.level = std::string(level);
  precision.dtype = dtype;
  if (level == "O2" || level == "O3") precision.keep_batchnorm_fp32 = level == "O2";
  precision.master_weights = !(level == "O3" && front == Front::kInitialize);
  if (IsCutLevel(level) || level == "O2") {
    precision.loss_scale = dtype == DType::kF16 ? DynamicScale(front) : StaticScale(1, Front::kModel);
  }
  return precision;
}

absl::StatusOr<Precision> ResolveOptions(const Options& options, Front front) {
  const std::string level = options.level.empty() ? DefaultLevel(front) : options.level;
  if (absl::Status status = CheckLevel(level); !status.ok()) return status;
  if (absl::Status status = CheckPatching(options, level); !status.ok()) return status;
  absl::StatusOr<DType> dtype = LowType(options, level);
  if (!dtype.ok()) return dtype.status();
  Precision precision = LevelDefaults(level, *dtype, front);
  absl::Status status = SetKeepNorms(options, precision);
  if (status.ok()) status = SetMasterWeights(options, precision);
  if (status.ok()) status = SetOutputs(options, precision);
  if (status.ok()) status = SetLossScale(options, front, precision);
  if (status.ok()) status = SetLists(options, precision.lists);
  if (!status.ok()) return status;
  if (options.num_losses < 1 || options.num_losses > kMostLosses) {
    return Error("num_losses = ", options.num_losses, "; at least 1 and at most ", kMostLosses);
  }
  if (options.verbosity < 0 || options.verbosity > 1) return Error("verbosity = ", options.verbosity, " is not 0 or 1");
  precision.num_losses = options.num_losses;
  if (options.enabled) return precision;
  Precision disabled;
  disabled.num_losses = options.num_losses;
  return disabled;
}

absl::StatusOr<LossScaleConfig> ParseLossScale(std::string_view text) {
  return GivenScale(std::string(text), Front::kModel);
}

std::string Describe(const Precision& precision) {
  const bool low = precision.level != "O0";
  const std::string norms =
      precision.keep_batchnorm_fp32.has_value()
          ? absl::StrCat(", keep_batchnorm_fp32 ", *precision.keep_batchnorm_fp32 ? "true" : "false")
          : "";
  return absl::StrCat("level ", precision.level, ": dtype ", low ? std::string(DTypeName(precision.dtype)) : "f32",
                      norms, ", master_weights ", precision.master_weights ? "true" : "false", ", loss_scale ",
                      ScaleText(precision.loss_scale), ", cast_model_outputs ",
                      std::string(DTypeName(precision.cast_model_outputs.value_or(DType::kF32))));
}

void Announce(const Options& options, const Precision& precision, Front front) {
  const bool together = GetAutoParallelContext().parallel_mode == ParallelMode::kDataParallel;
  if (options.verbosity < 1 || (together && distributed::GetRank() > 0)) return;
  if (!options.enabled) {
    std::cerr << "amp: disabled, f32 throughout\n";
    return;
  }
  const DType by_default = DefaultLowType(precision.level);
  std::cerr << "amp: defaults of " << Describe(LevelDefaults(precision.level, by_default, front))
            << "\namp: in effect at " << Describe(precision)
            << (options.loss_scale.text() == kDerivedScale ? "; training derives its first loss scale" : "") << "\n";
}

}  // namespace mpc::amp
