#include "frontend/graph/cell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/training/training_support.h"

namespace mpc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Values;

std::vector<std::string> NamesOf(nn::Cell& cell) {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : cell.ParametersAndNames()) names.push_back(name);
  return names;
}

class Block : public nn::Cell {
 public:
  MPC_CELL(Block, conv, norm)
  Tensor Construct(Tensor x) { return relu(norm(conv(x))); }
  nn::Conv2d conv{2, 2, 3, {.has_bias = true}};
  nn::BatchNorm2d norm{2};
};

class Nested : public nn::Cell {
 public:
  MPC_CELL(Nested, scale, first, blocks, head)
  Tensor Construct(Tensor x) {
    x = first(x);
    for (const nn::AnyCell& block : blocks) x = block(x);
    return head(x) * scale;
  }
  Parameter scale{{1}, Ones()};
  Block first;
  nn::CellList blocks{{Block(), Block()}};
  nn::SequentialCell head{nn::Flatten(), nn::Dense(8, 2)};
};

TEST(Cell, PathsAreInTheOrderOfRegistration) {
  Nested net;
  EXPECT_THAT(NamesOf(net), ElementsAre("scale", "first.conv.weight", "first.conv.bias", "first.norm.gamma",
                                        "first.norm.beta", "first.norm.moving_mean", "first.norm.moving_variance",
                                        "blocks.0.conv.weight", "blocks.0.conv.bias", "blocks.0.norm.gamma",
                                        "blocks.0.norm.beta", "blocks.0.norm.moving_mean",
                                        "blocks.0.norm.moving_variance", "blocks.1.conv.weight", "blocks.1.conv.bias",
                                        "blocks.1.norm.gamma", "blocks.1.norm.beta", "blocks.1.norm.moving_mean",
                                        "blocks.1.norm.moving_variance", "head.1.weight", "head.1.bias"));
  EXPECT_EQ(net.ParametersAndNames()[1].second.name(), "first.conv.weight");
}

TEST(Cell, TrainableParamsLeaveOutStatisticsAndFrozenOnes) {
  Block block;
  EXPECT_EQ(block.TrainableParams().size(), 4u);
  EXPECT_TRUE(block.SetRequiresGrad("norm", false).ok());
  std::vector<std::string> names;
  for (const Parameter& parameter : block.TrainableParams()) names.push_back(parameter.name());
  EXPECT_THAT(names, ElementsAre("conv.weight", "conv.bias"));
  EXPECT_TRUE(block.SetRequiresGrad("", true).ok());
  EXPECT_EQ(block.TrainableParams().size(), 4u) << "unfreezing everything leaves statistics alone";
}

TEST(Cell, SetRequiresGradTakesWholePathComponents) {
  Nested net;
  EXPECT_TRUE(net.SetRequiresGrad("blocks.1", false).ok());
  EXPECT_FALSE(net.GetParameter("blocks.1.conv.weight")->requires_grad());
  EXPECT_TRUE(net.GetParameter("blocks.0.conv.weight")->requires_grad());
  const absl::Status unknown = net.SetRequiresGrad("block", false);
  EXPECT_EQ(unknown.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("Nested has no parameter below 'block'"));
}

/// Norms without gamma and beta, beside one that has them.
class Unscaled : public nn::Cell {
 public:
  MPC_CELL(Unscaled, batch, group, instance, scaled)
  Tensor Construct(Tensor x) { return scaled(instance(group(batch(x)))); }
  nn::BatchNorm2d batch{2, {.affine = false}};
  nn::GroupNorm group{1, 2, {.affine = false}};
  nn::InstanceNorm2d instance{2, {.affine = false}};
  nn::BatchNorm2d scaled{2};
};

TEST(Cell, WhatWasNeverTrainableIsUnfrozenByItsOwnPathAlone) {
  Unscaled net;
  const auto trainable = [&] {
    std::vector<std::string> names;
    for (const Parameter& parameter : net.TrainableParams()) names.push_back(parameter.name());
    return names;
  };
  EXPECT_TRUE(net.SetRequiresGrad("", false).ok());
  EXPECT_THAT(trainable(), ElementsAre());
  EXPECT_TRUE(net.SetRequiresGrad("", true).ok());
  EXPECT_TRUE(net.SetRequiresGrad("batch", true).ok()) << "there is such a path";
  EXPECT_THAT(trainable(), ElementsAre("scaled.gamma", "scaled.beta"));
  EXPECT_TRUE(net.SetRequiresGrad("group.gamma", true).ok());
  EXPECT_THAT(trainable(), ElementsAre("group.gamma", "scaled.gamma", "scaled.beta"));
  // From then on it is one of those that are trained.
  EXPECT_TRUE(net.SetRequiresGrad("", false).ok());
  EXPECT_TRUE(net.SetRequiresGrad("", true).ok());
  EXPECT_THAT(trainable(), ElementsAre("group.gamma", "scaled.gamma", "scaled.beta"));
}

