#include "tests/cuda/bits_of_the_cpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_join.h"
#include "kernels/cpu/kernel.h"
#include "kernels/reference/reference.h"
#include "tests/cuda/emulated_kernel_device.h"
#include "tests/kernels/kernel_run.h"

namespace mpc::test {
namespace {

// NaN is NaN: its payload is nobody's business where values are computed.
Bytes WithOneNan(const TensorSpec& spec, Bytes bytes) {
  if (!IsFloating(spec.dtype)) return bytes;
  reference::Tensor tensor = reference::FromStorage(spec, bytes.data());
  for (double& value : tensor.values) value = std::isnan(value) ? NAN : value;
  reference::ToStorage(tensor, bytes.data());
  return bytes;
}

struct Buffers {
  explicit Buffers(const KernelSpec& spec, const std::vector<Bytes>& inputs) {
    for (const Bytes& input : inputs) {
      storage.emplace_back(input.size());
      std::copy(input.begin(), input.end(), static_cast<std::uint8_t*>(storage.back().data()));
      in.push_back(storage.back().data());
    }
    for (std::size_t i = 0; i < spec.outputs.size(); ++i) {
      storage.emplace_back(spec.outputs[i].bytes());
      out.push_back(spec.uses(i) ? storage.back().data() : nullptr);
    }
  }
  std::vector<Bytes> Results(const KernelSpec& spec) const {
    std::vector<Bytes> results;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const GuardedBuffer& buffer = storage[in.size() + i];
      EXPECT_TRUE(buffer.GuardIntact());
      results.push_back(spec.uses(i) ? buffer.Bits() : Bytes());
    }
    return results;
  }
  std::vector<GuardedBuffer> storage;
  std::vector<const void*> in;
  std::vector<void*> out;
};

std::vector<Bytes> OnCpu(const KernelSpec& spec, const std::vector<Bytes>& inputs) {
  auto kernel = cpu::CreateKernel(spec);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  if (!kernel.ok()) return {};
  Buffers buffers(spec, inputs);
  GuardedBuffer workspace((*kernel)->workspace_bytes());
  (*kernel)->Run({buffers.in.data(), buffers.out.data(), workspace.data()});
  return buffers.Results(spec);
}

std::string TextOf(const KernelSpec& spec) {
  const auto types = [](std::string* out, const TensorSpec& tensor) { out->append(tensor.ToString()); };
  return spec.name + "(" + absl::StrJoin(spec.inputs, ", ", types) + ") -> " + absl::StrJoin(spec.outputs, ", ", types);
}

}  // namespace

std::int64_t Pick(Random& random, std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(random);
}

Bytes RandomBits(Random& random, const TensorSpec& spec) {
  Bytes bytes(spec.bytes());
  for (std::uint8_t& byte : bytes) {
    byte = static_cast<std::uint8_t>(spec.dtype == DType::kBool ? Pick(random, 0, 1) : Pick(random, 0, 255));
  }
  return bytes;
}

Bytes OrdinaryValues(Random& random, const TensorSpec& spec) {
  reference::Tensor tensor{spec, std::vector<double>(static_cast<std::size_t>(spec.num_elements()))};
  for (double& value : tensor.values) value = static_cast<double>(Pick(random, -9, 9)) / 4;
  Bytes bytes(spec.bytes());
  reference::ToStorage(tensor, bytes.data());
  return bytes;
}

Bytes RandomValues(Random& random, const TensorSpec& spec) {
  constexpr double kSpecial[] = {0.0, -0.0, 1.0, INFINITY, -INFINITY, NAN, 65504.0, 1e-7, 3e9, -3e9};
  Bytes bytes = OrdinaryValues(random, spec);
  if (!IsFloating(spec.dtype)) return bytes;
  reference::Tensor tensor = reference::FromStorage(spec, bytes.data());
  for (double& value : tensor.values) value = Pick(random, 0, 9) == 0 ? OneOf(random, kSpecial) : value;
  reference::ToStorage(tensor, bytes.data());
  return bytes;
}

Shape RandomShape(Random& random, std::int64_t least_rank) {
  constexpr std::int64_t kExtents[] = {1, 2, 3, 5, 8, 16};
  Shape shape(static_cast<std::size_t>(Pick(random, least_rank, 4)));
  for (std::int64_t& extent : shape) extent = OneOf(random, kExtents);
  return shape;
}

Shape RandomOperand(Random& random, const Shape& result) {
  Shape shape(result.begin() + Pick(random, 0, static_cast<std::int64_t>(result.size())), result.end());
  if (Pick(random, 0, 2) == 0) shape = result;
  const std::int64_t repeats = Pick(random, 0, 3);
  for (std::int64_t& extent : shape) extent = repeats != 0 && Pick(random, 0, 2) < repeats - 1 ? 1 : extent;
  return shape;
}

std::vector<Bytes> OnCuda(const KernelSpec& spec, const std::vector<Bytes>& inputs) {
  auto kernel = EmulatedKernels().Create(spec);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  if (!kernel.ok()) return {};
  Buffers buffers(spec, inputs);
  GuardedBuffer workspace((*kernel)->workspace_bytes());
  const absl::Status run = (*kernel)->Run(buffers.in.data(), buffers.out.data(), workspace.data());
  EXPECT_TRUE(run.ok()) << run;
  EXPECT_TRUE(workspace.GuardIntact());
  return buffers.Results(spec);
}

void ExpectTheBitsOfTheCpu(const KernelSpec& spec, const std::vector<Bytes>& inputs, Nan nan) {
  SCOPED_TRACE(TextOf(spec));
  const std::vector<Bytes> cuda = OnCuda(spec, inputs), cpu = OnCpu(spec, inputs);
  ASSERT_EQ(cuda.size(), cpu.size());
  for (std::size_t i = 0; i < cuda.size(); ++i) {
    if (!spec.uses(i)) continue;
    if (nan == Nan::kAnyPayload) {
      EXPECT_EQ(WithOneNan(spec.outputs[i], cuda[i]), WithOneNan(spec.outputs[i], cpu[i])) << "result " << i;
    } else {
      EXPECT_EQ(cuda[i], cpu[i]) << "result " << i;
    }
  }
}

}  // namespace mpc::test
