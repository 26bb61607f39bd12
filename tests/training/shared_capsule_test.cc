// The capsule of a step that several processes share: it is repeated in one process, and a run that cannot write it
// goes on.
#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>

#include "frontend/distributed/distributed.h"
#include "frontend/distributed/exchange.h"
#include "frontend/state/step_capsule.h"
#include "frontend/train/capsule_gather.h"
#include "kernels/cpu/kernel.h"
#include "runtime/distributed/rank_turns.h"
#include "tests/frontend/temporary_folder.h"
#include "tests/training/process_model.h"

namespace mpc::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Matcher;
using ::testing::Not;

/// What one process of a group trains with.
struct CapsuleRank {
  CapsuleRank(std::string path, std::int64_t at, std::int64_t micro_batches, int processes, bool scales = true,
              std::string device = "")
      : model(network, loss, optimizer,
              OptionsOf(std::move(path), at, micro_batches / processes, scales, std::move(device))) {}

  static ModelOptions OptionsOf(std::string path, std::int64_t at, std::int64_t accumulation_steps, bool scales,
                                std::string device) {
    ModelOptions options;
    if (scales) {
      options = {.amp_level = "O2",
                 .loss_scale_manager = DynamicLossScaleManager({.init_loss_scale = 1024, .scale_window = 3}),
                 .amp_dtype = DType::kF16};
    }
    options.accumulation_steps = accumulation_steps;
    options.capsule_path = std::move(path);
    options.capsule_at = at;
    options.device = std::move(device);
    return options;
  }

  ConvNorm network;
  nn::SoftmaxCrossEntropyWithLogits loss;
  nn::Momentum optimizer{network.TrainableParams(), {.learning_rate = 0.05, .momentum = 0.9}};
  Model model;
};

/// The capsule that `processes` processes write of a run over Rows(), whose batch 9 has an infinity.
StepCapsule CapsuleOf(const std::string& path, std::int64_t at, std::int64_t micro_batches, int processes,
                      bool scales = true, bool synchronizes = false) {
  EXPECT_TRUE(RunGroup(processes, [&](int) {
    CapsuleRank rank(path, at, micro_batches, processes, scales);
    EXPECT_EQ(synchronizes ? nn::ConvertToSyncBatchNorm(rank.network) : 0, synchronizes ? 1 : 0);
    MPC_EXPECT_OK(rank.model.Train(1, Rows()));
  }));
  absl::StatusOr<StepCapsule> capsule = ReadStepCapsule(path);
  MPC_EXPECT_OK(capsule.status());
  return capsule.ok() ? *std::move(capsule) : StepCapsule();
}

/// The run in which the first result of a replay is not finite; -1: all are finite.
std::int64_t FirstBadRun(const StepCapsule& capsule) {
  std::int64_t first = -1;
  const absl::StatusOr<StepReplay> replay =
      ReplayStep(capsule, [&](std::int64_t run, const runtime::ObservedResult& seen) {
        const runtime::Instruction& instruction =
            ProgramOfRun(capsule, run).sequences[seen.sequence].instructions[seen.instruction];
        const TensorSpec& spec = ProgramOfRun(capsule, run).values[instruction.outputs[seen.result]].spec;
        if (first >= 0 || !IsFloating(spec.dtype)) return;
        const std::vector<float> elements = Tensor::FromBytes(spec, seen.bytes.data(), seen.bytes.size()).ToFloats();
        if (!std::all_of(elements.begin(), elements.end(), [](float each) { return std::isfinite(each); })) first = run;
      });
  MPC_EXPECT_OK(replay.status());
  EXPECT_THAT(replay.ok() ? replay->differences : std::vector<std::string>(), IsEmpty());
  return first;
}

