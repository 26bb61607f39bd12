// The operations around a step's optimizers: gradient norms, accumulation over micro-steps, flags, statistics.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/known_attributes.h"
#include "kernels/reference/functions.h"

namespace mpc::reference {

double ClipFactor(double norm, double max_norm) {
  return std::isfinite(norm) ? std::min(1.0, max_norm / (norm + static_cast<double>(1e-6f)))
                             : std::numeric_limits<double>::quiet_NaN();
}

namespace {

// Whether the optional predicate at `position` turns the update off.
bool Skipped(Inputs inputs, std::size_t position) {
  return HasOperand(inputs, position) && Scalar(inputs[position]) == 0;
}

void ScaleLoss(const Attributes&, Inputs inputs, Outputs outputs) {
  for (std::size_t i = 0; i < outputs[0].values.size(); ++i) {
    outputs[0].values[i] = inputs[0].values[i] * Scalar(inputs[1]);
  }
}

void MergeChecks(const Attributes&, Inputs inputs, Outputs outputs) {
  double largest = -1;
  double smallest = -1;
  for (const Tensor& check : inputs) {
    largest = std::max(largest, Scalar(check));
    smallest = std::min(smallest, Scalar(check));
  }
  outputs[0].values[0] = largest >= 0 ? largest : smallest;
}

void AllOf(const Attributes&, Inputs inputs, Outputs outputs) {
  outputs[0].values[0] =
      std::all_of(inputs.begin(), inputs.end(), [](const Tensor& flag) { return Scalar(flag) != 0; });
}

void AnyOf(const Attributes&, Inputs inputs, Outputs outputs) {
  outputs[0].values[0] =
      std::any_of(inputs.begin(), inputs.end(), [](const Tensor& flag) { return Scalar(flag) != 0; });
}

// The sum of squares of the gradient's elements, divided by the scale where there is one.
double SumOfSquares(const Tensor& gradient, const Tensor* scale) {
  double sum = 0;
  for (double value : gradient.values) {
    const double term = scale != nullptr ? Unscaled(value, *scale) : value;
    sum += term * term;
  }
  return sum;
}

void GlobalNorm(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const Tensor* const scale = attributes.GetBool("unscale") ? &inputs[0] : nullptr;
  const Inputs terms = inputs.subspan(scale != nullptr ? 1 : 0);
  const std::size_t gradients = terms.size() - static_cast<std::size_t>(attributes.GetInt("sums"));
  double sum = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    sum += i < gradients ? SumOfSquares(terms[i], scale) : Scalar(terms[i]);
  }
  outputs[0].values[0] = std::sqrt(sum);
}

void SumOfSquares(const Attributes&, Inputs inputs, Outputs outputs) {
  outputs[0].values[0] = SumOfSquares(inputs[0], inputs.size() > 1 ? &inputs[1] : nullptr);
}

void ClipByNorm(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const double factor = ClipFactor(Scalar(inputs[1]), FloatAttribute(attributes, "max_norm"));
  for (std::size_t i = 0; i < outputs[0].values.size(); ++i) outputs[0].values[i] = inputs[0].values[i] * factor;
}

void AccumulateGradient(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const std::int64_t count = attributes.Get(attribute::kCount);
  const std::int64_t level = attributes.Get(attribute::kLevel);
  const double divisor = level > 0 ? 1 : static_cast<double>(count);
  const auto micro_step = static_cast<std::int64_t>(Scalar(inputs[2]));
  const std::int64_t half = std::int64_t{1} << level;
  // Micro-step j completes 2^level of them where j + 1 is a multiple of that.
  const bool reached = (micro_step + 1) % half == 0 || micro_step == 0 || micro_step == count - 1;
  const bool adds = (micro_step / half) % 2 == 1;
  for (std::size_t i = 0; i < outputs[0].values.size(); ++i) {
    const double old = inputs[0].values[i];
    const double term = inputs[1].values[i] / divisor;
    outputs[0].values[i] = Skipped(inputs, 3) || !reached ? old : (adds ? old + term : term);
  }
}

void NextMicroStep(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const auto micro_step = static_cast<std::int64_t>(Scalar(inputs[0]));
  const std::int64_t next = (micro_step + 1) % attributes.Get(attribute::kCount);
  outputs[0].values[0] = static_cast<double>(Skipped(inputs, 1) ? micro_step : next);
}

// The biased exponent of an f32 value.
std::size_t ExponentBin(double value) {
  if (!std::isfinite(value)) return 255;
  if (std::abs(value) < 0x1p-126) return 0;
  const int biased = std::ilogb(value) + 127;
  return static_cast<std::size_t>(biased);
}

void TensorStatistics(const Attributes&, Inputs inputs, Outputs outputs) {
  std::fill(outputs[0].values.begin(), outputs[0].values.end(), 0.0);
  double zeros = 0;
  double largest = 0;
  for (double value : inputs[0].values) {
    outputs[0].values[ExponentBin(value)] += 1;
    if (value == 0) zeros += 1;
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  outputs[1].values[0] = zeros;
  outputs[2].values[0] = largest;
}

void ProcessRank(const Attributes&, Inputs, Outputs outputs) { outputs[0].values[0] = 0; }

constexpr NamedFunction kTable[] = {
    {"scale_loss", ScaleLoss},
    {"merge_checks", MergeChecks},
    {"all_of", AllOf},
    {"any_of", AnyOf},
    {"global_norm", GlobalNorm},
    {"sum_of_squares", SumOfSquares},
    {"clip_by_norm", ClipByNorm},
    {"accumulate_gradient", AccumulateGradient},
    {"next_micro_step", NextMicroStep},
    {"tensor_statistics", TensorStatistics},
    {"process_rank", ProcessRank},
};

}  // namespace

FunctionTable StepFunctions() { return kTable; }

}  // namespace mpc::reference