TEST(Cell, GetAndSetParameterByPath) {
  Block block;
  const Tensor value = Values({2}, 3);
  EXPECT_TRUE(block.SetParameter("conv.bias", value).ok());
  EXPECT_EQ(block.conv.bias.Value()->ToFloats(), value.ToFloats());
  absl::StatusOr<Parameter> missing = block.GetParameter("conv.weights");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("Block has no parameter 'conv.weights'"));
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("conv.weight"));
  const absl::Status misshapen = block.SetParameter("conv.bias", Values({3}));
  EXPECT_THAT(std::string(misshapen.message()), HasSubstr("parameter 'conv.bias' is tensor<2xf32>, got tensor<3xf32>"));
  const absl::Status mistyped = block.SetParameter("conv.bias", Tensor::Zeros({2}, DType::kI32));
  EXPECT_FALSE(mistyped.ok());
  EXPECT_EQ(block.conv.bias.Value()->ToFloats(), value.ToFloats());
}

TEST(Parameter, SaysWhyItHasNoValue) {
  Parameter parameter(Tensor::From({1.0f, 2.0f, 3.0f}, {2}));
  EXPECT_FALSE(parameter.initial_error().ok());
  EXPECT_THAT(std::string(parameter.Value().status().message()), HasSubstr("was made from a tensor that has an error"));
  EXPECT_THAT(std::string(InitialiseParameters({parameter}).message()), HasSubstr("was made from a tensor"));
}

class Shared : public nn::Cell {
 public:
  MPC_CELL(Shared, encoder, decoder)
  Tensor Construct(Tensor x) { return decoder(encoder(x)); }
  nn::Dense encoder{4, 4};
  nn::Dense decoder = encoder;
};

TEST(Cell, SharedParametersAppearOnce) {
  Shared net;
  EXPECT_THAT(NamesOf(net), ElementsAre("encoder.weight", "encoder.bias"));
  EXPECT_TRUE(net.encoder.weight == net.decoder.weight);
}

TEST(Cell, CopiesShareParameters) {
  Block first;
  Block second = first;
  EXPECT_TRUE(first.conv.weight == second.conv.weight);
  const Tensor value = Values({2}, 4);
  EXPECT_TRUE(second.SetParameter("conv.bias", value).ok());
  EXPECT_EQ(first.conv.bias.Value()->ToFloats(), value.ToFloats());
  EXPECT_THAT(NamesOf(second), ElementsAre("conv.weight", "conv.bias", "norm.gamma", "norm.beta", "norm.moving_mean",
                                           "norm.moving_variance"));
}

class Gain : public nn::Cell {
 public:
  MPC_CELL(Gain)
  Tensor Construct(Tensor x) { return x * gain; }
  double gain = 2;
};

TEST(Cell, CopiesDoNotSharePrograms) {
  Gain two;
  EXPECT_EQ(two(Tensor::Scalar(1.0f)).Item<float>(), 2.0f);
  Gain three = two;
  three.gain = 3;
  EXPECT_EQ(three(Tensor::Scalar(1.0f)).Item<float>(), 3.0f);
}

TEST(Cell, SetTrainReachesEverySubCell) {
  Nested net;
  net.SetTrain();
  EXPECT_TRUE(net.training() && net.first.norm.training() && net.blocks[1].cell().training());
  net.SetTrain(false);
  EXPECT_FALSE(net.training() || net.first.norm.training() || net.blocks[1].cell().training());
}

TEST(Cell, ModeOfASubCellIsSeenByTheNextCall) {
  Block block;
  const Tensor x = Values({2, 2, 4, 4});
  const std::vector<float> inference = block(x).ToFloats();
  block.norm.SetTrain(true);
  const std::vector<float> batch_statistics = block(x).ToFloats();
  EXPECT_NE(inference, batch_statistics);
  block.norm.SetTrain(false);
  EXPECT_NE(block(x).ToFloats(), batch_statistics);
}

