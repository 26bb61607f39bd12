// A head in chunks of rows trains as the whole head does: the same loss, the same decisions, gradients within the
// rounding of another order of summation.
#include <cmath>

#include "models/bert.h"
#include "tests/training/training_support.h"

namespace mpc::testing {
namespace {

constexpr std::int64_t kVocabulary = 160;
constexpr std::int64_t kWidth = 16;
constexpr std::int64_t kRows = 14;

/// Token numbers [2, 7] -> logits [14, 160], by the token table.
class Reader : public nn::Cell {
 public:
  MPC_CELL(Reader, tokens, body, norm)
  Tensor Construct(Tensor ids) {
    const Tensor x = reshape(tokens(ids), {-1, kWidth});
    return matmul(norm(x + relu(body(x))), tokens.embedding_table, {}, {.transpose_b = true});
  }
  nn::Embedding tokens{kVocabulary, kWidth, {.embedding_table = Normal(0.1)}};
  nn::Dense body{kWidth, kWidth};
  nn::LayerNorm norm{{kWidth}};
};

/// Mean over the labels that are not negative.
class KnownTokensLoss : public models::MaskedTokenLoss {
 public:
  using Label = std::int32_t;
};

class MeanTokensLoss : public nn::LossBase {
 public:
  using Label = std::int32_t;
  MPC_CELL(MeanTokensLoss)
  Tensor Construct(const Tensor& logits, const Tensor& labels) {
    return softmax_cross_entropy(logits, reshape(labels, {kRows}), "mean");
  }
};

/// The sum over all rows, of i64 labels.
class SumTokensLoss : public nn::LossBase {
 public:
  using Label = std::int64_t;
  MPC_CELL(SumTokensLoss)
  Tensor Construct(const Tensor& logits, const Tensor& labels) {
    return softmax_cross_entropy(logits, reshape(labels, {kRows}), "sum");
  }
};

/// Two heads on one body, each with its loss: the sum over rows by the token table, the mean by a table of its own.
class TwoHeads : public nn::Cell {
 public:
  MPC_CELL(TwoHeads, reader, other)
  Tensor Construct(Tensor ids, Tensor next) {
    const Tensor labels = reshape(next, {kRows});
    const Tensor x = reshape(reader.tokens(ids), {-1, kWidth});
    const Tensor hidden = reader.norm(x + relu(reader.body(x)));
    const Tensor logits = matmul(hidden, reader.tokens.embedding_table, {}, {.transpose_b = true});
    return softmax_cross_entropy(logits, labels, "sum") + softmax_cross_entropy(other(hidden), labels, "mean");
  }
  Reader reader;
  nn::Dense other{kWidth, kVocabulary};
};

/// Of a network that computes its loss; what it is given as labels is not read.
class OwnLoss : public nn::LossBase {
 public:
  using Label = std::int64_t;
  MPC_CELL(OwnLoss)
  Tensor Construct(const Tensor& loss, const Tensor&) { return loss; }
};

template <typename Loss>
data::Row TokenBatch(std::int64_t index) {
  using Label = typename Loss::Label;
  constexpr bool kAllKnown = !std::is_same_v<Loss, KnownTokensLoss>;
  std::vector<std::int32_t> ids;
  std::vector<Label> next;
  for (std::int64_t i = 0; i < kRows; ++i) {
    ids.push_back(static_cast<std::int32_t>((i * i + 11 * index) % kVocabulary));
    next.push_back(!kAllKnown && (i + index) % 4 == 0 ? -1 : static_cast<Label>((7 * i + 3 * index) % kVocabulary));
  }
  data::Row row = {Tensor::From(ids, {2, kRows / 2}), Tensor::From(next, {2, kRows / 2})};
  if (std::is_same_v<Loss, OwnLoss>) row.push_back(row.back());
  return row;
}

struct Outcome {
  std::vector<float> losses;
  std::map<std::string, std::vector<float>> parameters;
  double scale = 0;
  std::int64_t skipped = 0;
  std::int64_t steps = 0;
  std::size_t arena = 0;
  std::vector<std::string> remarks;
};

struct Plan {
  Level level;
  LossScaleChoice scale = {};
  std::int64_t steps = 1;
  std::int64_t accumulation_steps = 1;
  double learning_rate = 1;
};

template <typename Loss, typename Network = Reader>
Outcome Train(const Plan& plan, int chunks) {
  EXPECT_TRUE(SetContext({.head_chunks = chunks}).ok());
  SetSeed(7);
  Network network;
  Loss loss;
  nn::SGD optimizer(network.TrainableParams(), {.learning_rate = plan.learning_rate});
  Model model(network, loss, optimizer,
              {.amp_level = plan.level.level,
               .loss_scale_manager = plan.scale,
               .amp_dtype = plan.level.dtype,
               .accumulation_steps = plan.accumulation_steps});
  std::vector<data::Row> batches;
  for (std::int64_t i = 0; i < plan.steps; ++i) batches.push_back(TokenBatch<Loss>(i));
  auto recorder = std::make_shared<LossRecorder>();
  data::ColumnNames columns = {"data", "label"};
  if (std::is_same_v<Loss, OwnLoss>) columns.insert(columns.begin() + 1, "next");
  MPC_EXPECT_OK(model.Train(1, data::GeneratorDataset(std::move(batches), std::move(columns)), {recorder}));
  MPC_EXPECT_OK(SetContext({}));
  Outcome run;
  run.losses = recorder->losses;
  for (const auto& [name, parameter] : network.ParametersAndNames())
    run.parameters[name] = parameter.Value()->ToFloats();
  run.scale = model.loss_scale();
  run.skipped = model.skipped_steps();
  run.steps = model.global_step();
  for (const compiler::CompileResult* compiled : model.compiled()) {
    if (compiled->program.name != "train_step") continue;
    run.arena = compiled->program.arena_bytes;
    run.remarks = compiled->remarks;
  }
  return run;
}

// What a gradient may differ by. Each element is a sum over rows whose terms' sizes add up to at most sqrt(width),
// since the logits' gradients of a class add up to at most 1 and a normalised row has elements of at most sqrt(width):
// two orders of summation differ by twice rows * 2^-24 of that. A gradient that is rounded to a low type may fall to
// either side, and so may the ones that are made of it: two units of the type.
double GradientBound(const Level& level) {
  const double low = !level.dtype.has_value() ? 0 : *level.dtype == DType::kF16 ? 0x1p-11 : 0x1p-8;
  return (2 * kRows * 0x1p-24 + 2 * low) * std::sqrt(kWidth);
}

void ExpectClose(const Outcome& whole, const Outcome& chunked, double bound, const std::string& what) {
  ASSERT_EQ(whole.losses.size(), chunked.losses.size()) << what;
  for (const auto& [name, values] : whole.parameters) {
    const std::vector<float>& others = chunked.parameters.at(name);
    ASSERT_EQ(values.size(), others.size());
    double largest = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      // A unit in the last place of the parameter itself, in which the update is rounded.
      largest = std::max(largest, std::abs(static_cast<double>(values[i]) - others[i]) - 0x1p-23 * std::abs(values[i]));
    }
    EXPECT_LE(largest, bound) << what << ", " << name;
  }
}

class ChunkedHead : public ::testing::TestWithParam<Level> {
 protected:
  ~ChunkedHead() override { EXPECT_TRUE(SetContext({}).ok()); }
};

TEST_P(ChunkedHead, OneStepGivesTheLossAndTheGradientsOfTheWholeHead) {
  const Plan plan{GetParam(), FixedLossScaleManager({.loss_scale = 64})};
  // `share`: what the logits' gradients of a class add up to, at most.
  const auto check = [&](auto train, const std::string& loss, double share = 1) {
    const Outcome whole = train(1);
    ASSERT_FALSE(whole.losses.empty()) << loss;
    ASSERT_EQ(whole.skipped, 0);
    for (const int chunks : {2, 3, 14}) {
      const Outcome chunked = train(chunks);
      const std::string what = loss + ", chunks " + std::to_string(chunks);
      // The sum of the rows' losses is taken in another order.
      EXPECT_NEAR(chunked.losses[0], whole.losses[0], kRows * 0x1p-23 * whole.losses[0]) << what;
      ExpectClose(whole, chunked, share * GradientBound(GetParam()), what);
      EXPECT_EQ(chunked.skipped, 0) << what;
    }
  };
  check([&](int chunks) { return Train<MeanTokensLoss>(plan, chunks); }, "mean");
  check([&](int chunks) { return Train<KnownTokensLoss>(plan, chunks); }, "ignored labels");
  check([&](int chunks) { return Train<SumTokensLoss>(plan, chunks); }, "sum, i64 labels", kRows);
  check([&](int chunks) { return Train<OwnLoss, TwoHeads>(plan, chunks); }, "two heads", kRows + 1);
}

// A step moves parameters by the learning rate times a difference of gradients, which later steps hand on; low copies
// of parameters that have moved differ by a unit of the low type, as a low gradient does.
TEST_P(ChunkedHead, SeveralStepsWithIgnoredLabelsStayTogether) {
  const Plan plan{GetParam(), FixedLossScaleManager({.loss_scale = 64}), 6, 1, 0.05};
  const Outcome whole = Train<KnownTokensLoss>(plan, 1);
  const Outcome chunked = Train<KnownTokensLoss>(plan, 4);
  ExpectClose(whole, chunked, 2 * 6 * 0.05 * GradientBound(GetParam()), "six steps");
  EXPECT_LT(chunked.losses.back(), chunked.losses.front()) << "it learns";
}

TEST_P(ChunkedHead, AccumulatesGradientsOfMicroSteps) {
  const Plan plan{GetParam(), FixedLossScaleManager({.loss_scale = 64}), 4, 2, 0.05};
  const Outcome whole = Train<KnownTokensLoss>(plan, 1);
  const Outcome chunked = Train<KnownTokensLoss>(plan, 4);
  EXPECT_EQ(chunked.steps, 2);
  ExpectClose(whole, chunked, 2 * 4 * 0.05 * GradientBound(GetParam()), "two updates");
}

// A scale whose gradients are beyond every type but bf16 and f32: steps are skipped until it has come down, the same
// ones.
TEST_P(ChunkedHead, SkipsTheStepsThatTheWholeHeadSkips) {
  const Plan plan{GetParam(), DynamicLossScaleManager({.init_loss_scale = 0x1p22}), 9, 1, 0.05};
  const Outcome whole = Train<KnownTokensLoss>(plan, 1);
  const Outcome chunked = Train<KnownTokensLoss>(plan, 4);
  if (GetParam().dtype == DType::kF16) {
    EXPECT_GT(whole.skipped, 0);
  }
  EXPECT_EQ(chunked.skipped, whole.skipped);
  EXPECT_EQ(chunked.scale, whole.scale);
  ExpectClose(whole, chunked, 2 * 9 * 0.05 * GradientBound(GetParam()), "after skipped steps");
}

TEST_P(ChunkedHead, SaysSoInARemark) {
  const Plan plan{GetParam()};
  const Outcome whole = Train<MeanTokensLoss>(plan, 1);
  const Outcome chunked = Train<MeanTokensLoss>(plan, 2);
  const auto says = [](const Outcome& run) {
    return std::count_if(run.remarks.begin(), run.remarks.end(), [](const std::string& remark) {
      return remark.find("chunk-head: reader: 14 rows of logits are made in 2 chunks") != std::string::npos;
    });
  };
  EXPECT_EQ(says(whole), 0);
  EXPECT_EQ(says(chunked), 1);
}

TEST_P(ChunkedHead, CutsEveryHeadOfAStep) {
  const Outcome chunked = Train<OwnLoss, TwoHeads>({GetParam()}, 2);
  for (const std::string path : {"twoheads", "twoheads/other"}) {
    const auto says = std::count_if(chunked.remarks.begin(), chunked.remarks.end(), [&](const std::string& remark) {
      return remark.find("chunk-head: " + path + ": 14 rows of logits are made in 2 chunks") != std::string::npos;
    });
    EXPECT_EQ(says, 1) << path;
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, ChunkedHead,
                         ::testing::Values(Level{"O0", {}}, Level{"O1", DType::kF16}, Level{"O1", DType::kBF16},
                                           Level{"O2", DType::kF16}, Level{"O2", DType::kBF16}),
                         LevelName);

TEST(HeadChunks, MustBePositiveAndNotTooMany) {
  for (const int chunks : {0, -2, 4097}) {
    const absl::Status status = SetContext({.head_chunks = chunks});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("head_chunks must be from 1 (the head stays whole) to 4096, got " +
                                    std::to_string(chunks)),
              std::string::npos)
        << status;
  }
}

}  // namespace
}  // namespace mpc::testing
