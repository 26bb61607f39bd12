// Claims of docs/amp.md about levels that no single pass can prove: values of compiled programs.
#include <gmock/gmock.h>

#include "tests/training/probe.h"
#include "tests/training/traced_ir.h"

namespace mpc::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ClaimsAtLevel : public ::testing::TestWithParam<Level> {
 protected:
  ModelOptions Options(LossScaleChoice scale = nullptr) const {
    return {.amp_level = GetParam().level, .loss_scale_manager = scale, .amp_dtype = GetParam().dtype};
  }
};

/// x -> f(x times the unit matrix): f is fed by matrix work, which is low at O1.
class AfterMatmul : public nn::Cell {
 public:
  MPC_CELL(AfterMatmul)
  explicit AfterMatmul(std::function<Tensor(const Tensor&)> function) : function_(std::move(function)) {}
  Tensor Construct(Tensor x, Tensor unit) { return function_(matmul(x, unit)); }

 private:
  std::function<Tensor(const Tensor&)> function_;
};

// AMP-2: 300 is an f16 number, its square and a sum of 300 of them are not.
TEST(DenyClass, AMP_2_IsComputedAndReturnedInF32AtO1) {
  const Tensor x = Tensor::Full({2, 300}, 300.0);
  std::vector<float> unit(300 * 300, 0.0f);
  for (std::size_t i = 0; i < 300; ++i) unit[i * 301] = 1.0f;
  const std::vector<std::pair<std::function<Tensor(const Tensor&)>, float>> cases = {
      {[](const Tensor& y) { return pow(y, 2.0); }, 90000.0f},
      {[](const Tensor& y) { return reduce_sum(y, {1}); }, 90000.0f},
      {[](const Tensor& y) { return reduce_sum(mse(y, y * 0.0, "none"), {1}) / 300.0; }, 90000.0f},
      {[](const Tensor& y) { return reduce_sum(softmax(y), {1}); }, 1.0f},
      // The squares of a layer norm's input would overflow too: their mean is 90000, their variance 0.
      {[](const Tensor& y) {
         return layer_norm(y, ops::Fill(DType::kF32, {300}, 2), ops::Fill(DType::kF32, {300}, 3));
       },
       3.0f}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    AfterMatmul network(cases[i].first);
    Model model(network, {.amp_level = "O1"});
    const absl::StatusOr<Tensor> y = model.Predict(x, Tensor::From(unit, {300, 300}));
    ASSERT_TRUE(y.ok()) << y.status();
    // A softmax of 300 equal values is 1 / 300 rounded, 300 times: half an ulp of each, and of each partial sum.
    for (float value : y->ToFloats()) EXPECT_NEAR(value, cases[i].second, 300 * 0x1p-24 * cases[i].second) << i;
  }
}

// AMP-5: what tracing makes of two types, before any level.
TEST(Tracing, AMP_5_OneF32AndOneLowOperandPromote) {
  const Tensor x = Values({2, 3}, 1);
  const Tensor indices = Tensor::From<std::int32_t>({1, 0}, {2});
  for (DType low : {DType::kF16, DType::kBF16}) {
    const Tensor y = x.To(low);
    EXPECT_EQ(add(x, y).dtype(), DType::kF32);
    EXPECT_EQ(mul(y, x).dtype(), DType::kF32);
    EXPECT_EQ(concat({y, x}, 0).dtype(), DType::kF32);
    EXPECT_EQ(add(y, y).dtype(), low);
    EXPECT_EQ(mul(y, y).dtype(), low);
    EXPECT_EQ(concat({y, y}, 0).dtype(), low);
    // The low operand is widened exactly, never the f32 one rounded.
    EXPECT_EQ(add(x, y).ToFloats(), add(x, y.To(DType::kF32)).ToFloats());
    EXPECT_EQ(gather(y, indices).dtype(), low);
    EXPECT_EQ(argmax(y).dtype(), DType::kI32);
    EXPECT_EQ(equal(indices, argmax(y)).dtype(), DType::kBool);
  }
}

/// Multiplies by 60000, 10016 and -20000: so do its cotangents.
class LargeCotangents : public nn::Cell {
 public:
  MPC_CELL(LargeCotangents, weight)
  Tensor Construct(Tensor x) {
    const Tensor h = matmul(x, weight);
    return concat({h * 60000.0, h * 10016.0, h * -20000.0}, 1);
  }
  Parameter weight{{1, 1}, Constant(0.0)};
};