TEST(Cell, SummaryCountsElements) {
  Block block;
  const std::string summary = block.Summary();
  EXPECT_THAT(summary, HasSubstr("Block"));
  EXPECT_THAT(summary, HasSubstr("weight [2, 2, 3, 3]"));
  EXPECT_THAT(summary, HasSubstr("total 46 elements, 42 trainable"));
}

class ForgetsCell : public nn::Cell {
 public:
  MPC_CELL(ForgetsCell, first)
  Tensor Construct(Tensor x) { return second(first(x)); }
  nn::Dense first{4, 4};
  nn::Dense second{4, 4};
};

TEST(Cell, UnregisteredSubCellIsAnErrorByName) {
  ForgetsCell net;
  const absl::Status status = net(Values({2, 4})).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("forgetscell: a Dense cell is called but not registered; name its member in "
                        "MPC_CELL(ForgetsCell, ...)"));
}

/// Calls what a test gives it and names nothing.
template <typename Forgotten>
class Forgets : public nn::Cell {
 public:
  MPC_CELL(Forgets)
  explicit Forgets(Forgotten given) : forgotten(std::move(given)) {}
  Tensor Construct(Tensor x) { return forgotten(x); }
  Forgotten forgotten;
};

/// No Parameters and no sub-cells; what it computes depends on the mode.
class Mode : public nn::Cell {
 public:
  MPC_CELL(Mode)
  Tensor Construct(Tensor x) { return training() ? x * 2.0 : x; }
};

TEST(Cell, UnregisteredCellsWithModesStateOrSubCellsAreErrorsByName) {
  const auto error = [](auto forgotten) {
    Forgets<decltype(forgotten)> net(std::move(forgotten));
    net.SetTrain();
    return std::string(net(Values({2, 4})).status().message());
  };
  EXPECT_EQ(error(nn::Dropout({.p = 0.5})),
            "forgets: a Dropout cell is called but not registered; name its member in MPC_CELL(Forgets, ...)");
  EXPECT_THAT(error(Mode()), HasSubstr("a Mode cell is called but not registered"));
  EXPECT_THAT(error(nn::SequentialCell(nn::ReLU(), nn::Dropout({.p = 0.5}))),
              HasSubstr("a SequentialCell cell is called but not registered"));
  nn::ReLU low;
  low.ToFloat(DType::kF16);
  EXPECT_THAT(error(low), HasSubstr("a ReLU cell is called but not registered"));
  nn::ReLU recomputed;
  recomputed.Recompute();
  EXPECT_THAT(error(recomputed), HasSubstr("a ReLU cell is called but not registered"));
  EXPECT_EQ(error(nn::ReLU()), "") << "it is the same function wherever it stands";
}

class ForgetsParameter : public nn::Cell {
 public:
  MPC_CELL(ForgetsParameter)
  Tensor Construct(Tensor x) { return x * scale; }
  Parameter scale{{4}, Ones()};
};

TEST(Cell, UnregisteredParameterIsAnErrorByName) {
  ForgetsParameter net;
  const absl::Status status = net(Values({2, 4})).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("forgetsparameter: a Parameter tensor<4xf32> is used but not registered; name its member in "
                        "MPC_CELL(ForgetsParameter, ...)"));
}

class HasData : public nn::Cell {
 public:
  MPC_CELL(HasData, scale)
  Tensor Construct(Tensor x) { return x * scale; }
  Parameter scale{{4}, Ones(), {.role = Role::kInput}};
};

TEST(Cell, AParameterOfARoleOfDataIsAnErrorByName) {
  HasData net;
  EXPECT_THAT(std::string(net(Values({2, 4})).status().message()),
              HasSubstr("Parameter 'scale' has the role 'input', which is none of state"));
}

class ForgetsSlot : public nn::Cell {
 public:
  MPC_CELL(ForgetsSlot)
  Tensor Construct(Tensor x) { return x * scale; }
  Parameter scale{{4}, Ones(), {.role = Role::kSlot}};
};

TEST(Cell, StateWithoutANameIsAnErrorByItsRole) {
  ForgetsSlot net;
  EXPECT_THAT(std::string(net(Values({2, 4})).status().message()),
              HasSubstr("a Parameter tensor<4xf32> of the role 'slot' has no name; make it a member of a Cell that "
                        "MPC_CELL names"));
}

class Borrows : public nn::Cell {
 public:
  MPC_CELL(Borrows)
  Tensor Construct(Tensor x) { return x * scale; }
  Parameter scale;
};

