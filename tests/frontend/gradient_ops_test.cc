// ops::Backward and ops::CustomVjp inside training steps.
#include "frontend/graph/gradient_ops.h"

#include <gmock/gmock.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "tests/frontend/error_of.h"
#include "tests/training/several_losses.h"

namespace mpc {
namespace {

using ::testing::ElementsAre;
using testing::ErrorOf;
using ::testing::HasSubstr;
using testing::Probe;
using testing::TwoLayers;
using testing::Values;
using TensorList = std::vector<Tensor>;

/// Runs one step of `body` on x; `body` gets the step.
class StepOf : public nn::TrainingStep {
 public:
  MPC_CELL(StepOf, network, other)
  explicit StepOf(std::function<Tensor(StepOf&, Tensor)> body) : body_(std::move(body)) {}
  Tensor Construct(Tensor x) { return body_(*this, x); }

  Probe network{2, 3.0};
  Probe other{2, 5.0};

 private:
  std::function<Tensor(StepOf&, Tensor)> body_;
};

Tensor RunStep(std::function<Tensor(StepOf&, Tensor)> body, Tensor x = Tensor::From({2.0f, -1.0f}, {2})) {
  StepOf step(std::move(body));
  return step(x);
}

TEST(Backward, DifferentiatesAValueOfTheStep) {
  // d/dw sum((w x)^2) = 2 w x^2.
  const Tensor gradient = RunStep([](StepOf& step, const Tensor& x) {
    return ops::Backward(reduce_sum(ops::square(step.network(x))), {step.network.weight})[0];
  });
  EXPECT_THAT(gradient.ToFloats(), ElementsAre(24, 6));
}

TEST(Backward, GradientsThatNothingReadsAreAnErrorByName) {
  const char* message = "the step computes the gradient of 'network.weight', and no optimizer updates it";
  const Tensor dropped = RunStep([](StepOf& step, const Tensor& x) {
    const Tensor loss = reduce_sum(step.network(x)) + reduce_sum(step.other(x));
    ops::Backward(loss, {step.network.weight, step.other.weight});
    return loss;
  });
  EXPECT_THAT(ErrorOf(dropped.status()), HasSubstr(message));
  const Tensor of_another = RunStep([](StepOf& step, const Tensor& x) {
    const Tensor gradient = ops::Backward(reduce_sum(step.network(x)), {step.network.weight})[0];
    return reduce_sum(step.other(gradient * 2.0 - gradient * 2.0 + x));
  });
  MPC_EXPECT_OK(of_another.status());
  const Tensor assigned = RunStep([](StepOf& step, const Tensor& x) {
    const Tensor loss = reduce_sum(step.network(x));
    const TensorList gradients = ops::Backward(loss, {step.network.weight, step.other.weight});
    step.other.weight.Assign(step.other.weight + gradients[0]);
    return loss;
  });
  MPC_EXPECT_OK(assigned.status());
}

TEST(Backward, SharesTheForwardPassBetweenLosses) {
  const Tensor gradients = RunStep([](StepOf& step, const Tensor& x) {
    const Tensor y = step.network(x);
    const Tensor first = ops::Backward(reduce_sum(y), {step.network.weight})[0];
    const Tensor second = ops::Backward(reduce_sum(y * 10.0), {step.network.weight})[0];
    return first + second;
  });
  EXPECT_THAT(gradients.ToFloats(), ElementsAre(22, -11));
}

TEST(Backward, SeedMultiplies) {
  const Tensor gradient = RunStep([](StepOf& step, const Tensor& x) {
    return ops::Backward(reduce_sum(step.network(x)), {step.network.weight}, ops::Fill(DType::kF32, {}, 4))[0];
  });
  EXPECT_THAT(gradient.ToFloats(), ElementsAre(8, -4));
}

TEST(Backward, UnusedAndFrozenParametersGetZeros) {
  const Tensor gradients = RunStep([](StepOf& step, const Tensor& x) {
    step.other.weight.set_requires_grad(false);
    const TensorList frozen = ops::Backward(reduce_sum(step.network(x)), {step.network.weight, step.other.weight});
    step.other.weight.set_requires_grad(true);
    const TensorList unused = ops::Backward(reduce_sum(step.network(x)), {step.other.weight});
    return frozen[1] + unused[0];
  });
  EXPECT_THAT(gradients.ToFloats(), ElementsAre(0, 0));
}

// The loss was computed from the weight before its update, so that is what it is differentiated by.
TEST(Backward, DifferentiatesByTheValueThatTheLossRead) {
  const Tensor gradient = RunStep([](StepOf& step, const Tensor& x) {
    const Tensor loss = reduce_sum(ops::square(step.network(x)));
    step.network.weight.Assign(step.network.weight.Read() * 0.0);
    return ops::Backward(loss, {step.network.weight})[0];
  });
  EXPECT_THAT(gradient.ToFloats(), ElementsAre(24, 6));
}

/// sum(3 online(x)) + sum(5 target(x)): the gradients are 3 x and 5 x.
class OnlineAndTarget : public nn::Cell {
 public:
  MPC_CELL(OnlineAndTarget, online, target)
  Tensor Construct(Tensor x) {
    if (assigns) target.weight.Assign(online.weight);
    return reduce_sum(online(x) * 3.0) + reduce_sum(target(x) * 5.0);
  }
  Probe online{2, 3.0}, target{2, 4.0};
  bool assigns = false;
};

class TargetStep : public nn::TrainingStep {
 public:
  MPC_CELL(TargetStep, network)
  explicit TargetStep(std::function<TensorList(OnlineAndTarget&, Tensor)> body) : body_(std::move(body)) {}
  TensorList Construct(Tensor x) { return body_(network, x); }
  OnlineAndTarget network;

