#include "tests/kernels/group_checks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "kernels/kernel_key.h"
#include "tests/kernels/kernel_checks.h"

namespace mpc::test {
namespace {

using op_cases::OpCase;

/// Instructions that may share a kernel, with the bits that each leaves alone.
struct Group {
  std::vector<KernelSpec> specs;
  std::vector<std::vector<reference::Tensor>> inputs;
  std::vector<ResultBits> expected;

  void Add(const KernelDevice& device, const OpCase& op_case, DType dtype) {
    specs.push_back(SpecOf(op_case, dtype));
    inputs.push_back(op_cases::MakeInputs(op_case, dtype));
    const auto bits = RunKernel(device, op_case, dtype, inputs.back());
    ASSERT_TRUE(bits.ok()) << bits.status();
    expected.push_back(*bits);
  }
};

/// The cases of `op` that agree in attributes and types.
std::vector<Group> GroupsOf(const KernelDevice& device, const std::string& op) {
  std::map<std::string, Group> groups;
  ForEachCase(op, [&](const OpCase& op_case, DType dtype) {
    KernelSpec spec = SpecOf(op_case, dtype);
    for (std::vector<TensorSpec>* tensors : {&spec.inputs, &spec.outputs}) {
      for (TensorSpec& tensor : *tensors) tensor.shape.clear();
    }
    // A predicate's value is an operand, not an attribute: cases that skip and cases that do not may meet.
    groups[KernelKey(spec)].Add(device, op_case, dtype);
  });
  std::vector<Group> list;
  for (auto& [key, group] : groups) list.push_back(std::move(group));
  return list;
}

/// Runs `group` `times` times over in one kernel, with operands of their own for each.
void ExpectTheBitsOfSingleKernels(const KernelDevice& device, const Group& group, std::size_t times) {
  std::vector<KernelSpec> specs;
  std::deque<GuardedBuffer> buffers;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  // Scalars with equal values are one operand, as the learning rate and the predicate of a step are.
  std::map<std::pair<DType, std::vector<double>>, const void*> scalars;
  for (std::size_t time = 0; time < times; ++time) {
    for (std::size_t i = 0; i < group.specs.size(); ++i) {
      specs.push_back(group.specs[i]);
      for (const reference::Tensor& input : group.inputs[i]) {
        const void* scalar = nullptr;
        const void*& data = input.spec.shape.empty() ? scalars[{input.spec.dtype, input.values}] : scalar;
        if (data == nullptr) {
          buffers.emplace_back(input.spec.bytes());
          reference::ToStorage(input, buffers.back().data());
          data = buffers.back().data();
        }
        inputs.push_back(data);
      }
      for (const TensorSpec& spec : group.specs[i].outputs) {
        buffers.emplace_back(spec.bytes());
        outputs.push_back(buffers.back().data());
      }
    }
  }
  auto kernel = device.CreateGroup(specs);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  GuardedBuffer workspace((*kernel)->workspace_bytes());
  const absl::Status run = (*kernel)->Run(inputs.data(), outputs.data(), workspace.data());
  ASSERT_TRUE(run.ok()) << run;
  EXPECT_TRUE(workspace.GuardIntact());
  for (const GuardedBuffer& buffer : buffers) EXPECT_TRUE(buffer.GuardIntact());
  std::size_t output = 0;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    for (const std::vector<std::uint8_t>& expected : group.expected[i % group.specs.size()]) {
      const auto* data = static_cast<const std::uint8_t*>(outputs[output++]);
      EXPECT_EQ(std::vector<std::uint8_t>(data, data + expected.size()), expected) << "instruction " << i;
    }
  }
}

}  // namespace

void ExpectGroupsGiveTheBitsOfSingleKernels(const KernelDevice& device, const std::string& op) {
  for (const Group& group : GroupsOf(device, op)) ExpectTheBitsOfSingleKernels(device, group, 1);
}

void ExpectAGroupTakes(const KernelDevice& device, const std::string& op, std::size_t instructions) {
  const std::vector<Group> groups = GroupsOf(device, op);
  ASSERT_FALSE(groups.empty());
  ExpectTheBitsOfSingleKernels(device, groups.front(), instructions / groups.front().specs.size() + 1);
}

}  // namespace mpc::test
