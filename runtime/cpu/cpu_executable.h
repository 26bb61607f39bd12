// A Program with every pointer resolved: its step is a loop over kernel calls.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/cpu/kernel.h"
#include "runtime/aligned_buffer.h"
#include "runtime/executable.h"

namespace mpc::runtime {

/// What the kernel of `instruction` is created from. Errors (INVALID_ARGUMENT): an operand that is no value of
/// `program`.
absl::StatusOr<cpu::KernelSpec> MakeKernelSpec(const Program& program, const Instruction& instruction);

/// "train_step, instruction 7 (conv2d in lenet5/conv1)", the start of messages about an instruction.
std::string DescribeInstruction(const Program& program, std::size_t position);

class CpuExecutable : public Executable {
 public:
  /// `program` has passed CheckProgram; `entries` are those of Program::state, in order. Errors: those of creating
  /// kernels, a workspace that is too small, an output that overlaps what its kernel still reads, no memory.
  static absl::StatusOr<std::unique_ptr<Executable>> Create(std::shared_ptr<const Program> program,
                                                            std::vector<std::shared_ptr<StateEntry>> entries);

  absl::Status Run(absl::Span<const absl::Span<const std::uint8_t>> inputs) override;
  absl::Span<const std::uint8_t> output(std::size_t index) const override;
  const Program& program() const override { return *program_; }

 private:
  struct Call {
    std::unique_ptr<cpu::Kernel> kernel;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    void* workspace = nullptr;
  };
  struct Copy {
    const std::byte* from;
    std::byte* to;
    std::size_t bytes;
  };
  struct Refresh {
    Call call;
    StateEntry* derived;
    const StateEntry* source;
    bool written;  ///< by the step as well
  };
  struct InputSlot {
    std::byte* data;
    std::size_t bytes;
  };

  CpuExecutable(std::shared_ptr<const Program> program, std::vector<std::shared_ptr<StateEntry>> entries);

  std::byte* Address(ValueId id);
  absl::StatusOr<Call> MakeCall(const Instruction& instruction);
  absl::Status AddRefreshes();
  void RefreshStaleState();
  absl::Status CheckOverlaps(std::size_t position) const;
  absl::Status CheckInputs(absl::Span<const absl::Span<const std::uint8_t>> inputs) const;

  std::shared_ptr<const Program> program_;
  std::vector<std::shared_ptr<StateEntry>> entries_;
  AlignedBuffer arena_;
  AlignedBuffer constants_;
  std::vector<InputSlot> inputs_;
  std::vector<Refresh> refreshes_;
  std::vector<Call> calls_;
  std::vector<Copy> copies_;
  std::vector<StateEntry*> written_;
  std::vector<absl::Span<const std::uint8_t>> outputs_;
};

}  // namespace mpc::runtime
