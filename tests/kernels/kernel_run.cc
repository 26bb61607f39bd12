#include "tests/kernels/kernel_run.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace mpc::test {
namespace {

constexpr std::size_t kGuardBytes = 64;
constexpr std::uint8_t kGuard = 0xA5;
// Results start as NaN (and -1), so that an element that is never written cannot look right.
constexpr std::uint8_t kUnwritten = 0xFF;

}  // namespace

GuardedBuffer::GuardedBuffer(std::size_t bytes)
    : bytes_(bytes), storage_(new (std::align_val_t{64}) std::uint8_t[bytes + kGuardBytes]) {
  std::memset(storage_.get(), kUnwritten, bytes);
  std::memset(storage_.get() + bytes, kGuard, kGuardBytes);
}

bool GuardedBuffer::GuardIntact() const {
  return std::all_of(storage_.get() + bytes_, storage_.get() + bytes_ + kGuardBytes,
                     [](std::uint8_t byte) { return byte == kGuard; });
}

std::vector<std::uint8_t> GuardedBuffer::Bits() const { return {storage_.get(), storage_.get() + bytes_}; }

KernelSpec SpecOf(const op_cases::OpCase& op_case, DType dtype) {
  KernelSpec spec;
  spec.name = op_case.op;
  spec.inputs = op_cases::OperandSpecs(op_case, dtype);
  spec.outputs = op_cases::ResultSpecs(op_case, dtype);
  spec.attributes = op_case.attributes;
  return spec;
}

absl::StatusOr<ResultBits> RunKernel(const KernelDevice& device, const op_cases::OpCase& op_case, DType dtype,
                                     const std::vector<reference::Tensor>& inputs, const RunOptions& options) {
  KernelSpec spec = SpecOf(op_case, dtype);
  spec.output_used = options.output_used;
  for (std::size_t i = 0; i < spec.outputs.size(); ++i) {
    if (!spec.uses(i)) spec.outputs[i] = TensorSpec{};
  }
  absl::StatusOr<std::unique_ptr<KernelDevice::Kernel>> kernel = device.Create(spec);
  if (!kernel.ok()) return kernel.status();

  std::vector<GuardedBuffer> buffers;
  ResultBits original;
  std::vector<const void*> input_pointers;
  std::vector<void*> output_pointers;
  for (const reference::Tensor& input : inputs) {
    buffers.emplace_back(input.spec.bytes());
    reference::ToStorage(input, buffers.back().data());
    input_pointers.push_back(buffers.back().data());
    original.push_back(buffers.back().Bits());
  }
  std::vector<std::size_t> output_buffers;
  for (std::size_t i = 0; i < spec.outputs.size(); ++i) {
    const bool aliased = i < options.aliases.size() && options.aliases[i].has_value();
    if (!aliased) buffers.emplace_back(spec.uses(i) ? spec.outputs[i].bytes() : 0);
    output_buffers.push_back(aliased ? *options.aliases[i] : buffers.size() - 1);
    output_pointers.push_back(spec.uses(i) ? buffers[output_buffers.back()].data() : nullptr);
  }
  GuardedBuffer workspace((*kernel)->workspace_bytes());
  const absl::Status run = (*kernel)->Run(input_pointers.data(), output_pointers.data(), workspace.data());
  if (!run.ok()) return run;

  bool intact = workspace.GuardIntact();
  for (const GuardedBuffer& buffer : buffers) intact = intact && buffer.GuardIntact();
  if (!intact) return absl::InternalError(absl::StrCat(op_case.name, " writes past the end of a buffer"));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (std::find(output_buffers.begin(), output_buffers.end(), i) == output_buffers.end() &&
        buffers[i].Bits() != original[i]) {
      return absl::InternalError(absl::StrCat(op_case.name, " writes to operand ", i));
    }
  }
  ResultBits results;
  for (std::size_t i = 0; i < spec.outputs.size(); ++i) {
    results.push_back(spec.uses(i) ? buffers[output_buffers[i]].Bits() : std::vector<std::uint8_t>());
  }
  return results;
}

}  // namespace mpc::test
