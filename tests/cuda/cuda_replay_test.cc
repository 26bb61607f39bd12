// Capsules of steps on a GPU, emulated or that of this machine: they are repeated result by result.
#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontend/state/step_capsule.h"
#include "kernels/state_hash.h"
#include "models/bnnet.h"
#include "models/gpt2.h"
#include "runtime/program_binding.h"
#include "tests/cuda/network_runs.h"
#include "tests/tools/planted_device.h"
#include "tools/mpc-bisect/bisection.h"
#include "tools/mpc-opt/what_if.h"
#include "tools/mpc-run/replay.h"

namespace mpc::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using tools::CapsuleFile;

/// One step of BnNet at O2 in f16; where `overflows`, the product of its third convolution is beyond f16.
std::string BnNetCapsule(const TemporaryFolder& folder, const std::string& device, bool overflows) {
  SetSeed(7);
  models::BnNet network;
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  nn::Momentum optimizer(network.TrainableParams(), {.learning_rate = 0.05});
  for (auto& [name, parameter] : network.ParametersAndNames()) {
    if (!overflows || name != "conv3.weight") continue;
    std::vector<float> values(static_cast<std::size_t>(NumElements(parameter.shape())));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = Value(static_cast<std::int64_t>(i)) < 0 ? -6e4f : 6e4f;
    MPC_EXPECT_OK(parameter.SetData(Tensor::From(values, parameter.shape())));
  }
  const std::string path = folder / absl::StrCat("bnnet-", device, overflows ? "-overflows" : "");
  const DynamicLossScaleManager dynamic({.init_loss_scale = 256});
  Model model(network, loss, optimizer,
              {.amp_level = "O2",
               .loss_scale_manager = dynamic,
               .amp_dtype = DType::kF16,
               .device = device,
               .capsule_path = path,
               .capsule_at = overflows ? 0 : 1});
  ::testing::internal::CaptureStderr();
  MPC_EXPECT_OK(model.Train(1, Batches({MakeBatch({1, 32, 32}, 4, 0, 10)})));
  ::testing::internal::GetCapturedStderr();
  return path;
}

/// One step of a small GPT-2 at O2 in bf16.
std::string Gpt2Capsule(const TemporaryFolder& folder) {
  SetSeed(7);
  models::Gpt2 network({.vocabulary = 19, .context = 12, .width = 32, .layers = 1, .heads = 4});
  models::NextTokenLoss loss;
  nn::Momentum optimizer(network.TrainableParams(), {.learning_rate = 0.05});
  std::vector<std::int32_t> ids, next;
  for (std::int32_t i = 0; i < 24; ++i) {
    ids.push_back(i * i % 19);
    next.push_back((i * i + 1) % 19);
  }
  Model model(network, loss, optimizer,
              {.amp_level = "O2",
               .amp_dtype = DType::kBF16,
               .device = "cuda",
               .capsule_path = folder / "gpt2",
               .capsule_at = 1});
  ::testing::internal::CaptureStderr();
  MPC_EXPECT_OK(model.Train(1, Batches({{Tensor::From(ids, {2, 12}), Tensor::From(next, {2, 12})}})));
  ::testing::internal::GetCapturedStderr();
  return folder / "gpt2";
}

CapsuleFile Read(const std::string& path) {
  absl::StatusOr<StepCapsule> capsule = ReadStepCapsule(path);
  MPC_EXPECT_OK(capsule.status());
  return {path, *std::move(capsule)};
}

class CudaReplay : public OnCuda {
 protected:
  void TearDown() override {
    OnCuda::TearDown();
    EXPECT_THAT(test::NetworkDeviceProblems(), IsEmpty());
  }
  TemporaryFolder folder_;
};

TEST_F(CudaReplay, ShowsEveryResultAndRepeatsEveryBit) {
  for (const std::string& path : {BnNetCapsule(folder_, "cuda", false), Gpt2Capsule(folder_)}) {
    SCOPED_TRACE(path);
    const CapsuleFile file = Read(path);
    std::size_t results = 0, seen = 0;
    for (const runtime::Instruction& instruction : file.capsule.program.step().instructions) {
      for (const runtime::ValueId id : instruction.outputs) results += id == runtime::kNoValue ? 0 : 1;
    }
    const absl::StatusOr<StepReplay> shown =
        ReplayStep(file.capsule, [&](std::int64_t, const runtime::ObservedResult&) { ++seen; });
    MPC_ASSERT_OK(shown.status());
    EXPECT_EQ(seen, results);
    EXPECT_THAT(shown->differences, IsEmpty());
    const absl::StatusOr<StepReplay> as_a_graph = ReplayStep(file.capsule);
    MPC_ASSERT_OK(as_a_graph.status());
    EXPECT_THAT(as_a_graph->differences, IsEmpty());
  }
}

