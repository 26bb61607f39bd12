#include "frontend/graph/amp_option_value.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

namespace mpc::amp {

std::string OptionValue::text() const {
  if (const bool* value = std::get_if<bool>(&value_)) return *value ? "true" : "false";
  // Ten digits: every power of two up to 2^33 in full.
  if (const double* value = std::get_if<double>(&value_)) return absl::StrFormat("%.10g", *value);
  if (const DType* value = std::get_if<DType>(&value_)) return std::string(DTypeName(*value));
  if (const std::string* value = std::get_if<std::string>(&value_)) return *value;
  return "";
}

std::optional<bool> OptionValue::AsBool() const {
  const std::string word = absl::AsciiStrToLower(text());
  if (word == "true" || word == "1") return true;
  if (word == "false" || word == "0") return false;
  return std::nullopt;
}

std::optional<double> OptionValue::AsNumber() const {
  if (const double* value = std::get_if<double>(&value_)) return *value;
  double number = 0;
  if (std::holds_alternative<std::string>(value_) && absl::SimpleAtod(text(), &number)) return number;
  return std::nullopt;
}

std::optional<DType> OptionValue::AsDType() const {
  if (const DType* value = std::get_if<DType>(&value_)) return *value;
  return ParseDType(text());
}

}  // namespace mpc::amp
