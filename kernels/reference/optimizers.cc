// Optimizers and counters. Operand i becomes result i; a false predicate keeps it. A low copy follows the parameter.
#include <algorithm>
#include <cmath>

#include "kernels/known_attributes.h"
#include "kernels/reference/functions.h"

namespace mpc::reference {
namespace {

// The gradients that a rule sees, and the position of its predicate. Behind the `rule_operands` operands of the rule
// come the scalars of the update: scale, norm, predicate. What unscale and clip_by_norm would store is rounded to f32.
class Gradients {
 public:
  Gradients(const Attributes& attributes, Inputs inputs, std::size_t gradient, std::size_t rule_operands)
      : gradients_(inputs[gradient].values) {
    std::size_t next = rule_operands;
    if (attributes.GetBool("unscale")) {
      for (double& value : gradients_) value = Unscaled(value, inputs[next]);
      ++next;
    }
    if (const double max_norm = FloatAttribute(attributes, "max_norm"); max_norm > 0) {
      const double factor = ClipFactor(Scalar(inputs[next]), max_norm);
      for (double& value : gradients_) value = RoundTo(DType::kF32, value * factor);
      ++next;
    }
    predicate_ = next;
  }
  double operator[](std::size_t i) const { return gradients_[i]; }
  std::size_t predicate() const { return predicate_; }

 private:
  std::vector<double> gradients_;
  std::size_t predicate_;
};

// True if the update is skipped, in which case the results are the state operands.
bool KeptOldState(Inputs inputs, std::size_t predicate_position, Outputs outputs) {
  if (!HasOperand(inputs, predicate_position) || Scalar(inputs[predicate_position]) != 0) return false;
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i].values = inputs[i].values;
  return true;
}

void Increment(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  if (KeptOldState(inputs, 1, outputs)) return;
  const auto by = static_cast<double>(attributes.Get(attribute::kBy));
  for (std::size_t i = 0; i < outputs[0].values.size(); ++i) outputs[0].values[i] = inputs[0].values[i] + by;
}

void Sgd(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const Gradients gradients(attributes, inputs, 2, 5);
  if (KeptOldState(inputs, gradients.predicate(), outputs)) return;
  const double momentum = FloatAttribute(attributes, "momentum");
  const double dampening = FloatAttribute(attributes, "dampening");
  const double weight_decay = FloatAttribute(attributes, "weight_decay");
  const double loss_scale = FloatAttribute(attributes, attribute::kLossScale);
  const bool nesterov = attributes.GetBool("nesterov");
  const double learning_rate = Scalar(inputs[3]);
  const bool first_step = Scalar(inputs[4]) == 0;
  for (std::size_t i = 0; i < inputs[0].values.size(); ++i) {
    const double parameter = inputs[0].values[i];
    const double gradient = gradients[i] / loss_scale + weight_decay * parameter;
    double velocity = inputs[1].values[i];
    double direction = gradient;
    if (momentum != 0) {
      velocity = first_step ? gradient : momentum * velocity + (1 - dampening) * gradient;
      direction = nesterov ? gradient + momentum * velocity : velocity;
    }
    outputs[0].values[i] = parameter - learning_rate * direction;
    outputs[1].values[i] = velocity;
  }
}

void Momentum(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const Gradients gradients(attributes, inputs, 2, 4);
  if (KeptOldState(inputs, gradients.predicate(), outputs)) return;
  const double momentum = FloatAttribute(attributes, attribute::kMomentum);
  const double weight_decay = FloatAttribute(attributes, "weight_decay");
  const double loss_scale = FloatAttribute(attributes, attribute::kLossScale);
  const bool nesterov = attributes.GetBool("nesterov");
  const double learning_rate = Scalar(inputs[3]);
  for (std::size_t i = 0; i < inputs[0].values.size(); ++i) {
    const double parameter = inputs[0].values[i];
    const double gradient = gradients[i] / loss_scale + weight_decay * parameter;
    const double velocity = momentum * inputs[1].values[i] + gradient;
    outputs[0].values[i] = parameter - learning_rate * (nesterov ? gradient + momentum * velocity : velocity);
    outputs[1].values[i] = velocity;
  }
}

void Adam(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const Gradients gradients(attributes, inputs, 3, 6);
  if (KeptOldState(inputs, gradients.predicate(), outputs)) return;
  const double beta1 = FloatAttribute(attributes, attribute::kBeta1);
  const double beta2 = FloatAttribute(attributes, attribute::kBeta2);
  const double epsilon = FloatAttribute(attributes, attribute::kAdamEpsilon);
  const double weight_decay = FloatAttribute(attributes, "weight_decay");
  const double loss_scale = FloatAttribute(attributes, attribute::kLossScale);
  const double t = Scalar(inputs[5]) + 1;
  const double learning_rate = Scalar(inputs[4]) * std::sqrt(1 - std::pow(beta2, t)) / (1 - std::pow(beta1, t));
  for (std::size_t i = 0; i < inputs[0].values.size(); ++i) {
    const double parameter = inputs[0].values[i];
    const double gradient = gradients[i] / loss_scale + weight_decay * parameter;
    const double moment1 = beta1 * inputs[1].values[i] + (1 - beta1) * gradient;
    const double moment2 = beta2 * inputs[2].values[i] + (1 - beta2) * gradient * gradient;
    outputs[0].values[i] = parameter - learning_rate * moment1 / (std::sqrt(moment2) + epsilon);
    outputs[1].values[i] = moment1;
    outputs[2].values[i] = moment2;
  }
}

void AdamWeightDecay(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const Gradients gradients(attributes, inputs, 3, 5);
  if (KeptOldState(inputs, gradients.predicate(), outputs)) return;
  const double beta1 = FloatAttribute(attributes, attribute::kBeta1);
  const double beta2 = FloatAttribute(attributes, attribute::kBeta2);
  const double epsilon = FloatAttribute(attributes, attribute::kLambEpsilon);
  const double weight_decay = FloatAttribute(attributes, "weight_decay");
  const double learning_rate = Scalar(inputs[4]);
  for (std::size_t i = 0; i < inputs[0].values.size(); ++i) {
    const double parameter = inputs[0].values[i];
    const double gradient = gradients[i];
    const double moment1 = beta1 * inputs[1].values[i] + (1 - beta1) * gradient;
    const double moment2 = beta2 * inputs[2].values[i] + (1 - beta2) * gradient * gradient;
    outputs[0].values[i] =
        parameter - learning_rate * (moment1 / (std::sqrt(moment2) + epsilon) + weight_decay * parameter);
    outputs[1].values[i] = moment1;
    outputs[2].values[i] = moment2;
  }
}

// The attributes of adamw and lamb, and what both compute first.
struct CorrectedMoments {
  double beta1, beta2, epsilon, weight_decay, loss_scale, learning_rate, correction1, correction2;

