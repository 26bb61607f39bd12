// Batch normalisation: training and inference forms, their derivatives, the running update.
#include <cmath>

#include "kernels/known_attributes.h"
#include "kernels/reference/functions.h"
#include "kernels/reference/image.h"

namespace mpc::reference {
namespace {

void BatchNormTrain(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const Image image(attributes, inputs[0].spec.shape);
  const double epsilon = FloatAttribute(attributes, attribute::kEpsilon);
  const std::vector<double>& x = inputs[0].values;
  for (std::int64_t c = 0; c < image.channels; ++c) {
    const auto channel = static_cast<std::size_t>(c);
    const auto [mean, variance] = MomentsOfChannel(image, x, c);
    const double inv_std = 1 / std::sqrt(variance + epsilon);
    VisitChannel(image, c, [&, mean = mean](std::size_t i) {
      outputs[0].values[i] = (x[i] - mean) * inv_std * inputs[1].values[channel] + inputs[2].values[channel];
    });
    outputs[1].values[channel] = mean;
    outputs[2].values[channel] = variance;
    outputs[3].values[channel] = inv_std;
  }
}

void BatchNormTrainGrad(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const Image image(attributes, inputs[0].spec.shape);
  const std::vector<double>& dy = inputs[0].values;
  const std::vector<double>& x = inputs[1].values;
  const double count = ElementsPerChannel(image);
  for (std::int64_t c = 0; c < image.channels; ++c) {
    const auto channel = static_cast<std::size_t>(c);
    const double gamma = inputs[2].values[channel];
    const double mean = inputs[3].values[channel];
    const double inv_std = inputs[4].values[channel];
    double dgamma = 0;
    double dbeta = 0;
    VisitChannel(image, c, [&](std::size_t i) {
      dbeta += dy[i];
      dgamma += dy[i] * (x[i] - mean) * inv_std;
    });
    VisitChannel(image, c, [&](std::size_t i) {
      const double x_hat = (x[i] - mean) * inv_std;
      outputs[0].values[i] = gamma * inv_std * (dy[i] - dbeta / count - x_hat * dgamma / count);
    });
    outputs[1].values[channel] = dgamma;
    outputs[2].values[channel] = dbeta;
  }
}

void BatchNormApply(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const Image image(attributes, inputs[0].spec.shape);
  for (std::int64_t c = 0; c < image.channels; ++c) {
    const auto channel = static_cast<std::size_t>(c);
    const double scale = inputs[4].values[channel] * inputs[1].values[channel];
    VisitChannel(image, c, [&](std::size_t i) {
      outputs[0].values[i] = (inputs[0].values[i] - inputs[3].values[channel]) * scale + inputs[2].values[channel];
    });
  }
}

void BatchNormInfer(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const Image image(attributes, inputs[0].spec.shape);
  const double epsilon = FloatAttribute(attributes, attribute::kEpsilon);
  for (std::int64_t c = 0; c < image.channels; ++c) {
    const auto channel = static_cast<std::size_t>(c);
    const double gamma = inputs[1].values[channel];
    const double beta = inputs[2].values[channel];
    const double mean = inputs[3].values[channel];
    const double deviation = std::sqrt(inputs[4].values[channel] + epsilon);
    VisitChannel(image, c, [&](std::size_t i) {
      outputs[0].values[i] = (inputs[0].values[i] - mean) / deviation * gamma + beta;
    });
  }
}

void BatchNormInferGrad(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const Image image(attributes, inputs[0].spec.shape);
  const double epsilon = FloatAttribute(attributes, attribute::kEpsilon);
  const std::vector<double>& dy = inputs[0].values;
  const std::vector<double>& x = inputs[1].values;
  for (std::int64_t c = 0; c < image.channels; ++c) {
    const auto channel = static_cast<std::size_t>(c);
    const double gamma = inputs[2].values[channel];
    const double mean = inputs[3].values[channel];
    const double inv_std = 1 / std::sqrt(inputs[4].values[channel] + epsilon);
    double dgamma = 0;
    double dbeta = 0;
    VisitChannel(image, c, [&](std::size_t i) {
      outputs[0].values[i] = dy[i] * gamma * inv_std;
      dgamma += dy[i] * (x[i] - mean) * inv_std;
      dbeta += dy[i];
    });
    outputs[1].values[channel] = dgamma;
    outputs[2].values[channel] = dbeta;
  }
}

void BatchNormRunningUpdate(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const bool update = !HasOperand(inputs, 4) || Scalar(inputs[4]) != 0;
  const double momentum = FloatAttribute(attributes, attribute::kMomentum);
  const auto count = static_cast<double>(attributes.Get(attribute::kCount));
  // One element has no unbiased variance: the biased one (zero) stands in for 0 / 0.
  const double unbias = count > 1 ? count / (count - 1) : 1;
  const std::size_t channels = outputs[0].values.size();
  for (std::size_t c = 0; c < channels; ++c) {
    double mean = inputs[0].values[c];
    double variance = inputs[1].values[c];
    for (std::size_t i = c; update && i < inputs[2].values.size(); i += channels) {
      mean = momentum * mean + (1 - momentum) * inputs[2].values[i];
      // A count of 0 says that variances are multiplied already.
      const double batch = inputs[3].values[i];
      variance = momentum * variance + (count == 0 ? batch : (1 - momentum) * batch * unbias);
    }
    outputs[0].values[c] = mean;
    outputs[1].values[c] = variance;
  }
}

constexpr NamedFunction kTable[] = {
    {"batch_norm_train", BatchNormTrain},          {"batch_norm_train_grad", BatchNormTrainGrad},
    {"batch_norm_apply", BatchNormApply},          {"batch_norm_infer", BatchNormInfer},
    {"batch_norm_infer_grad", BatchNormInferGrad}, {"batch_norm_running_update", BatchNormRunningUpdate},
};

}  // namespace

FunctionTable BatchNormFunctions() { return kTable; }

}  // namespace mpc::reference