// AMP-9: a partial sum of 70016 is infinite in f16; all three together are 50016, an f16 number (bf16: 49920 is next).
TEST_P(ClaimsAtLevel, AMP_9_CotangentsOfSeveralUsesAreSummedInF32) {
  LargeCotangents network;
  SumLoss loss;
  nn::SGD optimizer(network.TrainableParams(), {.learning_rate = 1.0});
  Model model(network, loss, optimizer, Options(FixedLossScaleManager({.loss_scale = 1})));
  MPC_ASSERT_OK(model.Train(1, Batches({{Tensor::Full({1, 1}, 1.0), Tensor::Full({1}, 0.0)}})));
  EXPECT_EQ(model.skipped_steps(), 0);
  const float moved = -network.weight.Value()->ToFloats()[0];
  const float rounded = Tensor::Full({1}, 50016.0).To(GetParam().dtype.value_or(DType::kF32)).ToFloats()[0];
  if (GetParam().level == "auto") {
    EXPECT_THAT(moved, ::testing::AnyOf(rounded, 50016.0f)) << "low or not: the device decides";
  } else {
    EXPECT_EQ(moved, rounded);
  }
}

/// Attention whose mask is an input.
class MaskedAttention : public nn::Cell {
 public:
  MPC_CELL(MaskedAttention, scale)
  Tensor Construct(Tensor x, Tensor readable) {
    const Tensor y = x * scale;
    return scaled_dot_product_attention(y, y, y, greater(readable, ops::Fill(DType::kF32, {1}, 0.5)));
  }
  Parameter scale{{1}, Constant(1.0)};
};

// AMP-34: the row gives zeros, and its gradients are finite.
TEST_P(ClaimsAtLevel, AMP_34_AFullyMaskedAttentionRowGivesNoNan) {
  MaskedAttention network;
  SumLoss loss;
  nn::SGD optimizer(network.TrainableParams(), {.learning_rate = 0.125});
  Model model(network, loss, optimizer, Options(FixedLossScaleManager({.loss_scale = 64})));
  const Tensor x = Values({1, 1, 3, 4});
  const Tensor readable = Tensor::From({0.0f, 0.0f, 0.0f, 1.0f, 0.0f, 0.0f, 1.0f, 1.0f, 1.0f}, {3, 3});
  const absl::StatusOr<Tensor> y = model.Predict(x, readable);
  ASSERT_TRUE(y.ok()) << y.status();
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_TRUE(std::isfinite(y->ToFloats()[i])) << i;
    EXPECT_TRUE(i >= 4 || y->ToFloats()[i] == 0.0f) << i << " is of the masked row";
  }
  MPC_ASSERT_OK(
      model.Train(1, data::GeneratorDataset({{x, readable, Tensor::Full({1}, 0.0)}}, {"x", "mask", "label"})));
  EXPECT_EQ(model.skipped_steps(), 0);
  EXPECT_NE(network.scale.Value()->ToFloats()[0], 1.0f) << "the other rows have gradients";
  EXPECT_TRUE(std::isfinite(network.scale.Value()->ToFloats()[0]));
}

/// Attention by hand, with the usual number in place of what a row may not see.
class HandMaskedAttention : public nn::Cell {
 public:
  MPC_CELL(HandMaskedAttention, scale)
  Tensor Construct(Tensor x, Tensor readable) {
    const Tensor y = x * scale, scores = batch_matmul(y, y, {.transpose_b = true});
    const Tensor masked =
        where(greater(readable, ops::Fill(DType::kF32, {1}, 0.5)), scores, ops::FullLike(scores, -1e9));
    return batch_matmul(softmax(masked), y);
  }
  Parameter scale{{1}, Constant(1.0)};
};

