// What the capsule of a step keeps, and what happens to damaged files, full disks and killed processes.
#include "frontend/state/step_capsule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <limits>

#include "absl/strings/str_cat.h"
#include "frontend/state/checkpoint_file.h"
#include "tests/frontend/error_of.h"
#include "tests/frontend/temporary_folder.h"
#include "tests/runtime/program_builder.h"

namespace mpc {
namespace {

using ::mpc::testing::ErrorOf;
using ::mpc::testing::ReadAll;
using ::mpc::testing::TemporaryFolder;
using ::testing::HasSubstr;

/// weight := weight + data; the sum is the loss.
StepCapsule SmallCapsule() {
  const TensorSpec row = {DType::kF32, {4}};
  runtime::ProgramBuilder builder("train_step");
  const runtime::ValueId weight = builder.State("weight", row, true);
  builder.Derived(weight, DType::kBF16, true);
  const runtime::ValueId data = builder.Input("data", row);
  const runtime::ValueId sum = builder.Temporary(row);
  builder.Call("add", {weight, data}, {sum});
  builder.program.step().copies.push_back({sum, weight, "read after it is written"});
  builder.Output("loss", sum);
  StepCapsule capsule;
  capsule.step = 17;
  capsule.reason = "not finite";
  capsule.program = builder.program;
  capsule.traced = "module {}";
  capsule.options = {{"level", "O2"}, {"empty", ""}};
  capsule.state = {{"weight", Tensor::From<float>({1, 2, 3, 4}, {4})}};
  capsule.batch = {{"data", Tensor::From<float>({1, 1, 1, 1}, {4})}};
  capsule.record = {{"loss", Tensor::From<float>({2, 3, 4, 5}, {4})}};
  capsule.after = {{"weight", "01234567"}};
  capsule.origin = {{"mpc", "1.0"}};
  return capsule;
}

TEST(StepCapsuleFile, KeepsEveryField) {
  const TemporaryFolder folder;
  const StepCapsule written = SmallCapsule();
  ASSERT_TRUE(WriteStepCapsule(folder / "x", written).ok());
  const absl::StatusOr<StepCapsule> read = ReadStepCapsule(folder / "x");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->step, 17);
  EXPECT_EQ(read->reason, written.reason);
  EXPECT_EQ(read->traced, written.traced);
  EXPECT_EQ(read->options, written.options);
  EXPECT_EQ(read->after, written.after);
  EXPECT_EQ(read->origin, written.origin);
  EXPECT_EQ(read->program.step().instructions.size(), 1u);
  ASSERT_EQ(read->state.size(), 1u);
  EXPECT_EQ(read->state[0].first, "weight");
  EXPECT_EQ(read->state[0].second.bytes(), written.state[0].second.bytes());
  EXPECT_EQ(read->batch.at(0).second.bytes(), written.batch[0].second.bytes());
  EXPECT_EQ(read->record.at(0).second.bytes(), written.record[0].second.bytes());
  const absl::StatusOr<runtime::StateStore> state = MakeCapsuleState(*read);
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state->entries().size(), 2u);
  EXPECT_FALSE(state->Find("weight.bf16")->initialised());
}

// ops::Print with one text in two places makes two outputs of one name.
TEST(StepCapsuleFile, OutputsOfOneNameAreKeptInTheirOrder) {
  const TemporaryFolder folder;
  StepCapsule capsule = SmallCapsule();
  capsule.program.outputs.push_back(capsule.program.outputs.front());
  capsule.record.emplace_back("loss", Tensor::From<float>({9, 8, 7, 6}, {4}));
  ASSERT_TRUE(WriteStepCapsule(folder / "x", capsule).ok());
  const absl::StatusOr<StepCapsule> read = ReadStepCapsule(folder / "x");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->record.size(), 2u);
  EXPECT_EQ(read->record[1].first, "loss");
  EXPECT_EQ(read->record[1].second.ToFloats().front(), 9);
  capsule.record.pop_back();
  EXPECT_THAT(ErrorOf(WriteStepCapsule(folder / "x", capsule)), HasSubstr("each output of the Program must be given"));
}

/// SmallCapsule in two ranks, of which the second has another weight.
StepCapsule CapsuleOfTwoRanks() {
  StepCapsule capsule = SmallCapsule();
  capsule.runs = capsule.ranks = 2;
  capsule.batch.emplace_back("data@2", Tensor::From<float>({10, 10, 10, 10}, {4}));
  capsule.record.emplace_back("loss@2", Tensor::From<float>({15, 16, 17, 18}, {4}));
  capsule.other_ranks = {{{{"weight", Tensor::From<float>({5, 6, 7, 8}, {4})}}, {{"weight", "89abcdef"}}}};
  return capsule;
}