TEST(Cell, ParameterOfAnotherNetworkIsAnError) {
  Block owner;
  owner.ParametersAndNames();
  Borrows net;
  net.scale = owner.conv.bias;
  EXPECT_THAT(std::string(net(Values({3, 2})).status().message()), HasSubstr("not registered"));
}

// Everything that Construct may return.
struct Statistics {
  Tensor mean;
  Tensor sum;
};
class KeepsSymbolicTensor : public nn::Cell {
 public:
  MPC_CELL(KeepsSymbolicTensor)
  Tensor Construct(Tensor x) {
    if (!kept.defined()) kept = x * 2.0;
    return x + kept;
  }
  Tensor kept;
};

TEST(Cell, ATensorOfAnEarlierTraceIsAnError) {
  KeepsSymbolicTensor net;
  EXPECT_TRUE(net(Values({2})).status().ok());
  EXPECT_THAT(std::string(net(Values({3})).status().message()),
              HasSubstr("keepssymbolictensor: a tensor of another trace"));
}

class ReturnsInput : public nn::Cell {
 public:
  MPC_CELL(ReturnsInput, state)
  std::tuple<Tensor, Tensor, Tensor, Tensor> Construct(Tensor x) {
    return {x, state, ops::Fill(DType::kF32, {2}, 3.0), x};
  }
  Parameter state{{1}, Ones()};
};

TEST(Cell, InputsParametersAndConstantsMayBeReturned) {
  ReturnsInput net;
  const auto [input, parameter, constant, again] = net(Tensor::From({1.0f, 2.0f}, {2}));
  EXPECT_THAT(input.ToFloats(), ElementsAre(1, 2));
  EXPECT_THAT(parameter.ToFloats(), ElementsAre(1));
  EXPECT_THAT(constant.ToFloats(), ElementsAre(3, 3));
  EXPECT_THAT(again.ToFloats(), ElementsAre(1, 2));
}

class ReturnsTuple : public nn::Cell {
 public:
  MPC_CELL(ReturnsTuple)
  std::tuple<Tensor, Tensor, Tensor> Construct(Tensor x) { return {x, x * 2.0, x * 3.0}; }
};
class ReturnsPair : public nn::Cell {
 public:
  MPC_CELL(ReturnsPair)
  std::pair<Tensor, Tensor> Construct(Tensor x) { return {x + 1.0, reduce_sum(x)}; }
};
class ReturnsStruct : public nn::Cell {
 public:
  MPC_CELL(ReturnsStruct)
  Statistics Construct(Tensor x) { return {reduce_mean(x), reduce_sum(x)}; }
};
class ReturnsVector : public nn::Cell {
 public:
  MPC_CELL(ReturnsVector)
  std::vector<Tensor> Construct(const std::vector<Tensor>& xs) {
    std::vector<Tensor> doubled;
    for (const Tensor& x : xs) doubled.push_back(x * 2.0);
    return doubled;
  }
};
class CallsThemAll : public nn::Cell {
 public:
  MPC_CELL(CallsThemAll, tuple, pair, statistics, vector)
  Tensor Construct(Tensor x) {
    auto [a, b, c] = tuple(x);
    auto [d, e] = pair(b);
    const Statistics s = statistics(c);
    return vector(std::vector<Tensor>{a + d, e, s.mean, s.sum})[0] + s.sum;
  }
  ReturnsTuple tuple;
  ReturnsPair pair;
  ReturnsStruct statistics;
  ReturnsVector vector;
};

TEST(Cell, ConstructReturnsTuplesPairsStructsAndVectors) {
  const Tensor x = Tensor::From({1.0f, 2.0f}, {2});
  const auto [a, b, c] = ReturnsTuple()(x);
  EXPECT_THAT(a.ToFloats(), ElementsAre(1, 2));
  EXPECT_THAT(b.ToFloats(), ElementsAre(2, 4));
  EXPECT_THAT(c.ToFloats(), ElementsAre(3, 6));
  const auto [d, e] = ReturnsPair()(x);
  EXPECT_THAT(d.ToFloats(), ElementsAre(2, 3));
  EXPECT_EQ(e.Item<float>(), 3.0f);
  const Statistics s = ReturnsStruct()(x);
  EXPECT_EQ(s.mean.Item<float>(), 1.5f);
  EXPECT_EQ(s.sum.Item<float>(), 3.0f);
  ReturnsVector vector;
  const std::vector<Tensor> doubled = vector(std::vector<Tensor>{x, Tensor::Scalar(5.0f)});
  ASSERT_EQ(doubled.size(), 2u);
  EXPECT_EQ(doubled[1].Item<float>(), 10.0f);
  CallsThemAll all;
  EXPECT_THAT(all(x).ToFloats(), ElementsAre(2 * (1 + 3) + 9, 2 * (2 + 5) + 9));
}