TEST(SharedCapsules, TheFirstBadStepIsRepeatedInOneProcessAndItsRankIsFound) {
  const TemporaryFolder folder;
  for (const auto& [processes, micro_batches] : {std::pair(2, 2), std::pair(2, 4), std::pair(4, 4)}) {
    SCOPED_TRACE(absl::StrCat(processes, " processes, ", micro_batches, " micro-batches"));
    const StepCapsule capsule = CapsuleOf(folder / "x", 0, micro_batches, processes);
    EXPECT_EQ(capsule.step, 9 / micro_batches + 1);
    EXPECT_EQ(capsule.reason, "not finite");
    EXPECT_EQ(capsule.ranks, processes);
    ASSERT_EQ(capsule.runs, micro_batches);
    EXPECT_EQ(capsule.accumulating.has_value(), micro_batches > processes);
    EXPECT_FALSE(IsFinite(capsule, capsule.record));
    const std::int64_t bad = FirstBadRun(capsule);
    EXPECT_EQ(bad, 9 % micro_batches);
    EXPECT_EQ(RankOfRun(capsule, bad), processes == micro_batches ? 1 : 0);
    // Its rows are those of one process that accumulates, in their order.
    CapsuleRank alone(folder / "alone", 0, micro_batches, 1);
    MPC_ASSERT_OK(alone.model.Train(1, Rows()));
    const absl::StatusOr<StepCapsule> accumulated = ReadStepCapsule(folder / "alone");
    MPC_ASSERT_OK(accumulated.status());
    ASSERT_EQ(accumulated->batch.size(), capsule.batch.size());
    for (std::size_t i = 0; i < capsule.batch.size(); ++i) {
      EXPECT_EQ(capsule.batch[i].first, accumulated->batch[i].first);
      EXPECT_EQ(capsule.batch[i].second.bytes(), accumulated->batch[i].second.bytes()) << capsule.batch[i].first;
    }
  }
}

TEST(SharedCapsules, AStepThatIsAskedForIsRepeatedOnAnyThreads) {
  const TemporaryFolder folder;
  const StepCapsule capsule = CapsuleOf(folder / "x", 2, 4, 2);
  EXPECT_EQ(capsule.step, 2);
  EXPECT_TRUE(IsFinite(capsule, capsule.record));
  for (const int threads : {1, 3}) {
    cpu::SetNumThreads(threads);
    EXPECT_EQ(FirstBadRun(capsule), -1);
  }
  cpu::SetNumThreads(1);
}

// No gradient tells the other rank: its own loss is finite.
TEST(SharedCapsules, WithoutAScalerABadLossOfOneRankIsEnough) {
  const TemporaryFolder folder;
  const StepCapsule capsule = CapsuleOf(folder / "x", 0, 2, 2, false);
  EXPECT_EQ(capsule.step, 5);
  EXPECT_EQ(FirstBadRun(capsule), 1);
  EXPECT_TRUE(std::isfinite(capsule.record.front().second.ToFloats().front()));
}

// What is bad in one rank reaches the other in the forward pass already.
TEST(SharedCapsules, StepsThatExchangeInTheForwardPassAreRepeated) {
  const TemporaryFolder folder;
  const StepCapsule capsule = CapsuleOf(folder / "x", 0, 2, 2, true, true);
  EXPECT_EQ(capsule.step, 5);
  EXPECT_EQ(FirstBadRun(capsule), 1);
}

TEST(SharedCapsules, AModelThatTrainsForItselfInAGroupIsRefused) {
  const TemporaryFolder folder;
  EXPECT_TRUE(RunGroup(2, [&](int) {
    MPC_EXPECT_OK(SetAutoParallelContext({.parallel_mode = ParallelMode::kStandAlone}));
    CapsuleRank rank(folder / "x", 0, 1, 1);
    EXPECT_THAT(std::string(rank.model.Train(1, Rows()).message()),
                HasSubstr("this Model trains for itself in a group"));
  }));
}

