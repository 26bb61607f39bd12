// What a user reads when a GPU cannot be used, has too little memory, or fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/cuda/emulated_device.h"
#include "tests/cuda/step_program.h"

namespace mpc::runtime {
namespace {

using emulation::EmulatedApi;
using emulation::EmulatedGpu;
using testing::AllOf;
using testing::HasSubstr;

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

absl::Status OpenStatus(const EmulatedGpu& gpu) {
  EmulatedApi api(gpu);
  return CudaDevice::Open(api, {.use_libraries = false}).status();
}

TEST(CudaDeviceOpen, SaysWhatIsMissing) {
  const absl::Status none = OpenStatus({.devices = 0});
  EXPECT_EQ(none.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(none), AllOf(HasSubstr("sees no GPU"), HasSubstr("compute capability 8.0")));
  const absl::Status driver = OpenStatus({.driver_version = 12080});
  EXPECT_EQ(driver.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(driver), AllOf(HasSubstr("serves CUDA 12.8"), HasSubstr("built with CUDA 13.0")));
  const absl::Status old = OpenStatus({.compute_capability = 75});
  EXPECT_EQ(old.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(old), AllOf(HasSubstr("Emulated GPU of compute capability 7.5"), HasSubstr("needs 8.0")));
  const absl::Status missing = OpenStatus({.count_error = absl::UnavailableError("no NVIDIA driver was found")});
  EXPECT_EQ(missing.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(missing), HasSubstr("device \"cuda\": no NVIDIA driver was found"));
}

TEST(CudaDeviceOpen, LeavesNothingBehindWhenItFails) {
  for (const char* call : {"CreateStream", "MallocHost"}) {
    EmulatedApi api;
    api.FailCall(call, 1, absl::InternalError("injected"));
    EXPECT_FALSE(CudaDevice::Open(api, {.use_libraries = false}).ok());
    EXPECT_THAT(api.Alive(), testing::IsEmpty()) << call;
  }
}

TEST(CudaTarget, IsOneOfTheKnownArchitectures) {
  for (const char* arch : {"sm_80", "sm_90"}) {
    const auto target = CudaDevice::ForTarget(arch);
    ASSERT_TRUE(target.ok());
    EXPECT_EQ((*target)->arch(), arch);
    EXPECT_EQ((*target)->name(), "cuda");
  }
  const absl::Status unknown = CudaDevice::ForTarget("sm_70").status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(unknown), AllOf(HasSubstr("\"sm_70\""), HasSubstr("\"sm_80\", \"sm_90\"")));
}

TEST(CudaTarget, PlansButDoesNotRun) {
  const auto target = *CudaDevice::ForTarget("sm_90", {.use_libraries = false});
  const auto program = BuildFor("cuda", StepProgram());
  const auto plan = target->Plan(*program, program->step().instructions[0]);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->workspace_bytes, 0u);
  StateStore store;
  AddStepState(store);
  const absl::Status status = target->Load(program, store).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(status), HasSubstr("only compiled for (sm_90)"));
}

TEST(CudaLoad, TakesProgramsOfItsOwnMajorArchitecture) {
  EmulatedDevice ampere({.compute_capability = 86});
  StateStore store;
  AddStepState(store);
  ProgramBuilder builder = StepProgram();
  builder.program.device = "cuda";
  builder.program.arch = "sm_80";
  EXPECT_TRUE(ampere->Load(builder.Build(), store).ok());
  builder.program.arch = "sm_90";
  const absl::Status status = ampere->Load(builder.Build(), store).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("compiled for \"sm_90\""), HasSubstr("Emulated GPU (sm_80)")));
}

TEST(CudaLoad, TakesProgramsOfGpusBehindHopper) {
  for (const auto& [capability, arch] : {std::pair{100, "sm_100"}, {103, "sm_100"}, {120, "sm_120"}}) {
    EmulatedDevice later({.compute_capability = capability});
    EXPECT_EQ(later->arch(), arch);
    StateStore store;
    AddStepState(store);
    ProgramBuilder builder = StepProgram();
    builder.program.device = "cuda";
    builder.program.arch = arch;
    EXPECT_TRUE(later->Load(builder.Build(), store).ok()) << arch;
  }
}

