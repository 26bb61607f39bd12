// Unscaling, the finite check and the loss-scale state machine. These are f32 operations by definition: whether a
// product overflows is their result, so they compute in float here too.
#include <algorithm>
#include <cmath>

#include "kernels/reference/functions.h"

namespace mpc::reference {
namespace {

constexpr float kSmallestScale = 0x1p-126f;
constexpr float kLargestScale = 0x1p126f;

void Unscale(const Attributes&, Inputs inputs, Outputs outputs) {
  for (std::size_t i = 0; i < outputs[0].values.size(); ++i) {
    outputs[0].values[i] = Unscaled(inputs[0].values[i], inputs[1]);
  }
}

bool IsFinite(const Tensor& gradient, const Tensor& scale) {
  // A norm in f64 may be beyond f32.
  if (gradient.spec.dtype == DType::kF64) {
    return std::all_of(gradient.values.begin(), gradient.values.end(),
                       [&scale](double value) { return std::isfinite(value / Scalar(scale)); });
  }
  return std::all_of(gradient.values.begin(), gradient.values.end(),
                     [&scale](double value) { return std::isfinite(Unscaled(value, scale)); });
}

void CheckFinite(const Attributes&, Inputs inputs, Outputs outputs) {
  outputs[0].values[0] = IsFinite(inputs[0], inputs[1]) ? 1 : 0;
}

// A flag in the place of a gradient is what CheckFinite said of it.
void AllFinite(const Attributes&, Inputs inputs, Outputs outputs) {
  double first_bad = -1;
  for (double loss : inputs[1].values) {
    if (!std::isfinite(loss)) first_bad = -2;
  }
  for (std::size_t position = 2; position < inputs.size() && first_bad < 0; ++position) {
    const Tensor& gradient = inputs[position];
    const bool is_flag = gradient.spec.dtype == DType::kBool;
    const bool finite = is_flag ? Scalar(gradient) != 0 : IsFinite(gradient, inputs[0]);
    if (!finite) first_bad = static_cast<double>(position - 2);
  }
  outputs[0].values[0] = first_bad == -1 ? 1 : 0;
  outputs[1].values[0] = first_bad;
}

void UpdateLossScale(const Attributes&, Inputs inputs, Outputs outputs) {
  const double first_bad = Scalar(inputs[0]);
  auto scale = static_cast<float>(Scalar(inputs[1]));
  double good = Scalar(inputs[2]);
  double bad = Scalar(inputs[3]);
  double skipped = Scalar(inputs[4]);
  double consecutive = Scalar(inputs[5]);
  const auto growth = static_cast<float>(Scalar(inputs[6]));
  const auto backoff = static_cast<float>(Scalar(inputs[7]));
  const auto minimum = std::max(static_cast<float>(Scalar(inputs[8])), kSmallestScale);
  const auto maximum = std::min(static_cast<float>(Scalar(inputs[9])), kLargestScale);
  const double interval = Scalar(inputs[10]);
  const double bad_limit = Scalar(inputs[11]);
  const bool dynamic = Scalar(inputs[12]) != 0;
  const bool skip = Scalar(inputs[13]) != 0;

  if (first_bad >= 0) {
    good = 0;
    // "At least": the configuration is state, and a limit may have been lowered below the count.
    if (dynamic && ++bad >= bad_limit) {
      scale = std::max(minimum, scale * backoff);
      bad = 0;
    }
  } else if (first_bad == -1) {
    bad = 0;
    if (dynamic && ++good >= interval) {
      const float grown = scale * growth;
      if (std::isfinite(grown)) scale = std::min(maximum, grown);
      good = 0;
    }
  }
  if (skip) {
    const bool finite = first_bad == -1;
    skipped += finite ? 0 : 1;
    consecutive = finite ? 0 : consecutive + 1;
  }
  outputs[0].values[0] = static_cast<double>(scale);
  outputs[1].values[0] = good;
  outputs[2].values[0] = bad;
  outputs[3].values[0] = skipped;
  outputs[4].values[0] = consecutive;
}

constexpr NamedFunction kTable[] = {
    {"unscale", Unscale},
    {"all_finite", AllFinite},
    {"check_finite", CheckFinite},
    {"update_loss_scale", UpdateLossScale},
};

}  // namespace

FunctionTable LossScaleFunctions() { return kTable; }

}  // namespace mpc::reference