  CorrectedMoments(const Attributes& attributes, Inputs inputs, double epsilon, double weight_decay)
      : beta1(FloatAttribute(attributes, attribute::kBeta1)),
        beta2(FloatAttribute(attributes, attribute::kBeta2)),
        epsilon(epsilon),
        weight_decay(weight_decay),
        loss_scale(FloatAttribute(attributes, attribute::kLossScale)),
        learning_rate(Scalar(inputs[4])),
        correction1(1 - std::pow(beta1, Scalar(inputs[5]) + 1)),
        correction2(1 - std::pow(beta2, Scalar(inputs[5]) + 1)) {}

  void Move(const Gradients& gradients, Inputs inputs, Outputs outputs) const {
    for (std::size_t i = 0; i < inputs[0].values.size(); ++i) {
      const double gradient = gradients[i] / loss_scale;
      outputs[1].values[i] = beta1 * inputs[1].values[i] + (1 - beta1) * gradient;
      outputs[2].values[i] = beta2 * inputs[2].values[i] + (1 - beta2) * gradient * gradient;
    }
  }
};

void AdamW(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const Gradients gradients(attributes, inputs, 3, 6);
  if (KeptOldState(inputs, gradients.predicate(), outputs)) return;
  const CorrectedMoments moments(attributes, inputs, FloatAttribute(attributes, attribute::kAdamEpsilon),
                                 FloatAttribute(attributes, attribute::kAdamWDecay));
  moments.Move(gradients, inputs, outputs);
  for (std::size_t i = 0; i < inputs[0].values.size(); ++i) {
    const double root = std::sqrt(outputs[2].values[i]) / std::sqrt(moments.correction2);
    const double decayed = inputs[0].values[i] * (1 - moments.learning_rate * moments.weight_decay);
    outputs[0].values[i] =
        decayed - moments.learning_rate / moments.correction1 * outputs[1].values[i] / (root + moments.epsilon);
  }
}

double Norm(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value * value;
  return std::sqrt(sum);
}

void Lamb(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const Gradients gradients(attributes, inputs, 3, 6);
  if (KeptOldState(inputs, gradients.predicate(), outputs)) return;
  const CorrectedMoments moments(attributes, inputs, FloatAttribute(attributes, attribute::kLambEpsilon),
                                 FloatAttribute(attributes, "weight_decay"));
  moments.Move(gradients, inputs, outputs);
  const std::vector<double>& parameter = inputs[0].values;
  std::vector<double> direction(parameter.size());
  for (std::size_t i = 0; i < parameter.size(); ++i) {
    direction[i] = outputs[1].values[i] / moments.correction1 /
                       (std::sqrt(outputs[2].values[i] / moments.correction2) + moments.epsilon) +
                   moments.weight_decay * parameter[i];
  }
  const double parameter_norm = Norm(parameter);
  const double direction_norm = Norm(direction);
  const double ratio =
      parameter_norm == 0 || direction_norm == 0 ? 1.0 : std::min(parameter_norm / direction_norm, 10.0);
  for (std::size_t i = 0; i < parameter.size(); ++i) {
    outputs[0].values[i] = parameter[i] - moments.learning_rate * ratio * direction[i];
  }
}

// The last result is the new parameter; it is rounded to its own type where it is stored.
template <Function kUpdate>
void WithLowCopy(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  if (attributes.Get(attribute::kLowCopy) == LowCopy::kNone) return kUpdate(attributes, inputs, outputs);
  kUpdate(attributes, inputs, outputs.first(outputs.size() - 1));
  outputs.back().values = outputs.front().values;
}

constexpr NamedFunction kTable[] = {
    {"increment", Increment},
    {"sgd", WithLowCopy<Sgd>},
    {"momentum", WithLowCopy<Momentum>},
    {"adam", WithLowCopy<Adam>},
    {"adam_weight_decay", WithLowCopy<AdamWeightDecay>},
    {"adamw", WithLowCopy<AdamW>},
    {"lamb", WithLowCopy<Lamb>},
};

}  // namespace

FunctionTable OptimizerFunctions() { return kTable; }

}  // namespace mpc::reference