TEST(Cell, ErrorsReachEveryOutput) {
  const auto [a, b, c] = ReturnsTuple()(Tensor());
  EXPECT_FALSE(a.status().ok());
  EXPECT_FALSE(b.status().ok());
  EXPECT_FALSE(c.status().ok());
}

class AppliesToList : public nn::Cell {
 public:
  MPC_CELL(AppliesToList, list)
  Tensor Construct(Tensor x) {
    for (const nn::AnyCell& cell : list) x = cell(x);
    return x;
  }
  nn::CellList list{{nn::Dense(4, 4), nn::ReLU(), nn::Dense(4, 3)}};
};

TEST(CellList, ElementsAreCalledInALoopUnderTheirIndex) {
  AppliesToList net;
  EXPECT_THAT(NamesOf(net), ElementsAre("list.0.weight", "list.0.bias", "list.2.weight", "list.2.bias"));
  EXPECT_EQ(net(Values({2, 4})).shape(), Shape({2, 3}));
  net.list.Append(nn::Dense(5, 1));
  EXPECT_THAT(std::string(net(Values({2, 4})).status().message()),
              HasSubstr("appliestolist/list/3: Dense expects 5 input features, got 3"));
}

TEST(CellList, IsNotAFunction) {
  nn::CellList list({nn::ReLU()});
  EXPECT_THAT(std::string(list(Values({2})).status().message()), HasSubstr("a CellList is a list, not a function"));
}

TEST(SequentialCell, AppliesInOrderAndNamesByIndex) {
  nn::SequentialCell net(nn::Flatten(), nn::Dense(8, 4, {.weight_init = Ones(), .bias_init = Zeros()}), nn::ReLU());
  EXPECT_THAT(NamesOf(net), ElementsAre("1.weight", "1.bias"));
  EXPECT_THAT(net(Tensor::Full({1, 2, 4}, 0.5)).ToFloats(), ElementsAre(4, 4, 4, 4));
  net.Append(nn::Dense(4, 1, {.has_bias = false, .weight_init = Ones()}));
  EXPECT_THAT(net(Tensor::Full({1, 2, 4}, 0.5)).ToFloats(), ElementsAre(16));
}

/// A list with a constructor of its own.
class OneDense : public nn::SequentialCell {
 public:
  OneDense() : SequentialCell(nn::Dense(2, 1)) {}
};

TEST(SequentialCell, HoldsOneCellAndIsCopiedAndMovedAsAList) {
  EXPECT_EQ(nn::SequentialCell{nn::Flatten()}(Values({2, 3, 4})).shape(), Shape({2, 12}));
  EXPECT_EQ(nn::SequentialCell({nn::Flatten()})(Values({2, 3, 4})).shape(), Shape({2, 12}));
  EXPECT_EQ(nn::SequentialCell({nn::Flatten(), nn::Dense(12, 5)})(Values({2, 3, 4})).shape(), Shape({2, 5}));
  nn::Dense dense(2, 1);
  nn::SequentialCell list{dense};
  EXPECT_THAT(NamesOf(list), ElementsAre("0.weight", "0.bias"));
  nn::SequentialCell copy{list};
  const nn::SequentialCell constant(copy);
  nn::SequentialCell of_constant(constant);
  nn::SequentialCell moved(std::move(copy));
  OneDense derived;
  OneDense copied(derived);
  nn::SequentialCell sliced(derived);
  for (nn::SequentialCell* each : {&of_constant, &moved, static_cast<nn::SequentialCell*>(&copied), &sliced}) {
    EXPECT_THAT(NamesOf(*each), ElementsAre("0.weight", "0.bias"));
  }
  nn::SequentialCell nested(std::vector<nn::AnyCell>{list});
  EXPECT_THAT(NamesOf(nested), ElementsAre("0.0.weight", "0.0.bias"));
  nn::SequentialCell beside{list, nn::ReLU()};
  EXPECT_THAT(NamesOf(beside), ElementsAre("0.0.weight", "0.0.bias"));
  static_assert(!std::is_convertible_v<nn::Dense, nn::SequentialCell>);
}

}  // namespace
}  // namespace mpc
