// What is recorded of a network's step: each instruction once, in the Program's order, on the bytes that the Program
// names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/cuda/device_step.h"
#include "runtime/cuda/handles.h"
#include "runtime/cuda/stream_queue.h"
#include "tests/cuda/emulated_api.h"
#include "tests/cuda/network_device.h"
#include "tests/runtime/network_programs.h"
#include "tests/runtime/program_audit.h"

namespace mpc::testing {
namespace {

using runtime::DeviceAddresses;
using runtime::DeviceStep;
using runtime::kNoValue;
using runtime::Program;

/// Device memory for everything that `program` names.
struct Memory {
  Memory(emulation::EmulatedApi& api, const Program& program) {
    const auto add = [&](std::size_t bytes) {
      EXPECT_TRUE(runtime::Allocate(api, bytes, owned.emplace_back()).ok());
      return static_cast<std::byte*>(owned.back().get());
    };
    addresses.arena = add(program.arena_bytes);
    addresses.constants = add(program.constant_bytes());
    for (const runtime::StateBinding& binding : program.state) addresses.state.push_back(add(binding.spec.bytes()));
  }
  std::vector<runtime::DeviceMemory> owned;
  DeviceAddresses addresses;
};

class CudaCapture : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(test::NetworkDeviceStatus().ok());
    ASSERT_TRUE(SetContext({.device = "cuda", .fusion = test::NetworkDeviceFusion()}).ok());
  }
  void TearDown() override { ASSERT_TRUE(SetContext({}).ok()); }
};

INSTANTIATE_TEST_SUITE_P(All, CudaCapture,
                         ::testing::Combine(::testing::ValuesIn(SmallNetworks()), ::testing::Values("O0", "O2")),
                         [](const auto& info) { return std::get<0>(info.param) + "_" + std::get<1>(info.param); });

/// The operands of instructions [first, first + count), one after another.
void ExpectOperands(const Program& program, const DeviceAddresses& addresses, const DeviceStep::Call& call) {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (std::size_t i = call.instruction; i < call.instruction + call.instructions; ++i) {
    for (const runtime::ValueId id : program.step().instructions[i].inputs) {
      inputs.push_back(addresses.AddressOf(program.values[id]));
    }
    for (const runtime::ValueId id : program.step().instructions[i].outputs) {
      outputs.push_back(id == kNoValue ? nullptr : addresses.AddressOf(program.values[id]));
    }
  }
  EXPECT_EQ(call.inputs, inputs);
  EXPECT_EQ(call.outputs, outputs);
}

TEST_P(CudaCapture, RecordsEachInstructionOnceInTheOrderOfTheProgram) {
  const auto programs = ProgramsOf(std::get<0>(GetParam()), std::get<1>(GetParam()));
  ASSERT_TRUE(programs.ok()) << programs.status();
  for (const Program& program : *programs) {
    SCOPED_TRACE(program.name);
    EXPECT_THAT(runtime::AuditProgram(program, **runtime::GetDevice("cuda")), ::testing::IsEmpty());
    emulation::EmulatedApi api;
    const Memory memory(api, program);
    const runtime::CudaDeviceProperties gpu = *api.Properties();
    runtime::SharedKernels shared(cuda::CreateKernel);
    runtime::StepKernels kernels(
        program, {.target = {gpu.compute_capability, gpu.multiprocessors}, .use_libraries = false}, shared);
    const auto step = DeviceStep::Create(api, program, memory.addresses, kernels);
    ASSERT_TRUE(step.ok()) << step.status();
    std::size_t next = 0;
    std::vector<std::string> ranges;
    for (const DeviceStep::Call& call : (*step)->calls()) {
      EXPECT_EQ(call.instruction, next);
      next += call.instructions;
      ranges.push_back(call.name);
      ExpectOperands(program, memory.addresses, call);
    }
    EXPECT_EQ(next, program.step().instructions.size());

    runtime::OwnedStream stream;
    ASSERT_TRUE(Keep(api, api.CreateStream(), stream).ok());
    ASSERT_TRUE(api.BeginCapture(stream.get()).ok());
    runtime::StreamQueue queue(api, stream.get());
    for (const DeviceStep::Call& call : (*step)->calls()) ASSERT_TRUE((*step)->Enqueue(call, queue).ok());
    const auto graph = api.EndCapture(stream.get());
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_EQ(api.ranges(), ranges);
    EXPECT_GE(*api.NodeCount(*graph), ranges.size()) << "a call is at least one node";
    ASSERT_TRUE(api.DestroyGraph(*graph).ok());
    EXPECT_THAT(api.Problems(), ::testing::IsEmpty());
  }
}

}  // namespace
}  // namespace mpc::testing