TEST(SharedCapsules, ABitOfAnotherRankIsADifference) {
  const TemporaryFolder folder;
  StepCapsule capsule = CapsuleOf(folder / "x", 2, 2, 2);
  auto& [name, value] = capsule.batch.at(2);
  EXPECT_EQ(name, "data@2");
  std::vector<float> elements = value.ToFloats();
  elements[0] += 1;
  value = Tensor::From(elements, value.shape());
  const absl::StatusOr<StepReplay> replay = ReplayStep(capsule);
  MPC_ASSERT_OK(replay.status());
  EXPECT_THAT(replay->differences, Contains(HasSubstr("output \"loss@2\": ")));
  EXPECT_THAT(replay->differences, Not(Contains(HasSubstr("output \"loss\": "))));
  EXPECT_THAT(replay->differences, Contains(HasSubstr("state \"fc.bias\" of rank 0 after the step: ")));
  EXPECT_THAT(replay->differences, Contains(HasSubstr("state \"fc.bias\" of rank 1 after the step: ")));
}

TEST(SharedCapsules, AFileWithoutARankIsRefused) {
  const TemporaryFolder folder;
  const StepCapsule whole = CapsuleOf(folder / "x", 2, 2, 2);
  StepCapsule capsule = whole;
  capsule.batch.resize(2);
  EXPECT_THAT(std::string(CheckStepCapsule(capsule).message()), HasSubstr("input \"data@2\" is missing"));
  capsule = whole;
  capsule.other_ranks.clear();
  EXPECT_THAT(std::string(CheckStepCapsule(capsule).message()), HasSubstr("of 2 ranks, and has the state of 1"));
  capsule = whole;
  capsule.ranks = 3;
  EXPECT_THAT(std::string(CheckStepCapsule(capsule).message()), HasSubstr("2 runs of its Program in 3 ranks"));
  // It is said that the Programs are those of two processes.
  capsule = whole;
  capsule.ranks = 1;
  capsule.other_ranks.clear();
  EXPECT_THAT(std::string(ReplayStep(capsule).status().message()), HasSubstr("2 processes"));
}

/// Removes the folder that a capsule is to be written to.
class RemovesAFolder : public Callback {
 public:
  explicit RemovesAFolder(std::string folder) : folder_(std::move(folder)) {}
  void OnStepBegin(RunContext& context) override { std::filesystem::remove_all(folder_); }

 private:
  std::string folder_;
};

TEST(SharedCapsules, ARunThatCannotWriteGoesOnWithTheSameBits) {
  const TemporaryFolder folder;
  const std::string gone = folder / "gone";
  std::filesystem::create_directory(gone);
  const auto train = [&](const std::string& path, const std::string& kept) {
    EXPECT_TRUE(RunGroup(2, [&](int number) {
      CapsuleRank rank(path, 0, 4, 2);
      RemovesAFolder removes(gone);
      ::testing::internal::CaptureStderr();
      MPC_EXPECT_OK(rank.model.Train(1, Rows(), {removes}));
      const std::string said = ::testing::internal::GetCapturedStderr();
      const bool is_said = !path.empty() && number == 0;
      EXPECT_THAT(said, is_said ? Matcher<std::string>(HasSubstr("warning: no capsule of step 3: "))
                                : Not(HasSubstr("capsule")));
      if (number == 0) Write(kept, StateOf(rank.model));
    }));
    return Read(kept);
  };
  const Snapshot with = train(gone + "/x", folder / "with");
  EXPECT_THAT(Differences(with, train("", folder / "without")), IsEmpty());
}

TEST(SharedCapsules, RanksThatAskForDifferentStepsAreAnError) {
  const TemporaryFolder folder;
  EXPECT_TRUE(RunGroup(2, [&](int number) {
    CapsuleRank rank(folder / "x", number + 1, 2, 2);
    EXPECT_THAT(std::string(rank.model.Train(1, Rows()).message()),
                HasSubstr("rank 0 has \"capsule: of step 1\", rank 1 has \"capsule: of step 2\""));
  }));
}