// AMP-34: nothing turns the number into an infinity at O1 and auto. So the masked row is a mean, as it is in f32. At O2
// and O3 it becomes infinite in f16, the row is NaN, and the step is skipped.
TEST_P(ClaimsAtLevel, AMP_34_ANumberBeyondF16KeepsItsOperationF32) {
  const bool is_lost = (GetParam().level == "O2" || GetParam().level == "O3") && GetParam().dtype != DType::kBF16;
  HandMaskedAttention network;
  SumLoss loss;
  nn::SGD optimizer(network.TrainableParams(), {.learning_rate = 0.125});
  Model model(network, loss, optimizer, Options(FixedLossScaleManager({.loss_scale = 64})));
  const Tensor x = Values({1, 3, 4});
  const Tensor readable = Tensor::From({0.0f, 0.0f, 0.0f, 1.0f, 0.0f, 0.0f, 1.0f, 1.0f, 1.0f}, {1, 3, 3});
  MPC_ASSERT_OK(
      model.Train(1, data::GeneratorDataset({{x, readable, Tensor::Full({1}, 0.0)}}, {"x", "mask", "label"})));
  EXPECT_EQ(model.skipped_steps(), is_lost ? 1 : 0);
  EXPECT_EQ(network.scale.Value()->ToFloats()[0] == 1.0f, is_lost);
  EXPECT_TRUE(std::isfinite(network.scale.Value()->ToFloats()[0]));
}

INSTANTIATE_TEST_SUITE_P(Levels, ClaimsAtLevel, ::testing::ValuesIn(AllLevels()), LevelName);

/// Two dense layers below a parent, one beside it.
class Nested : public nn::Cell {
 public:
  class Parent : public nn::Cell {
   public:
    MPC_CELL(Parent, left, right)
    Tensor Construct(Tensor x) { return right(left(x)); }
    nn::Dense left{6, 6}, right{6, 6};
  };
  MPC_CELL(Nested, parent, other)
  Tensor Construct(Tensor x) { return other(parent(x)); }
  Parent parent;
  nn::Dense other{6, 3};
};

/// The type of the matrix product of each dense layer, in program order.
std::vector<std::string> TypesOfProducts(Nested& network, const std::string& level) {
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  nn::SGD optimizer(network.TrainableParams());
  const Model model(network, loss, optimizer, {.amp_level = level, .loss_scale_manager = nullptr});
  const std::string ir = IrAt(model, {{DType::kF32, {4, 6}}, {DType::kF32, {4, 3}}}, "amp");
  std::vector<std::string> types;
  for (const std::string& line : LinesWith(ir, "= mpc.matmul")) {
    const std::string result = line.substr(line.rfind("->"));
    types.push_back(result.find("bf16") != std::string::npos ? "bf16" : IsLow(result) ? "f16" : "f32");
  }
  return types;
}

// AMP-31: on a parent and then a child the child's wins, on the child first the parent's call reaches it too; a second
// call on the same Cell replaces the first. All of it beats the level.
TEST(ToFloat, AMP_31_OnAParentThenAChildTheLastCallWins) {
  for (const char* level : {"O0", "O1", "O2", "O3"}) {
    const std::string other = std::string(level) == "O0" ? "f32" : "f16";
    Nested child_last;
    child_last.parent.ToFloat(DType::kF32);
    child_last.parent.left.ToFloat(DType::kBF16);
    EXPECT_THAT(TypesOfProducts(child_last, level), ElementsAre("bf16", "f32", other)) << level;
    Nested parent_last;
    parent_last.parent.left.ToFloat(DType::kBF16);
    parent_last.parent.ToFloat(DType::kF32);
    EXPECT_THAT(TypesOfProducts(parent_last, level), ElementsAre("f32", "f32", other)) << level;
    Nested twice;
    twice.parent.right.ToFloat(DType::kBF16);
    twice.parent.right.ToFloat(DType::kF32);
    EXPECT_THAT(TypesOfProducts(twice, level), ElementsAre(other, "f32", other)) << level;
  }
}

// AMP-31: 1 + 2^-9 is 1 in bf16; the user's cast rounds it at every level, and back is f32.
class Rounds : public nn::Cell {
 public:
  MPC_CELL(Rounds)
  Tensor Construct(Tensor x) { return cast(cast(x, DType::kBF16), DType::kF32) * 1.0; }
};

TEST_P(ClaimsAtLevel, AMP_31_AUsersCastKeepsItsRounding) {
  Rounds network;
  Model model(network, {.amp_level = GetParam().level, .amp_dtype = GetParam().dtype});
  const absl::StatusOr<Tensor> y = model.Predict(Tensor::From({1.0f + 0x1p-9f, 3.0f}, {2}));
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_THAT(y->ToFloats(), ElementsAre(1.0f, 3.0f));
}

}  // namespace
}  // namespace mpc::testing