/// The hash of each result of the capsule's step.
std::vector<std::uint64_t> HashesOf(runtime::Executable& step, const StepCapsule& capsule) {
  std::vector<std::uint64_t> hashes;
  MPC_EXPECT_OK(dynamic_cast<runtime::ObservableStep&>(step).RunObserved(
      InputsOfRun(capsule, 0), [&](const runtime::ObservedResult& seen) {
        hashes.push_back(HashBytes(HashKey(""), seen.bytes.data(), seen.bytes.size()));
      }));
  return hashes;
}

// A kernel that left a part of its result as it was would differ from itself.
TEST_F(CudaReplay, ShowsTheSameBytesWhateverTheirMemoryHeldBefore) {
  for (const std::string& path : {BnNetCapsule(folder_, "cuda", false), Gpt2Capsule(folder_)}) {
    SCOPED_TRACE(path);
    const StepCapsule capsule = Read(path).capsule;
    const absl::StatusOr<runtime::StateStore> state = MakeCapsuleState(capsule);
    MPC_ASSERT_OK(state.status());
    const absl::StatusOr<std::unique_ptr<runtime::Executable>> step =
        (*runtime::GetDevice("cuda"))->Load(std::make_shared<const runtime::Program>(capsule.program), *state);
    MPC_ASSERT_OK(step.status());
    const std::vector<std::uint64_t> in_new_memory = HashesOf(**step, capsule);
    for (const auto& [name, tensor] : capsule.state) MPC_ASSERT_OK(state->Find(name)->Write(tensor.bytes()));
    EXPECT_EQ(HashesOf(**step, capsule), in_new_memory);
  }
}

TEST_F(CudaReplay, NamesTheOperationInWhichAnOverflowBegan) {
  const std::string path = BnNetCapsule(folder_, "cuda", true);
  const absl::StatusOr<tools::ReplayReport> report = tools::ReplayCapsule({.replay_path = path});
  MPC_ASSERT_OK(report.status());
  EXPECT_TRUE(report->is_equal) << report->text;
  EXPECT_THAT(report->text, HasSubstr("step 1 (not finite)"));
  EXPECT_THAT(report->text, ContainsRegex("first operation whose result is not finite: train_step, instruction [0-9]+ "
                                          "\\([^)]* in bnnet/conv3\\).*, phase forward\n  result 0, tensor<"));
  const absl::StatusOr<std::string> traced = opt::ReplayWhatIf({.path = path, .trace = true});
  MPC_ASSERT_OK(traced.status());
  EXPECT_THAT(*traced, HasSubstr("forward pass: conv2d in 'bnnet/conv3'"));
  EXPECT_THAT(*traced, HasSubstr("what leads to it:\n"));
  const absl::StatusOr<std::string> on_the_cpu = opt::ReplayWhatIf({.path = path, .changes = {"device=cpu"}});
  MPC_ASSERT_OK(on_the_cpu.status());
  EXPECT_THAT(*on_the_cpu, HasSubstr(", device=cpu: not finite\nfirst value that is not finite at loss scale 256: "
                                     "forward pass: conv2d in 'bnnet/conv3' (f16)"));
}

// The second of three micro-batches is bad. Three steps may share a launch, which a run that writes a capsule does not
// use.
TEST_F(CudaReplay, NamesTheMicroBatchOfAStepThatAccumulates) {
  MPC_ASSERT_OK(SetContext({.device = "cuda", .fusion = test::NetworkDeviceFusion(), .steps_per_launch = 3}));
  SetSeed(7);
  ConvNorm network;
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  nn::Momentum optimizer(network.TrainableParams(), {.learning_rate = 0.05});
  const DynamicLossScaleManager dynamic({.init_loss_scale = 256});
  Model model(network, loss, optimizer,
              {.amp_level = "O2",
               .loss_scale_manager = dynamic,
               .amp_dtype = DType::kF16,
               .accumulation_steps = 3,
               .capsule_path = folder_ / "x"});
  std::vector<data::Row> rows;
  for (std::int64_t i = 0; i < 6; ++i) rows.push_back(MakeBatch({2, 6, 6}, 4, i));
  rows[4] = WithBadValue(rows[4], kInfinity);
  ::testing::internal::CaptureStderr();
  MPC_EXPECT_OK(model.Train(1, Batches(rows)));
  ::testing::internal::GetCapturedStderr();
  const absl::StatusOr<tools::ReplayReport> report = tools::ReplayCapsule({.replay_path = folder_ / "x"});
  MPC_ASSERT_OK(report.status());
  EXPECT_TRUE(report->is_equal) << report->text;
  EXPECT_THAT(report->text, HasSubstr("step 2 (not finite)"));
  EXPECT_THAT(report->text, HasSubstr("input \"data@2\" is not finite before the step: 1 of 288 elements\n"));
  EXPECT_THAT(report->text, ContainsRegex("first operation whose result is not finite: .*, micro-batch 2 of 3\n"));
}

