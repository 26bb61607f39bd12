#include "frontend/inspect/value_statistics.h"

#include <cstring>
#include <numeric>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "frontend/graph/tensor.h"
#include "kernels/dtype.h"

namespace mpc {
namespace {

/// The parts of a record's name: statistics|cell|operation|direction|result|type|field.
std::optional<std::vector<std::string>> SplitName(const std::string& name) {
  std::vector<std::string> parts = absl::StrSplit(name, '|');
  if (parts.size() != 7 || parts[0] != "statistics") return std::nullopt;
  return parts;
}

ValueStatistics Named(const std::vector<std::string>& parts) {
  ValueStatistics value;
  value.cell = parts[1];
  value.operation = parts[2];
  value.backward = parts[3] == "backward";
  if (!absl::SimpleAtoi(parts[4], &value.result)) value.result = 0;
  value.dtype = ParseDType(parts[5]).value_or(DType::kF32);
  return value;
}

}  // namespace

std::int64_t ValueStatistics::count() const {
  return std::accumulate(exponents.begin(), exponents.end(), std::int64_t{0});
}

std::string ValueStatistics::Describe() const {
  if (operation == "parameter" || operation == "statistic" || operation == "input") {
    return absl::StrCat(operation, " '", cell, "'");
  }
  std::string text = absl::StrCat(backward ? "backward pass: " : "forward pass: ", operation);
  if (!cell.empty()) absl::StrAppend(&text, backward ? " for '" : " in '", cell, "'");
  if (result != 0) absl::StrAppend(&text, ", result ", result);
  return absl::StrCat(text, " (", std::string(DTypeName(dtype)), ")");
}

namespace internal {

absl::StatusOr<std::vector<ValueStatistics>> ReadStatistics(const runtime::Executable& step) {
  std::vector<ValueStatistics> values;
  const auto& outputs = step.program().outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::optional<std::vector<std::string>> parts = SplitName(outputs[i].name);
    if (!parts.has_value()) continue;
    const std::string& field = parts->back();
    const absl::Span<const std::uint8_t> content = step.output(i);
    const Tensor output =
        Tensor::FromBytes(step.program().values[outputs[i].value].spec, content.data(), content.size());
    if (field == "exponents") {
      values.push_back(Named(*parts));
      const absl::Span<const std::uint8_t> bytes = output.bytes();
      for (std::size_t bin = 0; bin < 256; ++bin) {
        std::int32_t elements = 0;
        std::memcpy(&elements, bytes.data() + bin * sizeof(elements), sizeof(elements));
        values.back().exponents[bin] = elements;
      }
    } else if (!values.empty() && field == "zeros") {
      values.back().zeros = output.Item<std::int64_t>();
    } else if (!values.empty()) {
      values.back().largest = output.Item<double>();
    }
  }
  if (values.empty()) return absl::FailedPreconditionError("the step was not compiled to measure its values");
  return values;
}

}  // namespace internal
}  // namespace mpc
