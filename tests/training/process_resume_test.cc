// Runs of several processes that rank 0 alone resumes, and what other numbers of processes make of a checkpoint.
#include <gmock/gmock.h>

#include "tests/training/process_group.h"

namespace mpc::testing {
namespace {

/// Wide enough that level auto finds some slots worth bf16.
class Wide : public nn::Cell {
 public:
  MPC_CELL(Wide, first, norm, second)
  Tensor Construct(Tensor x) { return second(relu(norm(first(x)))); }

  nn::Dense first{64, 256};
  nn::BatchNorm1d norm{256};
  nn::Dense second{256, 3};
};

data::Dataset WideRows() {
  std::vector<data::Row> batches;
  for (std::int64_t i = 0; i < 8; ++i) {
    std::vector<std::int32_t> labels;
    for (std::int32_t row = 0; row < 32; ++row) labels.push_back((row * row + static_cast<std::int32_t>(i)) % 3);
    batches.push_back({Values({32, 64}, 100 + i), Tensor::From(labels, {32})});
  }
  return Batches(std::move(batches));
}

struct OfLevelAuto {
  Wide network;
  nn::CrossEntropyLoss loss;
  nn::Momentum momentum{network.TrainableParams(), {.learning_rate = 0.05, .momentum = 0.9}};
  Model model{network, loss, momentum, {.amp_level = "auto", .amp_dtype = DType::kBF16}};
};

/// The precision that `path` holds.
std::string PrecisionIn(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const std::size_t begin = bytes.find("\"precision\":");
  return begin == std::string::npos ? "" : bytes.substr(begin, bytes.find("\",\"", begin) - begin);
}

TEST(ProcessResume, AtLevelAutoRankZeroAloneLoadsThePrecisionForAll) {
  const std::string path = FilePath("checkpoint");
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    OfLevelAuto trained;
    MPC_EXPECT_OK(trained.model.Train(1, WideRows()));
    MPC_EXPECT_OK(trained.model.SaveCheckpoint(path));
  }));
  const std::string saved = PrecisionIn(path);
  EXPECT_FALSE(saved.empty());
  for (const bool all : {true, false}) {
    EXPECT_TRUE(RunGroup(2, [&](int rank) {
      OfLevelAuto resumed;
      if (rank == 0 || all) MPC_EXPECT_OK(resumed.model.LoadCheckpoint(path, {.continue_run = false}).status());
      MPC_EXPECT_OK(resumed.model.Train(1, WideRows()));
      Write(FilePath(absl::StrCat(all, rank)), StateOf(resumed.model));
      MPC_EXPECT_OK(resumed.model.SaveCheckpoint(path + ".again"));
    }));
    EXPECT_EQ(PrecisionIn(path + ".again"), saved);
  }
  const Snapshot expected = Read(FilePath("10"));
  EXPECT_FALSE(expected.empty());
  for (const char* name : {"11", "00", "01"}) {
    EXPECT_THAT(Differences(expected, Read(FilePath(name))), ::testing::IsEmpty()) << name;
  }
  std::filesystem::remove(path);
  std::filesystem::remove(path + ".again");
}

/// A step of one's own, whose optimizer only a trace tells of.
struct Own : nn::TrainingStep {
  MPC_CELL(Own, network, loss)
  Own(TwoLayers& network, nn::Optimizer& optimizer) : network(network), optimizer(optimizer) {}
  Tensor Construct(Tensor x, Tensor y) {
    Tensor value = loss(network(x), y);
    optimizer(ops::Backward(value, optimizer.parameters()));
    return value;
  }

  TwoLayers& network;
  nn::CrossEntropyLoss loss;
  nn::Optimizer& optimizer;
};

struct OfOwnStep {
  TwoLayers network;
  nn::Momentum momentum{network.TrainableParams(), {.learning_rate = 0.05, .momentum = 0.9}};
  Own step{network, momentum};
  Model model{step};
};

data::Dataset SmallRows() {
  std::vector<data::Row> batches;
  for (std::int64_t i = 0; i < 8; ++i) {
    batches.push_back({Values({8, 6}, 100 + i), Tensor::From(std::vector<std::int32_t>{0, 1, 2, 0, 1, 2, 0, 1}, {8})});
  }
  return Batches(std::move(batches));
}

TEST(ProcessResume, RankZeroAloneLoadsTheStateOfAStepOfOnesOwnForAll) {
  const std::string path = FilePath("checkpoint");
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    OfOwnStep whole;
    MPC_EXPECT_OK(whole.model.Train(2, SmallRows()));
    if (rank == 0) Write(FilePath("whole"), StateOf(whole.model));
  }));
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    OfOwnStep half;
    MPC_EXPECT_OK(half.model.Train(1, SmallRows()));
    MPC_EXPECT_OK(half.model.SaveCheckpoint(path));
  }));
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    OfOwnStep resumed;
    if (rank == 0) MPC_EXPECT_OK(resumed.model.LoadCheckpoint(path, {.continue_run = false}).status());
    MPC_EXPECT_OK(resumed.model.Train(1, SmallRows()));
    Write(FilePath(absl::StrCat(rank)), StateOf(resumed.model));
  }));
  const Snapshot expected = Read(FilePath("whole"));
  EXPECT_FALSE(expected.empty());
  for (const char* rank : {"0", "1"}) {
    EXPECT_THAT(Differences(expected, Read(FilePath(rank))), ::testing::IsEmpty()) << rank;
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace mpc::testing