 private:
  std::function<TensorList(OnlineAndTarget&, Tensor)> body_;
};

TEST(AssignedParameter, IsALeafWhateverItsValueIs) {
  const std::function<Tensor(OnlineAndTarget&, Tensor)> values[] = {
      [](OnlineAndTarget& both, const Tensor&) { return both.online.weight.Read(); },
      [](OnlineAndTarget& both, const Tensor&) { return both.online.weight.Read() * 2.0; },
      [](OnlineAndTarget& both, const Tensor&) {
        return reshape(reshape(both.online.weight, {2, 1}), {2});
      },
      [](OnlineAndTarget&, const Tensor& x) { return x; },
  };
  for (const auto& value : values) {
    for (const bool backward : {false, true}) {
      TargetStep step([&](OnlineAndTarget& both, const Tensor& x) {
        both.target.weight.Assign(value(both, x));
        const std::vector<Parameter> parameters{both.online.weight, both.target.weight};
        return backward ? ops::Backward(both(x), parameters) : ops::ValueAndGrad(both, parameters, {x}).gradients;
      });
      const TensorList gradients = step(Tensor::From({2.0f, -1.0f}, {2}));
      EXPECT_THAT(gradients[0].ToFloats(), ElementsAre(6, -3)) << backward;
      EXPECT_THAT(gradients[1].ToFloats(), ElementsAre(10, -5)) << backward;
    }
  }
}

TEST(AssignedParameter, IsALeafWhereADifferentiatedFunctionAssignedIt) {
  TargetStep step([](OnlineAndTarget& both, const Tensor& x) {
    const std::vector<Parameter> parameters{both.online.weight, both.target.weight};
    both.assigns = true;
    TensorList gradients = ops::ValueAndGrad(both, {both.online.weight}, {x}).gradients;
    both.assigns = false;
    for (const Tensor& gradient : ops::Backward(both(x), parameters)) gradients.push_back(gradient);
    return gradients;
  });
  const TensorList gradients = step(Tensor::From({2.0f, -1.0f}, {2}));
  EXPECT_THAT(gradients[0].ToFloats(), ElementsAre(6, -3));
  EXPECT_THAT(gradients[1].ToFloats(), ElementsAre(6, -3));
  EXPECT_THAT(gradients[2].ToFloats(), ElementsAre(10, -5));
  EXPECT_THAT(step.network.target.weight.Value()->ToFloats(), ElementsAre(3, 3));
}

TEST(AssignedParameter, HasNoGradientOfALossThatReadsItsValueElsewhere) {
  const Tensor gradient = RunStep([](StepOf& step, const Tensor& x) {
    step.other.weight.Assign(step.network.weight);
    return ops::Backward(reduce_sum(step.network(x)), {step.other.weight})[0];
  });
  EXPECT_THAT(gradient.ToFloats(), ElementsAre(0, 0));
}

TEST(AssignedParameter, KeepsItsPrecisionWhereItIsReadInALowScope) {
  StepOf step([](StepOf& own, const Tensor& x) {
    const amp::AutoCast guard({.level = "O3"});
    own.network.weight.Assign(ops::FullLike(x, 1.0001));
    return own.network(x);
  });
  MPC_ASSERT_OK(step(Tensor::From({2.0f, -1.0f}, {2})).status());
  EXPECT_THAT(step.network.weight.Value()->ToFloats(), ElementsAre(1.0001f, 1.0001f));
}

TEST(Backward, DifferentiatesDerivatives) {
  // d/dw of sum(d/dw sum(w^3 x)) = 6 w x.
  const Tensor second = RunStep([](StepOf& step, const Tensor& x) {
    const Tensor w = step.network.weight;
    const Tensor first = ops::Backward(reduce_sum(w * w * w * x), {step.network.weight})[0];
    return ops::Backward(reduce_sum(first), {step.network.weight})[0];
  });
  EXPECT_THAT(second.ToFloats(), ElementsAre(36, -18));
}

TEST(Backward, NamesALossThatIsNotFloating) {
  const Tensor result = RunStep(
      [](StepOf& step, const Tensor& x) { return ops::Backward(argmax(step.network(x)), {step.network.weight})[0]; });
  EXPECT_THAT(ErrorOf(result), HasSubstr("Backward differentiates a floating loss, got"));
  EXPECT_THAT(ErrorOf(result), HasSubstr("i32"));
}

TEST(Backward, NeedsATrace) {
  Probe network;
  EXPECT_THAT(ErrorOf(ops::Backward(Tensor::Full({}, 1), {network.weight})[0]),
              HasSubstr("Backward belongs into a training step's Construct"));
}

// ---- CustomVjp ------------------------------------------------------------------------------------------------------

TensorList Tanh(const TensorList& inputs) { return {tanh(inputs[0])}; }
TensorList TanhRule(const TensorList&, const TensorList& outputs, const TensorList& cotangents) {
  return {cotangents[0] * (1.0 - outputs[0] * outputs[0])};
}

TEST(CustomVjp, RuleOfAnOperationGivesItsGradient) {
  const Tensor difference = RunStep([](StepOf& step, const Tensor& x) {
    const Tensor y = step.network(x * 0.25);
    const Tensor custom = ops::CustomVjp(Tanh, TanhRule, {y})[0];
    const Tensor by_rule = ops::Backward(reduce_sum(custom), {step.network.weight})[0];
    return by_rule - ops::Backward(reduce_sum(tanh(y)), {step.network.weight})[0];
  });
  EXPECT_THAT(difference.ToFloats(), ElementsAre(0, 0));
}

TEST(CustomVjp, IsWhatTheUserSaysItIs) {
  // A straight-through estimator: the forward pass rounds, the backward pass does not.
  const Tensor gradient = RunStep([](StepOf& step, const Tensor& x) {
    const auto round = [](const TensorList& inputs) {
      return TensorList{cast(cast(inputs[0] + 0.25, DType::kI32), DType::kF32), argmax(inputs[0])};
    };
    const auto pass = [](const TensorList&, const TensorList&, const TensorList& cotangents) {
      return TensorList{cotangents[0]};
    };
    const Tensor rounded = ops::CustomVjp(round, pass, {step.network(x)})[0];
    return ops::Backward(reduce_sum(ops::square(rounded)), {step.network.weight})[0];
  });
  EXPECT_THAT(gradient.ToFloats(), ElementsAre(24, 4));  // 2 * 6 * 2 and 2 * -2 * -1: -2.75 truncates to -2
}

TEST(CustomVjp, RunsOnConcreteTensors) {
  EXPECT_FLOAT_EQ(ops::CustomVjp(Tanh, TanhRule, {Tensor::Full({}, 1)})[0].Item<float>(), std::tanh(1.0f));
}

TEST(CustomVjp, NamesWhatAFunctionCaptures) {
  const Tensor result = RunStep([](StepOf& step, const Tensor& x) {
    return ops::CustomVjp([&](const TensorList& inputs) { return TensorList{inputs[0] * step.network.weight.Read()}; },
                          TanhRule, {x})[0];
  });
  EXPECT_THAT(ErrorOf(result), HasSubstr("a function given to CustomVjp reads 'network.weight' from outside"));
}

TEST(CustomVjp, NamesCotangentsThatDoNotFit) {
  const auto two = [](const TensorList&, const TensorList&, const TensorList& dy) { return TensorList{dy[0], dy[0]}; };
  const auto scalar = [](const TensorList&, const TensorList&, const TensorList& dy) {
    return TensorList{reduce_sum(dy[0])};
  };
  EXPECT_THAT(ErrorOf(RunStep([&](StepOf&, const Tensor& x) { return ops::CustomVjp(Tanh, two, {x})[0]; })),
              HasSubstr("returns 2 cotangents for 1 floating inputs"));
  EXPECT_THAT(ErrorOf(RunStep([&](StepOf&, const Tensor& x) { return ops::CustomVjp(Tanh, scalar, {x})[0]; })),
              HasSubstr("cotangent 0 of the rule given to CustomVjp is"));
}

TEST(CustomVjp, MayNotUpdateState) {
  const Tensor result = RunStep([](StepOf& step, const Tensor& x) {
    return ops::CustomVjp(
        [&](const TensorList& inputs) {
          step.network.weight.Assign(inputs[0]);
          return inputs;
        },
        TanhRule, {x})[0];
  });
  EXPECT_FALSE(result.status().ok());
}

TEST(Backward, SecondDerivativesPassThroughProductsAndSquares) {
  // d/dw (2 w)^2 = 8 w, summed over x = 1.
  for (const bool by_square : {false, true}) {
    const Tensor penalty = RunStep(
        [by_square](StepOf& step, const Tensor& x) {
          const Tensor y = step.network(x);
          const Tensor first = ops::Backward(reduce_sum(by_square ? square(y) : y * y), {step.network.weight})[0];
          return ops::Backward(reduce_sum(first * first), {step.network.weight})[0];
        },
        Tensor::From({1.0f, 1.0f}, {2}));
    EXPECT_THAT(penalty.ToFloats(), ElementsAre(24, 24)) << by_square;
  }
}

TEST(Backward, SecondDerivativesPassThroughSortAndTopK) {
  // y = w x = {6, -3}. Sorted, the squares count once and ten times.
  const Tensor sorted = RunStep([](StepOf& step, const Tensor& x) {
    const Tensor y = sort(step.network(x)).first;
    const Tensor first = ops::Backward(reduce_sum(y * y * Tensor::From({1.0f, 10.0f}, {2})), {step.network.weight})[0];
    return ops::Backward(reduce_sum(first * first), {step.network.weight})[0];
  });
  EXPECT_THAT(sorted.ToFloats(), ElementsAre(2 * 240 * 80, 2 * 6 * 2)) << "first is {20 w x0^2, 2 w x1^2} = {240, 6}";
  const Tensor largest = RunStep([](StepOf& step, const Tensor& x) {
    const Tensor y = topk(step.network(x), 1).first;
    const Tensor first = ops::Backward(reduce_sum(y * y), {step.network.weight})[0];
    return ops::Backward(reduce_sum(first * first), {step.network.weight})[0];
  });
  EXPECT_THAT(largest.ToFloats(), ElementsAre(2 * 24 * 8, 0)) << "first is {2 w x0^2, 0} = {24, 0}";
}

TEST(Backward, SecondDerivativesPassThroughExtremaAndTheirTies) {
  const auto second = [](const std::function<Tensor(const Tensor&)>& function, Tensor x) {
    return RunStep(
               [&function](StepOf& step, const Tensor& x) {
                 const Tensor y = function(step.network(x));
                 const Tensor first = ops::Backward(reduce_sum(y * y), {step.network.weight})[0];
                 return ops::Backward(reduce_sum(first * first), {step.network.weight})[0];
               },
               std::move(x))
        .ToFloats();
  };
  const auto largest = [](const Tensor& y) { return reduce_max(y); };
  const auto smallest = [](const Tensor& y) { return reduce_min(y); };
  // y = w x = {6, -3}: first is {2 w x0^2, 0} = {24, 0}, or {0, 2 w x1^2} = {0, 6}.
  const Tensor distinct = Tensor::From({2.0f, -1.0f}, {2}), equal = Tensor::From({1.0f, 1.0f}, {2});
  EXPECT_THAT(second(largest, distinct), ElementsAre(2 * 24 * 8, 0));
  EXPECT_THAT(second(smallest, distinct), ElementsAre(0, 2 * 6 * 2));
  // Both have half of the maximum y: first is {y, y}, and y moves by half of what each weight does.
  EXPECT_THAT(second(largest, equal), ElementsAre(2 * 3, 2 * 3));
  EXPECT_THAT(second(smallest, equal), ElementsAre(2 * 3, 2 * 3));
  // No element is a maximum that is NaN.
  const Tensor nan = Tensor::From({std::nanf(""), 1.0f}, {2});
  EXPECT_THAT(second(largest, nan), ElementsAre(::testing::_, 0));
}

TEST(Backward, AParameterOfAnInputIsRefusedByName) {
  const char* const message =
      "a Parameter was made from a tensor of the step, tensor<2xf32>: Parameters are those that MPC_CELL names; "
      "ops::Grad gives derivatives by inputs and other tensors";
  EXPECT_THAT(ErrorOf(RunStep([](StepOf& step, const Tensor& x) {
                return ops::Backward(reduce_sum(step.network(x)), {Parameter(x)})[0];
              })),
              HasSubstr(message));
  EXPECT_THAT(ErrorOf(RunStep([](StepOf& step, const Tensor& x) {
                const Parameter input(x);
                return ops::Backward(reduce_sum(step.network(input)), {input})[0];
              })),
              HasSubstr(message));
}

}  // namespace
}  // namespace mpc
