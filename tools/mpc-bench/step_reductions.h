// What the ranks of a training step send each other, without the rest of the step.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/communicator.h"
#include "kernels/cpu/kernel.h"
#include "runtime/aligned_buffer.h"
#include "runtime/program.h"

namespace mpc::tools {

/// The collective kernels of a Program's step, in its order and in its groups, on memory of their own.
class StepReductions {
 public:
  /// Errors: those of making the kernels.
  static absl::StatusOr<StepReductions> Create(const runtime::Program& program);

  /// Bytes of what the gradients, and what else ranks share, take in one rank.
  std::size_t bytes() const { return bytes_; }
  /// Every rank calls it. Errors are those of the communicator.
  absl::Status Run(Communicator& communicator);

 private:
  struct Call {
    std::unique_ptr<cpu::Kernel> kernel;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    runtime::AlignedBuffer workspace;
  };

  /// Memory for a result: that of the operand which the Program has it share with, the last of `inputs`, or new.
  void* PlaceOf(const runtime::Program& program, const runtime::Instruction& instruction, std::size_t output,
                const std::vector<void*>& inputs);

  std::vector<runtime::AlignedBuffer> memory_;
  std::vector<Call> calls_;
  std::size_t bytes_ = 0;
};

/// Seconds of `repetitions` runs. Ranks meet before each, so that none of them waits for another one's beginning.
/// Errors are those of the communicator.
absl::StatusOr<std::vector<double>> TimeReductions(StepReductions& reductions, Communicator& communicator,
                                                   int repetitions);

}  // namespace mpc::tools
