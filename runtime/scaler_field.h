// The fields of a loss scaler: one list for the operation that moves them, the step's state, checkpoints and reports.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mpc {

/// A field of a loss scaler, a scalar entry of state. The order is that of the operands of mpc.update_loss_scale behind
/// `first_bad`.
enum class ScalerField : std::uint8_t {
  kScale,        ///< f32: what losses are multiplied by
  kGood,         ///< finite steps in a row, towards a growth of the scale
  kBad,          ///< steps in a row that were not finite, towards a backoff
  kSkipped,      ///< steps that were not finite, since the beginning
  kConsecutive,  ///< skipped steps in a row
  kGrowth,       ///< f32: the scale's factor after enough good steps
  kBackoff,      ///< f32: the scale's factor after enough bad ones
  kMinimum,      ///< f32: the least scale
  kMaximum,      ///< f32: the largest scale
  kInterval,     ///< good steps before the scale grows
  kBadLimit,     ///< bad steps before it goes down
  kDynamic,      ///< 1 where the scale moves
  kSkip,         ///< 1 where a step that is not finite is skipped
};

/// Names in the order of ScalerField, as IR and files have them behind the name of the scaler and a dot.
inline constexpr std::array<std::string_view, 13> kScalerFieldNames = {
    "scale",   "good",    "bad",      "skipped",   "consecutive", "growth", "backoff",
    "minimum", "maximum", "interval", "bad_limit", "dynamic",     "skip"};

/// A step moves the fields before this one. The others are settings.
inline constexpr ScalerField kFirstScalerSetting = ScalerField::kGrowth;

constexpr std::string_view ScalerFieldName(ScalerField field) {
  return kScalerFieldNames[static_cast<std::size_t>(field)];
}

constexpr bool IsScalerSetting(ScalerField field) { return field >= kFirstScalerSetting; }

/// Whether a field is f32. The others are i32.
constexpr bool IsF32(ScalerField field) {
  return field == ScalerField::kScale || (field >= ScalerField::kGrowth && field <= ScalerField::kMaximum);
}

/// The entry of a field: "scaler.scale" for the scaler "scaler".
inline std::string ScalerEntryName(std::string_view scaler, ScalerField field) {
  return std::string(scaler) + "." + std::string(ScalerFieldName(field));
}

/// The field of the entry that has this name, as files have it, and the role kScaler. None for any other text.
constexpr std::optional<ScalerField> ScalerFieldOf(std::string_view entry) {
  const std::size_t dot = entry.rfind('.');
  if (dot == 0 || dot == std::string_view::npos) return std::nullopt;
  for (std::size_t i = 0; i < kScalerFieldNames.size(); ++i) {
    if (kScalerFieldNames[i] == entry.substr(dot + 1)) return static_cast<ScalerField>(i);
  }
  return std::nullopt;
}

}  // namespace mpc