/// A capsule of one rank that nothing runs.
StepCapsule PartWith(float value) {
  StepCapsule part;
  part.batch = {{"data", Tensor::Full({2}, value)}};
  return part;
}

TEST(SharedCapsules, ARankWithoutAPartLeavesAllRanksItsError) {
  const absl::Status status = distributed::RunInTurns(2, [](int rank, const std::shared_ptr<Communicator>& group) {
    absl::StatusOr<StepCapsule> capsule = PartWith(1);
    if (rank == 1) capsule = absl::UnimplementedError("why");
    absl::Status gathered = internal::GatherCapsule(*group, capsule);
    EXPECT_EQ(capsule.status(), absl::UnimplementedError("rank 1: why"));
    return gathered;
  });
  MPC_EXPECT_OK(status);
}

// It has told that it has a part, and dies before it sends the part.
TEST(SharedCapsules, ARankThatIsLostWhileAllGatherIsAnErrorOfTheGroup) {
  const auto body = [](int rank) {
    const std::shared_ptr<Communicator> group = distributed::internal::GetTrainingCommunicator();
    absl::StatusOr<StepCapsule> capsule = PartWith(1);
    if (rank == 1) {
      MPC_EXPECT_OK(distributed::GatherBytes(*group, std::string(1, '\0') + "1 runs: data tensor<2xf32>").status());
      ::kill(::getpid(), SIGKILL);
    }
    const absl::Status gathered = internal::GatherCapsule(*group, capsule);
    EXPECT_TRUE(absl::IsUnavailable(gathered)) << gathered;
    EXPECT_THAT(std::string(gathered.message()), HasSubstr("rank 1"));
  };
  EXPECT_TRUE(RunGroup(2, body, {1}));
}

/// A device of another machine code, which nothing compiles for here.
class ElsewhereDevice : public runtime::Device {
 public:
  std::string_view name() const override { return "elsewhere"; }
  absl::StatusOr<runtime::InstructionPlan> Plan(const runtime::Program&, const runtime::Instruction&,
                                                const runtime::PlanOptions&) const override {
    return absl::UnimplementedError("no plan");
  }
  bool MayAlias(std::string_view, std::size_t, std::size_t) const override { return false; }
  absl::StatusOr<std::unique_ptr<runtime::Executable>> Load(std::shared_ptr<const runtime::Program>,
                                                            const runtime::StateStore&,
                                                            const runtime::LoadOptions&) const override {
    return absl::UnimplementedError("nothing to load");
  }
};

TEST(SharedCapsules, OneProcessRepeatsRanksOfTheCpuAlone) {
  const TemporaryFolder folder;
  EXPECT_TRUE(RunGroup(2, [&](int) {
    runtime::RegisterDevice(std::make_unique<ElsewhereDevice>());
    CapsuleRank rank(folder / "x", 0, 2, 2, true, "elsewhere");
    EXPECT_THAT(std::string(rank.model.Train(1, Rows()).message()),
                HasSubstr("the capsule of a step that 2 processes share is of device \"cpu\"; this Model's is "
                          "\"elsewhere\""));
    StepCapsule capsule;
    capsule.ranks = capsule.runs = 2;
    capsule.program.device = "elsewhere";
    EXPECT_TRUE(absl::IsUnimplemented(RunCapsule(capsule, {})));
  }));
}

TEST(SharedCapsules, ShapesThatDifferBetweenRanksAreRefusedInAll) {
  const absl::Status status = distributed::RunInTurns(2, [](int rank, const std::shared_ptr<Communicator>& group) {
    absl::StatusOr<StepCapsule> capsule = PartWith(1);
    if (rank == 1) capsule->batch[0].second = Tensor::Full({3}, 1);
    absl::Status gathered = internal::GatherCapsule(*group, capsule);
    EXPECT_EQ(capsule.status(), absl::UnimplementedError(internal::kDifferentPrograms));
    return gathered;
  });
  MPC_EXPECT_OK(status);
}

}  // namespace
}  // namespace mpc::testing
