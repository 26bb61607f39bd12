// Primitives for parts of one operation, in our own threads: a library's threads take longer to start than a small
// product takes to compute.
#include <omp.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "kernels/cpu/onednn_common.h"
#include "kernels/cpu/parallel.h"

namespace mpc::cpu {
namespace {

constexpr std::size_t kMaxInputs = 4;

/// Several parts are always worth several threads.
constexpr std::int64_t kWork = std::numeric_limits<std::int64_t>::max();

class PartsKernel final : public Kernel {
 public:
  explicit PartsKernel(const std::vector<StagedPart>& parts) {
    const SerialLibrary serial;
    for (const StagedPart& part : parts) {
      parts_.push_back(
          {MakePrimitiveKernel(part.staged), {}, part.input_offsets.size(), part.output_offset, workspace_});
      std::copy(part.input_offsets.begin(), part.input_offsets.end(), parts_.back().input_offsets.begin());
      workspace_ += CacheLines(parts_.back().kernel->workspace_bytes());
    }
  }

  std::size_t workspace_bytes() const override { return workspace_; }

  void Run(const KernelOperands& operands) override {
    ParallelFor(static_cast<std::int64_t>(parts_.size()), kWork, [&](std::int64_t i) {
      const Part& part = parts_[static_cast<std::size_t>(i)];
      const SerialLibrary serial;
      std::array<const void*, kMaxInputs> inputs{};
      for (std::size_t k = 0; k < part.input_count; ++k) {
        inputs[k] = static_cast<const std::byte*>(operands.inputs[k]) + part.input_offsets[k];
      }
      void* output = static_cast<std::byte*>(operands.outputs[0]) + part.output_offset;
      part.kernel->Run({inputs.data(), &output, static_cast<std::byte*>(operands.workspace) + part.workspace_offset});
    });
  }

 private:
  struct Part {
    std::unique_ptr<Kernel> kernel;
    std::array<std::size_t, kMaxInputs> input_offsets;
    std::size_t input_count, output_offset, workspace_offset;
  };

  std::vector<Part> parts_;
  std::size_t workspace_ = 0;
};

}  // namespace

SerialLibrary::SerialLibrary(bool applies) {
  NumThreads();  // which asks for omp_get_max_threads() the first time
  threads_ = applies ? omp_get_max_threads() : 1;
  if (threads_ != 1) omp_set_num_threads(1);
}

SerialLibrary::~SerialLibrary() {
  if (threads_ != 1) omp_set_num_threads(threads_);
}

std::unique_ptr<Kernel> MakePartsKernel(const std::vector<StagedPart>& parts) {
  return std::make_unique<PartsKernel>(parts);
}

}  // namespace mpc::cpu
