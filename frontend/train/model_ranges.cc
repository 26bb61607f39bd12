// A first loss scale that follows from the ranges of a Model's step.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "compiler/driver/analyze_ranges.h"
#include "frontend/train/model_impl.h"

namespace mpc {
namespace {

using compiler::KnownRange;

/// Sums of squares of the fibres of a row-major tensor along axes [`first`, `last`); the root of the largest.
double LargestNorm(const float* values, const Shape& shape, std::size_t first, std::size_t last) {
  std::size_t inner = 1;
  std::size_t terms = 1;
  std::size_t outer = 1;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    (axis < first ? outer : axis < last ? terms : inner) *= static_cast<std::size_t>(shape[axis]);
  }
  double largest = 0;
  std::vector<double> squares(inner);
  for (std::size_t block = 0; block < outer; ++block) {
    std::fill(squares.begin(), squares.end(), 0.0);
    const float* row = values + block * terms * inner;
    for (std::size_t term = 0; term < terms; ++term, row += inner) {
      for (std::size_t i = 0; i < inner; ++i) squares[i] += static_cast<double>(row[i]) * static_cast<double>(row[i]);
    }
    for (const double sum : squares) largest = std::max(largest, sum);
  }
  return std::sqrt(largest);
}

/// What the elements of `tensor` say; nothing for a type other than f32, and where an element is not finite.
std::optional<KnownRange> RangeOf(const Tensor& tensor) {
  if (tensor.dtype() != DType::kF32 || tensor.size() == 0) return std::nullopt;
  const float* values = tensor.data<float>().data();
  const auto count = static_cast<std::size_t>(tensor.size());
  if (!std::all_of(values, values + count, [](float value) { return std::isfinite(value); })) return std::nullopt;
  const auto [low, high] = std::minmax_element(values, values + count);
  KnownRange range{.low = *low, .high = *high};
  const Shape& shape = tensor.shape();
  const std::size_t rank = shape.size();
  range.norm = LargestNorm(values, shape, 0, rank);
  range.typical = range.norm / std::sqrt(static_cast<double>(count));
  if (rank >= 1) range.row_norm = LargestNorm(values, shape, rank - 1, rank);
  if (rank >= 1) range.sample_norm = LargestNorm(values, shape, 1, rank);
  if (rank >= 2) range.column_norm = LargestNorm(values, shape, rank - 2, rank - 1);
  return range;
}

/// The interval of both, and the larger of what is typical of them.
KnownRange Joined(const KnownRange& a, const KnownRange& b) {
  return {.low = std::min(a.low, b.low),
          .high = std::max(a.high, b.high),
          .typical = std::max(a.typical.value_or(0), b.typical.value_or(0))};
}

}  // namespace

absl::StatusOr<compiler::RangeTable> Model::Impl::RangesOn(const Model& model, const data::Dataset& dataset) const {
  absl::StatusOr<std::unique_ptr<data::DatasetIterator>> rows = dataset.NewIterator(0);
  if (!rows.ok()) return rows.status();
  data::Row batch;
  const absl::StatusOr<bool> found = (*rows)->Next(&batch);
  if (!found.ok()) return found.status();
  if (!*found) return absl::InvalidArgumentError("the data set has no batch, whose values ranges begin with");
  compiler::RangeAssumptions assumptions;
  for (const Tensor& column : batch) {
    const std::optional<KnownRange> known = RangeOf(column);
    if (!known.has_value()) continue;
    const KnownRange interval = Joined(*known, assumptions.inputs.value_or(*known));
    assumptions.inputs = interval;
  }
  for (const auto& [name, parameter] : root()->ParametersAndNames()) {
    const absl::StatusOr<Tensor> value = parameter.Value();
    if (!value.ok()) return value.status();
    if (const std::optional<KnownRange> known = RangeOf(*value); known.has_value()) assumptions.state[name] = *known;
  }
  absl::StatusOr<internal::StepOptions> precise = WithPrecision(TrainOptions({}));
  if (!precise.ok()) return precise.status();
  precise->compile.function = precise->name;
  absl::StatusOr<compiler::Module> traced = model.TraceTrainStep(internal::SpecsOf(batch));
  if (!traced.ok()) return traced.status();
  return compiler::AnalyzeRanges(*traced, precise->compile, assumptions);
}

absl::Status Model::Impl::DeriveLossScale(const Model& model, const data::Dataset& dataset) {
  const bool is_first = global_step == 0 && scaler != nullptr && scaler->skipped_steps() == 0;
  if (!options.amp.enabled || options.amp.loss_scale.text() != "derived" || !is_first ||
      scaler->scale() != scale_config.init) {
    return absl::OkStatus();
  }
  absl::StatusOr<compiler::RangeTable> table = RangesOn(model, dataset);
  if (!table.ok()) return table.status();
  if (table->derived_scale == 0) {
    Say(absl::StrFormat("remark: no f16 tensor of the step grows with the loss scale, which begins at %.10g",
                        scale_config.init));
    return absl::OkStatus();
  }
  for (const std::string& warning : compiler::OverflowWarnings(*table)) Say("warning: " + warning);
  const double scale = std::clamp(table->derived_scale, scale_config.minimum, scale_config.maximum);
  Say(absl::StrFormat("remark: the loss scale begins at %.10g: %s is expected to reach %.3g with it", scale,
                      table->derived_from, table->derived_peak * scale));
  return scaler->SetScale(scale);
}

}  // namespace mpc
