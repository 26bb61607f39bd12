// The words that attributes take, as enums. An enum has one table of names, from which reading and printing come.
// Programs and the IR hold the words.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace mpc {

/// The order of an image's axes.
enum class DataFormat : std::uint8_t { kNCHW, kNHWC };

/// How a window is padded: see ResolveWindow of kernels/window.h.
enum class PadMode : std::uint8_t { kValid, kSame, kPad };

/// What a loss makes of its elements' losses.
enum class LossReduction : std::uint8_t { kNone, kMean, kSum };

/// What a product applies to its f32 result before it is rounded. `kGelu` and `kGeluTanh` are mpc.gelu's forms.
enum class Activation : std::uint8_t { kNone, kRelu, kSigmoid, kTanh, kGelu, kGeluTanh };

/// How mpc.gelu is approximated.
enum class Approximation : std::uint8_t { kNone, kTanh };

/// What random numbers are drawn from.
enum class Distribution : std::uint8_t { kUniform, kNormal, kTruncatedNormal };

/// How mpc.resize makes values between pixels.
enum class Interpolation : std::uint8_t { kNearest, kBilinear };
/// Where pixel i of a result of mpc.resize lies in its operand. With s = input / output the positions are i * s,
/// (i + 1/2) * s - 1/2 and i * (input - 1) / (output - 1).
enum class Coordinates : std::uint8_t { kAsymmetric, kHalfPixel, kAlignCorners };
/// The type of the low copy that an optimizer writes beside an f32 parameter. The attribute in IR text is `shadow`.
enum class LowCopy : std::uint8_t { kNone, kF16, kBF16 };

/// The names of an enum's values, in their order: `kNames`. `kLast` is the last value.
template <typename E>
struct EnumNames;

template <>
struct EnumNames<DataFormat> {
  static constexpr std::array<std::string_view, 2> kNames = {"NCHW", "NHWC"};
  static constexpr DataFormat kLast = DataFormat::kNHWC;
};
template <>
struct EnumNames<PadMode> {
  static constexpr std::array<std::string_view, 3> kNames = {"valid", "same", "pad"};
  static constexpr PadMode kLast = PadMode::kPad;
};
template <>
struct EnumNames<LossReduction> {
  static constexpr std::array<std::string_view, 3> kNames = {"none", "mean", "sum"};
  static constexpr LossReduction kLast = LossReduction::kSum;
};
template <>
struct EnumNames<Activation> {
  static constexpr std::array<std::string_view, 6> kNames = {"none", "relu", "sigmoid", "tanh", "gelu", "gelu_tanh"};
  static constexpr Activation kLast = Activation::kGeluTanh;
};
template <>
struct EnumNames<Approximation> {
  static constexpr std::array<std::string_view, 2> kNames = {"none", "tanh"};
  static constexpr Approximation kLast = Approximation::kTanh;
};
template <>
struct EnumNames<Distribution> {
  static constexpr std::array<std::string_view, 3> kNames = {"uniform", "normal", "truncated_normal"};
  static constexpr Distribution kLast = Distribution::kTruncatedNormal;
};
template <>
struct EnumNames<Interpolation> {
  static constexpr std::array<std::string_view, 2> kNames = {"nearest", "bilinear"};
  static constexpr Interpolation kLast = Interpolation::kBilinear;
};
template <>
struct EnumNames<Coordinates> {
  static constexpr std::array<std::string_view, 3> kNames = {"asymmetric", "half_pixel", "align_corners"};
  static constexpr Coordinates kLast = Coordinates::kAlignCorners;
};
template <>
struct EnumNames<LowCopy> {
  static constexpr std::array<std::string_view, 3> kNames = {"none", "f16", "bf16"};
  static constexpr LowCopy kLast = LowCopy::kBF16;
};

/// Every name of an enum, in the order of its values.
template <typename E>
constexpr const auto& NamesOf() {
  static_assert(EnumNames<E>::kNames.size() == static_cast<std::size_t>(EnumNames<E>::kLast) + 1);
  return EnumNames<E>::kNames;
}

/// The name of a value; "unknown" for a number that is none.
template <typename E>
constexpr std::string_view NameOf(E value) {
  const auto index = static_cast<std::size_t>(value);
  return index < NamesOf<E>().size() ? NamesOf<E>()[index] : "unknown";
}

/// The value of this name, or nothing.
template <typename E>
constexpr std::optional<E> ParseEnum(std::string_view name) {
  for (std::size_t i = 0; i < NamesOf<E>().size(); ++i) {
    if (name == NamesOf<E>()[i]) return static_cast<E>(i);
  }
  return std::nullopt;
}

}  // namespace mpc
