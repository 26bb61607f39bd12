#include "frontend/train/last_step.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mpc::internal {
namespace {

constexpr char kLoss[] = "loss";
constexpr char kGradientNorm[] = "gradient_norm";
constexpr char kLearningRate[] = "learning_rate";

/// 17 digits hold every bit of an f64.
std::string TextOf(double value) { return absl::StrFormat("%.17g", value); }

}  // namespace

TextMap LastStepOf(const RunContext& context) {
  TextMap step = {{kLoss, TextOf(context.loss())}};
  if (context.gradient_norm.has_value()) step[kGradientNorm] = TextOf(*context.gradient_norm);
  if (context.learning_rate.has_value()) step[kLearningRate] = TextOf(*context.learning_rate);
  return step;
}

absl::Status TellLastStep(const TextMap& step, RunContext& context) {
  for (const auto& [name, text] : step) {
    double value = 0;
    if (!absl::SimpleAtod(text, &value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the checkpoint says '", text, "' of ", name, " of its last step; accepted are numbers"));
    }
    if (name == kLoss) context.set_loss(static_cast<float>(value));
    if (name == kGradientNorm) context.gradient_norm = value;
    if (name == kLearningRate) context.learning_rate = value;
  }
  return absl::OkStatus();
}

}  // namespace mpc::internal
