// Training steps with two losses, whose gradients the test chooses.
#pragma once

#include <utility>
#include <vector>

#include "tests/training/probe.h"

namespace mpc::testing {

/// A batch of two columns: one for each loss.
inline data::Dataset TwoColumns(const Tensor& first, const Tensor& second) {
  return data::GeneratorDataset({{first, second}}, {"first", "second"});
}
inline data::Dataset TwoNumbers(float first, float second) {
  return TwoColumns(Tensor::Full({1}, first), Tensor::Full({1}, second));
}

/// Two models, two losses, one optimizer.
class OneOptimizerStep : public nn::TrainingStep {
 public:
  MPC_CELL(OneOptimizerStep, first, second)
  Tensor Construct(Tensor x, Tensor y) {
    const Tensor loss_x = reduce_sum(first(x));
    const Tensor loss_y = reduce_sum(second(y));
    const Tensor of_x = ops::Backward(loss_x, {first.weight})[0];
    const Tensor of_y = ops::Backward(loss_y, {second.weight})[0];
    return ops::Depend(loss_x + loss_y, optimizer({of_x, of_y}));
  }
  std::vector<nn::Optimizer*> optimizers() const override { return {const_cast<nn::SGD*>(&optimizer)}; }

  Probe first, second;
  nn::SGD optimizer{{first.weight, second.weight}, {.learning_rate = 1.0}};
};

/// Two models, one optimizer: one loss on batches of one number, two on larger ones.
class LossesByRows : public nn::TrainingStep {
 public:
  MPC_CELL(LossesByRows, first, second)
  Tensor Construct(Tensor x) {
    const Tensor loss_x = reduce_sum(first(x));
    const Tensor loss_y = reduce_sum(second(x));
    if (x.shape()[0] == 1) return ops::Depend(loss_x + loss_y, optimizer(ops::Backward(loss_x + loss_y, weights())));
    const Tensor of_x = ops::Backward(loss_x, {first.weight})[0];
    const Tensor of_y = ops::Backward(loss_y, {second.weight})[0];
    return ops::Depend(loss_x + loss_y, optimizer({of_x, of_y}));
  }
  std::vector<nn::Optimizer*> optimizers() const override { return {const_cast<nn::SGD*>(&optimizer)}; }
  std::vector<Parameter> weights() const { return {first.weight, second.weight}; }

  Probe first, second;
  nn::SGD optimizer{{first.weight, second.weight}, {.learning_rate = 1.0}};
};

/// Two models, two losses, an optimizer each.
class TwoOptimizersStep : public nn::TrainingStep {
 public:
  MPC_CELL(TwoOptimizersStep, first, second)
  Tensor Construct(Tensor x, Tensor y) {
    const Tensor loss_x = reduce_sum(first(x));
    const Tensor loss_y = reduce_sum(second(y));
    const bool stepped =
        optimizer_x(ops::Backward(loss_x, {first.weight})) && optimizer_y(ops::Backward(loss_y, {second.weight}));
    return ops::Depend(loss_x + loss_y, stepped);
  }

  Probe first, second;
  nn::SGD optimizer_x{first.TrainableParams(), {.learning_rate = 1.0}};
  nn::SGD optimizer_y{second.TrainableParams(), {.learning_rate = 1.0}};
};

/// One after the other: the second loss reads what the first optimizer wrote.
class AlternatingStep : public nn::TrainingStep {
 public:
  MPC_CELL(AlternatingStep, first, second)
  Tensor Construct(Tensor x, Tensor y) {
    const Tensor loss_x = reduce_sum(first(x));
    optimizer_x(ops::Backward(loss_x, optimizer_x.parameters()));
    const Tensor loss_y = reduce_sum(first(second(y)));
    optimizer_y(ops::Backward(loss_y, optimizer_y.parameters()));
    return loss_x + loss_y;
  }

  Probe first, second;
  nn::SGD optimizer_x{first.TrainableParams(), {.learning_rate = 1.0}};
  nn::SGD optimizer_y{second.TrainableParams(), {.learning_rate = 1.0}};
};

/// A model that two losses share: its gradient is the sum of theirs. `head` belongs to the second loss alone.
class SharedModelStep : public nn::TrainingStep {
 public:
  MPC_CELL(SharedModelStep, shared, head)
  Tensor Construct(Tensor x, Tensor y) {
    const Tensor loss_x = reduce_sum(shared(x));
    const Tensor loss_y = reduce_sum(shared(y)) + reduce_sum(head(y));
    const Tensor of_x = ops::Backward(loss_x, {shared.weight})[0];
    const std::vector<Tensor> of_y = ops::Backward(loss_y, {shared.weight, head.weight});
    const bool stepped = optimizer_shared({of_x + of_y[0]}) && optimizer_head({of_y[1]});
    return ops::Depend(loss_x + loss_y, stepped);
  }

  Probe shared, head;
  nn::SGD optimizer_shared{shared.TrainableParams(), {.learning_rate = 1.0}};
  nn::SGD optimizer_head{head.TrainableParams(), {.learning_rate = 1.0}};
};

/// Two networks with batch norm and dropout, two losses, two optimizers: every kind of state that a step moves.
class TwoNetworksStep : public nn::TrainingStep {
 public:
  MPC_CELL(TwoNetworksStep, first, second)
  Tensor Construct(Tensor x, Tensor y) {
    const Tensor loss_x = reduce_mean(ops::square(first(x)));
    const Tensor loss_y = reduce_mean(ops::square(second(y)));
    const bool stepped = optimizer_x(ops::Backward(loss_x, optimizer_x.parameters())) &&
                         optimizer_y(ops::Backward(loss_y, optimizer_y.parameters()));
    return ops::Depend(loss_x + loss_y, stepped);
  }

  ConvNorm first, second;
  nn::Momentum optimizer_x{first.TrainableParams(), {.learning_rate = 0.05}};
  nn::Momentum optimizer_y{second.TrainableParams(), {.learning_rate = 0.05}};
};

inline float WeightOf(const Probe& network) { return network.weight.Value()->ToFloats().front(); }

}  // namespace mpc::testing