TEST_F(CudaReplay, SaysNothingOfSingleResultsWhereTheStepIsFinite) {
  const absl::StatusOr<tools::ReplayReport> report =
      tools::ReplayCapsule({.replay_path = BnNetCapsule(folder_, "cuda", false)});
  MPC_ASSERT_OK(report.status());
  EXPECT_THAT(report->text, Not(HasSubstr("first operation")));
  EXPECT_THAT(report->text, HasSubstr("every bit is equal: "));
}

TEST_F(CudaReplay, FindsNoDifferenceBetweenEqualSteps) {
  for (const std::string& path : {BnNetCapsule(folder_, "cuda", false), Gpt2Capsule(folder_)}) {
    const absl::StatusOr<tools::Bisection> bisection = tools::BisectCapsules(Read(path), Read(path));
    MPC_ASSERT_OK(bisection.status());
    EXPECT_FALSE(bisection->differs) << bisection->text;
    EXPECT_THAT(bisection->text, HasSubstr("results; all are compared\nno result that is compared differs\n"));
    EXPECT_THAT(bisection->text, Not(HasSubstr("does not repeat")));
  }
}

/// Plants one unit in the last place into the last result of every `stride`th instruction, if it is of floating type.
void ExpectPlantedDifferencesFound(const CapsuleFile& file, std::size_t stride) {
  CapsuleFile planted = file;
  planted.capsule.program.device = "planted";
  const runtime::Program& program = file.capsule.program;
  std::size_t found = 0;
  for (std::size_t i = 0; i < program.step().instructions.size(); i += stride) {
    const std::vector<runtime::ValueId>& outputs = program.step().instructions[i].outputs;
    if (outputs.empty() || outputs.back() == runtime::kNoValue) continue;
    const TensorSpec& spec = program.values[static_cast<std::size_t>(outputs.back())].spec;
    if (!IsFloating(spec.dtype)) continue;
    const auto element = static_cast<std::size_t>(spec.num_elements()) / 2;
    tools::PlantDifference({i, outputs.size() - 1, element}, "cuda");
    const absl::StatusOr<tools::Bisection> bisection = tools::BisectCapsules(file, planted);
    MPC_ASSERT_OK(bisection.status());
    EXPECT_TRUE(bisection->differs);
    EXPECT_THAT(bisection->text, HasSubstr(absl::StrCat("first operation whose result differs: ",
                                                        runtime::DescribeInstruction(program, i))));
    EXPECT_THAT(bisection->text, HasSubstr(absl::StrCat("\n  result ", outputs.size() - 1, ", ", spec.ToString())));
    EXPECT_THAT(bisection->text, HasSubstr(absl::StrCat(" differs, the first is element ", element, ": ")));
    ++found;
  }
  EXPECT_GT(found, 2u);
}

TEST_F(CudaReplay, FindsOneUnitInTheLastPlaceAtItsOperation) {
  ExpectPlantedDifferencesFound(Read(BnNetCapsule(folder_, "cuda", false)), 12);
  ExpectPlantedDifferencesFound(Read(Gpt2Capsule(folder_)), 16);
}

TEST_F(CudaReplay, SaysThatTwoDevicesRoundDifferently) {
  const absl::StatusOr<tools::Bisection> bisection =
      tools::BisectCapsules(Read(BnNetCapsule(folder_, "cpu", false)), Read(BnNetCapsule(folder_, "cuda", false)));
  MPC_ASSERT_OK(bisection.status());
  EXPECT_TRUE(bisection->differs);
  EXPECT_THAT(bisection->text, HasSubstr("device cpu in A, cuda sm_"));
  EXPECT_THAT(bisection->text, ContainsRegex("A ran on cpu, B on cuda sm_[0-9]+: their kernels "));
  EXPECT_THAT(bisection->text, HasSubstr("first operation whose result differs: "));
}

}  // namespace
}  // namespace mpc::testing
