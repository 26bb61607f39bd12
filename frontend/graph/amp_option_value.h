// One option of amp::Options as the user wrote it.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "kernels/dtype.h"

namespace mpc::amp {

/// A value that may be left out: a boolean, a number, a DType, or a text that stands for one of them. `true` and
/// "True", 128.0 and "128.0", DType::kBF16 and "bf16" mean the same. What a text means is decided where the option is
/// resolved, so that its error can name the option.
class OptionValue {
 public:
  OptionValue() = default;
  OptionValue(std::nullopt_t) {}              // NOLINT: options are written as plain values
  OptionValue(bool value) : value_(value) {}  // NOLINT
  template <typename T>
  requires(std::is_arithmetic_v<T> && !std::same_as<T, bool>) OptionValue(T value)
      : value_(static_cast<double>(value)) {}                   // NOLINT
  OptionValue(DType value) : value_(value) {}                   // NOLINT
  OptionValue(const char* text) : value_(std::string(text)) {}  // NOLINT
  OptionValue(std::string text) : value_(std::move(text)) {}    // NOLINT
  template <typename T>
  OptionValue(const std::optional<T>& value) {  // NOLINT
    if (value.has_value()) *this = OptionValue(*value);
  }

  bool given() const { return !std::holds_alternative<std::monostate>(value_); }
  /// As the user wrote it: "true", "128", "bf16", "dynamic"; "" if left out.
  std::string text() const;

  /// The value as a boolean ("true" and "false" in any case, "1", "0"), a number, a DType; empty where it is none.
  std::optional<bool> AsBool() const;
  std::optional<double> AsNumber() const;
  std::optional<DType> AsDType() const;

 private:
  std::variant<std::monostate, bool, double, DType, std::string> value_;
};

}  // namespace mpc::amp