TEST(StepCapsuleFile, KeepsWhatEachRankHasOtherwise) {
  const TemporaryFolder folder;
  const StepCapsule written = CapsuleOfTwoRanks();
  ASSERT_TRUE(WriteStepCapsule(folder / "x", written).ok());
  const absl::StatusOr<StepCapsule> read = ReadStepCapsule(folder / "x");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->ranks, 2);
  ASSERT_EQ(read->other_ranks.size(), 1u);
  EXPECT_EQ(read->other_ranks[0].state.at(0).second.bytes(), written.other_ranks[0].state[0].second.bytes());
  EXPECT_EQ(read->other_ranks[0].after, written.other_ranks[0].after);
  EXPECT_EQ(DescribeRun(*read, 1), "micro-batch 2 of 2 (rank 1)");
  EXPECT_EQ(DescribeRuns(*read), "2 micro-batches of 2 ranks");
  const absl::StatusOr<runtime::StateStore> state = MakeCapsuleState(*read, 1);
  ASSERT_TRUE(state.ok());
  std::vector<std::uint8_t> bytes(16);
  ASSERT_TRUE(state->Find("weight")->Read(absl::MakeSpan(bytes)).ok());
  EXPECT_EQ(absl::MakeConstSpan(bytes), written.other_ranks[0].state[0].second.bytes());
  const absl::StatusOr<CapsuleSizes> one = SizesOf(SmallCapsule());
  const absl::StatusOr<CapsuleSizes> two = SizesOf(written);
  EXPECT_EQ(two->state, 2 * one->state);
  EXPECT_EQ(two->batch, 2 * one->batch);
}

TEST(StepCapsuleFile, ARankThatIsMissingOrHasTooMuchIsNamed) {
  const auto error_of = [](void (*change)(StepCapsule&)) {
    StepCapsule capsule = CapsuleOfTwoRanks();
    change(capsule);
    return ErrorOf(CheckStepCapsule(capsule));
  };
  EXPECT_THAT(error_of([](StepCapsule& x) { x.other_ranks.clear(); }),
              HasSubstr("it is of 2 ranks, and has the state of 1"));
  EXPECT_THAT(error_of([](StepCapsule& x) { x.other_ranks[0].state[0].first = "w"; }),
              HasSubstr("state \"w\" of rank 1 is none of the Program's"));
  EXPECT_THAT(error_of([](StepCapsule& x) { x.other_ranks[0].after["w"] = "0"; }),
              HasSubstr("rank 1 has a checksum of state \"w\", which rank 0 has not"));
  EXPECT_THAT(error_of([](StepCapsule& x) { x.batch.pop_back(); }), HasSubstr("input \"data@2\" is missing"));
  for (const std::int64_t ranks : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{3}, std::int64_t{1} << 62}) {
    StepCapsule capsule = CapsuleOfTwoRanks();
    capsule.ranks = ranks;
    EXPECT_THAT(ErrorOf(CheckStepCapsule(capsule)), HasSubstr(absl::StrCat("in ", ranks, " ranks; accepted are 1 to")));
  }
}

TEST(StepCapsuleFile, KeepsWhatEachRunTookAndGave) {
  const TemporaryFolder folder;
  StepCapsule capsule = SmallCapsule();
  capsule.runs = 2;
  capsule.batch.emplace_back("data@2", Tensor::From<float>({10, 10, 10, 10}, {4}));
  capsule.record.emplace_back("loss@2", Tensor::From<float>({12, 13, 14, 15}, {4}));
  ASSERT_TRUE(WriteStepCapsule(folder / "x", capsule).ok());
  const absl::StatusOr<StepCapsule> read = ReadStepCapsule(folder / "x");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->runs, 2);
  EXPECT_EQ(read->batch.at(1).first, "data@2");
  EXPECT_EQ(InputsOfRun(*read, 1).at(0), read->batch[1].second.bytes());
  EXPECT_TRUE(IsFinite(*read, read->record));
  capsule.record.back().second = Tensor::From<float>({12, std::numeric_limits<float>::infinity(), 14, 15}, {4});
  EXPECT_FALSE(IsFinite(capsule, capsule.record));
  capsule.runs = 3;
  EXPECT_THAT(ErrorOf(CheckStepCapsule(capsule)), HasSubstr("input \"data@3\" is missing"));
  for (const std::int64_t runs : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{5}, std::int64_t{1} << 62}) {
    capsule.runs = runs;
    EXPECT_THAT(ErrorOf(CheckStepCapsule(capsule)), HasSubstr("runs of its Program, and 4 tensors")) << runs;
  }
  for (const char* runs : {"0", "99", "9223372036854775807", "many"}) {
    absl::StatusOr<Safetensors> content = internal::ReadCheckpointFile(folder / "x");
    ASSERT_TRUE(content.ok());
    content->metadata["runs"] = runs;
    EXPECT_THAT(ErrorOf(ParseStepCapsule(*content, "some file").status()), HasSubstr("some file is malformed: "))
        << runs;
  }
}

TEST(StepCapsuleFile, TellsItsSizes) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteStepCapsule(folder / "x", SmallCapsule()).ok());
  const absl::StatusOr<CapsuleSizes> sizes = SizesOf(SmallCapsule());
  ASSERT_TRUE(sizes.ok());
  EXPECT_EQ(sizes->state, 16u);
  EXPECT_EQ(sizes->batch, 16u);
  EXPECT_LE(sizes->total(), ReadAll(folder / "x").size());
  EXPECT_GE(sizes->total() + 2000, ReadAll(folder / "x").size());  // the header is all that is left
  EXPECT_THAT(sizes->ToString(), HasSubstr("(state 16 bytes, batch 16 bytes, Program "));
}

