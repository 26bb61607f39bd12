#include "runtime/cpu/kernel_timing.h"

#include <cpuid.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/onednn_version.h"
#include "runtime/aligned_buffer.h"
#include "runtime/kernel_tuner.h"
#include "runtime/physical_memory.h"
#include "runtime/touched_memory.h"
#include "runtime/version.h"

namespace mpc::runtime {
namespace {

/// The memory of one kernel's operands, filled with values.
struct Operands {
  std::vector<AlignedBuffer> memory;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  void* workspace = nullptr;

  void* Add(std::size_t bytes) { return AddTouched(memory, bytes); }
};

/// Fills `address` with uniform numbers in [-1, 1), other ones for each `stream`.
absl::Status FillWithRandomNumbers(const TensorSpec& spec, std::int64_t stream, void* address) {
  const KernelSpec random{"random",
                          {{DType::kI64, {}}},
                          {spec},
                          {},
                          {{"distribution", "uniform"}, {"a", -1.0}, {"b", 1.0}, {"stream", stream}}};
  const absl::StatusOr<std::unique_ptr<cpu::Kernel>> kernel = cpu::CreateKernel(random);
  if (!kernel.ok()) return kernel.status();
  const std::int64_t seed = 0;
  const void* const input = &seed;
  (*kernel)->Run({&input, &address, nullptr});
  return absl::OkStatus();
}

absl::Status MakeOperands(const KernelSpec& spec, std::size_t workspace_bytes, Operands& operands) {
  for (const TensorSpec& input : spec.inputs) {
    void* const address = operands.Add(input.bytes());
    if (IsFloating(input.dtype) && input.bytes() > 0) {
      const auto stream = static_cast<std::int64_t>(operands.inputs.size());
      if (absl::Status status = FillWithRandomNumbers(input, stream, address); !status.ok()) return status;
    }
    operands.inputs.push_back(address);
  }
  for (std::size_t i = 0; i < spec.outputs.size(); ++i) {
    operands.outputs.push_back(spec.uses(i) ? operands.Add(spec.outputs[i].bytes()) : nullptr);
  }
  operands.workspace = operands.Add(workspace_bytes);
  return absl::OkStatus();
}

/// Bytes of what MakeOperands makes.
std::size_t BytesOfOperands(const KernelSpec& spec, std::size_t workspace_bytes) {
  std::size_t bytes = workspace_bytes;
  for (const TensorSpec& input : spec.inputs) bytes += input.bytes();
  for (std::size_t i = 0; i < spec.outputs.size(); ++i) bytes += spec.uses(i) ? spec.outputs[i].bytes() : 0;
  return bytes;
}

/// The processor's own name, with family, model and stepping.
std::string ProcessorName() {
  std::array<unsigned, 12> words{};
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  for (unsigned leaf = 0; leaf < 3; ++leaf) {
    if (__get_cpuid(0x80000002 + leaf, &words[4 * leaf], &words[4 * leaf + 1], &words[4 * leaf + 2],
                    &words[4 * leaf + 3]) == 0) {
      break;
    }
  }
  std::array<char, sizeof(words) + 1> text{};
  std::memcpy(text.data(), words.data(), sizeof(words));
  __get_cpuid(1, &eax, &ebx, &ecx, &edx);
  const unsigned family = (eax >> 8 & 0xf) + (eax >> 20 & 0xff);
  const unsigned model = (eax >> 4 & 0xf) | (eax >> 12 & 0xf0);
  return absl::StrCat(absl::StripAsciiWhitespace(text.data()), " (", family, "-", model, "-", eax & 0xf, ")");
}

}  // namespace

absl::StatusOr<double> TimeKernel(const KernelSpec& spec, cpu::Kernel& kernel) {
  Operands operands;
  const absl::Status status = MakeWithinMemory(
      BytesOfOperands(spec, kernel.workspace_bytes()),
      [&] { return MakeOperands(spec, kernel.workspace_bytes(), operands); },
      [&] { return absl::StrCat("no memory to time mpc.", spec.name); });
  if (!status.ok()) return status;
  return TimeOfOneRun([&](int runs) -> absl::StatusOr<double> {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    for (int run = 0; run < runs; ++run) {
      kernel.Run({operands.inputs.data(), operands.outputs.data(), operands.workspace});
    }
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  });
}

std::string MeasuredOn() {
  static const std::string processor = ProcessorName();
  return absl::StrCat(processor, " with ", cpu::NumThreads(), cpu::NumThreads() == 1 ? " thread" : " threads",
                      ", oneDNN ", cpu::OnednnVersion(), ", mpc ", MPC_VERSION);
}

}  // namespace mpc::runtime