TEST(CudaLoad, RefusesOtherDevicesKernelsAndOptions) {
  EmulatedDevice gpu;
  StateStore store;
  AddStepState(store);
  EXPECT_EQ(gpu->Load(BuildFor("cpu", StepProgram()), store).status().code(), absl::StatusCode::kInvalidArgument);
  for (const int steps : {0, 65}) {
    const absl::Status status = gpu->Load(BuildFor("cuda", StepProgram()), store, {.steps_per_launch = steps}).status();
    EXPECT_THAT(MessageOf(status), HasSubstr("steps_per_launch is 1 to 64, got"));
  }
  ProgramBuilder unknown = StepProgram();
  unknown.program.step().instructions[1].kernel = "no_such_kernel";
  const absl::Status kernel = gpu->Load(BuildFor("cuda", unknown), store).status();
  EXPECT_EQ(kernel.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(MessageOf(kernel), HasSubstr("train_step, instruction 1 (no_such_kernel in test)"));
  StateStore empty;
  EXPECT_EQ(gpu->Load(BuildFor("cuda", StepProgram()), empty).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(gpu->Load(nullptr, store).ok());
}

TEST(CudaLoad, RefusesStateOfAnotherGpu) {
  EmulatedDevice first, second;
  StateStore store;
  AddStepState(store);
  ASSERT_TRUE(first->Load(BuildFor("cuda", StepProgram()), store).ok());
  const absl::Status status = second->Load(BuildFor("cuda", StepProgram()), store).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(status), HasSubstr("\"weight\" lives on another device"));
}

TEST(CudaLoad, SaysWhatIsPlannedAndWhatIsFree) {
  EmulatedDevice gpu({.memory_bytes = 1 << 20});
  ProgramBuilder builder = StepProgram();
  builder.program.arena_bytes = 2 << 20;
  StateStore store;
  AddStepState(store);
  const absl::Status status = gpu->Load(BuildFor("cuda", builder), store).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("an arena of 2097152 bytes"), HasSubstr("20050 bytes of state"),
                                       HasSubstr("bytes free: 1048576 of 1048576")));
  EXPECT_THAT(MessageOf(status), testing::Not(HasSubstr("load its program first"))) << "there is no other";
  EXPECT_EQ(gpu.api.calls("Malloc"), 0u) << "nothing was tried";
}

/// Loads StepProgram where the `n`-th `call` fails. Returns false where there was no such call.
bool LoadFailsCleanly(const std::string& call, std::size_t n, const absl::Status& error) {
  EmulatedDevice gpu;
  const std::size_t before = gpu.api.calls(call);
  gpu.api.FailCall(call, n, error);
  StateStore store;
  AddStepState(store);
  const absl::Status status = gpu->Load(BuildFor("cuda", StepProgram()), store, {.steps_per_launch = 2}).status();
  if (gpu.api.calls(call) - before < n) return false;
  EXPECT_EQ(status.code(), error.code()) << call << " " << n << ": " << status;
  EXPECT_THAT(MessageOf(status), HasSubstr("injected")) << call << " " << n;
  if (absl::IsResourceExhausted(error)) {
    EXPECT_THAT(MessageOf(status), HasSubstr("bytes free:")) << call << " " << n;
  }
  // The device is as good as before.
  EXPECT_TRUE(gpu->Load(BuildFor("cuda", StepProgram()), store).ok()) << call << " " << n;
  return true;
}

TEST(CudaLoad, LeaksNothingWhereverItFails) {
  for (const char* call : {"Malloc", "MallocHost"}) {
    std::size_t n = 1;
    while (LoadFailsCleanly(call, n, absl::ResourceExhaustedError("injected"))) ++n;
    EXPECT_GT(n, 1u) << call;
  }
  for (const char* call : {"CreateEvent", "BeginCapture", "EndCapture", "Instantiate", "Copy", "Launch"}) {
    std::size_t n = 1;
    while (LoadFailsCleanly(call, n, absl::InternalError("injected"))) ++n;
    EXPECT_GT(n, 1u) << call;
  }
}

TEST(CudaLoad, HostMemoryThatCannotBePinnedIsNotCalledTheDevices) {
  EmulatedDevice gpu;
  gpu.api.FailCall("MallocHost", 1, absl::ResourceExhaustedError("cudaMallocHost: injected"));
  StateStore store;
  AddStepState(store);
  const absl::Status status = gpu->Load(BuildFor("cuda", StepProgram()), store).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(MessageOf(status), testing::ContainsRegex("^no [1-9][0-9]* bytes of the host's memory could be pinned"));
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("(cudaMallocHost: injected); host bytes free: "),
                                       HasSubstr("The device's memory is not what is short"),
                                       testing::Not(HasSubstr("does not fit into the device's memory"))));
}

TEST(CudaRun, RefusesAWrongNumberOrSizeOfInputs) {
  EmulatedDevice gpu;
  StateStore store;
  AddStepState(store);
  auto executable = *gpu->Load(BuildFor("cuda", StepProgram()), store);
  const absl::Status status = executable->Run({});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status), HasSubstr("takes 2 inputs [\"x\" tensor<5xf32> (20 bytes)"));
  EXPECT_TRUE(executable->Run(StepData(0).inputs).ok()) << "the mistake is forgotten";
  const StepData data(0);
  const std::vector<StepInputs> two(2, data.inputs);
  EXPECT_THAT(MessageOf(executable->RunSteps(two)), HasSubstr("at most 1 steps a launch, got 2"));
}