TEST(StepCapsuleFile, DamageAnywhereIsAnError) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteStepCapsule(folder / "x", SmallCapsule()).ok());
  const std::string whole = ReadAll(folder / "x");
  for (std::size_t i = 0; i < whole.size(); i += 3) {
    if (whole[i] == ' ') continue;  // padding of the header may become a zero, which changes nothing
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
    const absl::StatusOr<StepCapsule> read = ReadStepCapsule(folder.Write("damaged", damaged));
    ASSERT_FALSE(read.ok()) << "byte " << i;
    EXPECT_THAT(ErrorOf(read.status()), HasSubstr(folder / "damaged")) << "byte " << i;
  }
}

TEST(StepCapsuleFile, AShortFileIsAnError) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteStepCapsule(folder / "x", SmallCapsule()).ok());
  const std::string whole = ReadAll(folder / "x");
  for (std::size_t size = 0; size < whole.size(); size += 29) {
    ASSERT_FALSE(ReadStepCapsule(folder.Write("short", whole.substr(0, size))).ok()) << size << " bytes";
  }
  EXPECT_FALSE(ReadStepCapsule(folder.Write("long", whole + "x")).ok());
  EXPECT_EQ(ReadStepCapsule(folder / "nowhere").status().code(), absl::StatusCode::kNotFound);
}

TEST(StepCapsuleFile, OtherFilesAreRefusedByName) {
  const TemporaryFolder folder;
  ASSERT_TRUE(internal::WriteCheckpointFile(folder / "checkpoint", {{}, {{"format", "mpc"}}}).ok());
  EXPECT_THAT(ErrorOf(ReadStepCapsule(folder / "checkpoint").status()), HasSubstr("is no capsule of a step"));
  ASSERT_TRUE(internal::WriteCheckpointFile(folder / "newer", {{}, {{"mpc_capsule", "3"}}}).ok());
  EXPECT_THAT(ErrorOf(ReadStepCapsule(folder / "newer").status()),
              HasSubstr("is a capsule of version 3; this mpc reads versions 1 and 2"));
  ASSERT_TRUE(internal::WriteCheckpointFile(folder / "empty", {{}, {{"mpc_capsule", "1"}, {"step", "1"}}}).ok());
  EXPECT_THAT(ErrorOf(ReadStepCapsule(folder / "empty").status()), HasSubstr("it has no \"program\""));
}

TEST(StepCapsuleFile, WhatDoesNotFitTheProgramIsNamed) {
  const TemporaryFolder folder;
  StepCapsule capsule = SmallCapsule();
  capsule.state[0].second = Tensor::From<float>({1, 2}, {2});
  capsule.batch.clear();
  capsule.record.emplace_back("more", Tensor::Scalar(1.0f));
  capsule.after.clear();
  const std::string error = ErrorOf(WriteStepCapsule(folder / "x", capsule));
  EXPECT_THAT(error, HasSubstr("state \"weight\" is tensor<2xf32>, the Program has tensor<4xf32>"));
  EXPECT_THAT(error, HasSubstr("input \"data\" is missing"));
  EXPECT_THAT(error, HasSubstr("output \"more\" is none of the Program's"));
  EXPECT_THAT(error, HasSubstr("state \"weight\" has no checksum after the step"));
  EXPECT_FALSE(std::filesystem::exists(folder / "x"));
}

/// What a child process leaves in the folder where an older capsule is.
void InChild(const std::function<void()>& work, int* wait_status) {
  const pid_t child = fork();
  if (child == 0) {
    work();
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, wait_status, 0), child);
}

TEST(StepCapsuleFile, AFullDiskLeavesTheOldFile) {
  const TemporaryFolder folder;
  folder.Write("x", "old");
  int status = 0;
  InChild(
      [&] {
        signal(SIGXFSZ, SIG_IGN);
        const rlimit limit = {100, 100};
        setrlimit(RLIMIT_FSIZE, &limit);
        const absl::Status written = WriteStepCapsule(folder / "x", SmallCapsule());
        _exit(!written.ok() && written.message().find(folder / "x") != std::string_view::npos ? 7 : 1);
      },
      &status);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  EXPECT_EQ(ReadAll(folder / "x"), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(StepCapsuleFile, AProcessThatIsKilledWhileItWritesLeavesTheOldFile) {
  const TemporaryFolder folder;
  folder.Write("x", "old");
  int status = 0;
  // The signal of a file that grows beyond the limit kills in the middle of writing.
  InChild(
      [&] {
        const rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        const rlimit limit = {1000, 1000};
        setrlimit(RLIMIT_FSIZE, &limit);
        WriteStepCapsule(folder / "x", SmallCapsule()).IgnoreError();
      },
      &status);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
  EXPECT_EQ(ReadAll(folder / "x"), "old");
}

}  // namespace
}  // namespace mpc