TEST(CudaRun, ALaunchThatFailsNamesInstructionAndCell) {
  EmulatedDevice gpu;
  StateStore store;
  AddStepState(store);
  auto executable = *gpu->Load(BuildFor("cuda", StepProgram()), store, {.graph = false});
  ASSERT_TRUE(executable->Run(StepData(0).inputs).ok());
  // One for the refresh, one for the inputs, then the instructions.
  gpu.api.FailCall("Launch", 5, absl::InternalError("cudaErrorInvalidConfiguration"));
  const absl::Status status = executable->Run(StepData(1).inputs);
  EXPECT_THAT(MessageOf(status),
              AllOf(HasSubstr("\"train_step\", step 1"), HasSubstr("train_step, instruction 2 (add in test)"),
                    HasSubstr("cudaErrorInvalidConfiguration")));
  EXPECT_EQ(executable->Run(StepData(2).inputs), status) << "it stays";
  EXPECT_EQ(executable->Wait(), status);
  EXPECT_TRUE(executable->output(0).empty());
}

TEST(CudaRun, HalfWrittenStateCannotBeReadUntilItIsWrittenAnew) {
  EmulatedDevice gpu;
  StateStore store;
  AddStepState(store);
  auto executable = *gpu->Load(BuildFor("cuda", StepProgram()), store, {.graph = false});
  gpu.api.FailCall("Launch", 5, absl::InternalError("injected"));
  ASSERT_FALSE(executable->Run(StepData(0).inputs).ok());
  std::vector<float> values(5);
  const absl::Status read = store.Find("weight")->Read({reinterpret_cast<std::uint8_t*>(values.data()), 20});
  EXPECT_THAT(MessageOf(read), AllOf(HasSubstr("reading state \"weight\""), HasSubstr("injected")));
  auto again = *gpu->Load(BuildFor("cuda", StepProgram()), store);
  EXPECT_THAT(MessageOf(again->Run(StepData(0).inputs)), HasSubstr("injected"));
  for (const auto& entry : store.entries()) {
    ASSERT_TRUE(entry->Write(std::vector<std::uint8_t>(entry->spec().bytes())).ok());
  }
  auto fresh = *gpu->Load(BuildFor("cuda", StepProgram()), store);
  EXPECT_TRUE(fresh->Run(StepData(0).inputs).ok());
  EXPECT_TRUE(fresh->Wait().ok());
}

TEST(CudaRun, AnErrorOnTheDeviceNamesTheStepAndHowToFindTheInstruction) {
  for (const bool graph : {true, false}) {
    EmulatedDevice gpu;
    StateStore store;
    AddStepState(store);
    auto executable = *gpu->Load(BuildFor("cuda", StepProgram()), store, {.graph = graph});
    ASSERT_TRUE(executable->Run(StepData(0).inputs).ok());
    ASSERT_TRUE(executable->Wait().ok());
    gpu.api.FailKernel(4);
    ASSERT_TRUE(executable->Run(StepData(1).inputs).ok()) << "it was only started";
    const absl::Status status = executable->Wait();
    EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("program \"train_step\", step 1"),
                                         HasSubstr("cudaErrorIllegalAddress"), HasSubstr("CUDA_LAUNCH_BLOCKING=1")));
    EXPECT_EQ(MessageOf(status).find("--graph=off") != std::string::npos, graph);
    EXPECT_EQ(executable->OutputOfStep(1, 0).status(), status);
    EXPECT_EQ(executable->Run(StepData(2).inputs), status);
    EXPECT_TRUE(executable->output(0).empty());
    EXPECT_FALSE(ContentOf(store)[0].size() == 20) << "the weight is lost, and reading it says so";
  }
}

TEST(CudaRun, TimedItNamesTheInstruction) {
  EmulatedDevice gpu;
  StateStore store;
  AddStepState(store);
  auto executable = *gpu->Load(BuildFor("cuda", StepProgram()), store);
  ASSERT_TRUE(executable->Run(StepData(0).inputs).ok());
  ASSERT_TRUE(executable->Wait().ok());
  gpu.api.FailKernel(4);
  const absl::Status status = executable->RunTimed(StepData(1).inputs).status();
  EXPECT_THAT(MessageOf(status),
              AllOf(HasSubstr("train_step, instruction 1 (neg in test)"), HasSubstr("cudaErrorIllegalAddress")));
}

}  // namespace
}  // namespace mpc::runtime
