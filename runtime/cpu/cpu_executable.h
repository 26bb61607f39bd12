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
#include "runtime/cpu/generated_kernel.h"
#include "runtime/executable.h"
#include "runtime/observable_step.h"
#include "runtime/step_calls.h"

namespace mpc::runtime {

class CpuExecutable : public Executable, public ObservableStep {
 public:
  /// `program` has passed CheckProgram; `entries` are those of Program::state, in order. Errors: those of loading code
  /// and of creating kernels. FAILED_PRECONDITION for a workspace that is too small. Also an output that overlaps what
  /// its kernel still reads, and no memory. FAILED_PRECONDITION for another number of processes than the program's.
  static absl::StatusOr<std::unique_ptr<Executable>> Create(std::shared_ptr<const Program> program,
                                                            std::vector<std::shared_ptr<StateEntry>> entries,
                                                            std::shared_ptr<Communicator> communicator = nullptr);

  absl::Status Run(StepInputs inputs) override;
  absl::Span<const std::uint8_t> output(std::size_t index) const override;
  std::uint64_t steps_started() const override { return steps_; }
  absl::StatusOr<absl::Span<const std::uint8_t>> OutputOfStep(std::uint64_t step, std::size_t index) const override;
  absl::StatusOr<std::vector<InstructionTime>> RunTimed(StepInputs inputs) override;
  absl::Status RunObserved(StepInputs inputs, const ResultObserver& observe) override;
  MemoryUse memory() const override;
  const Program& program() const override { return *program_; }

 private:
  using Call = StepCall<std::unique_ptr<cpu::Kernel>>;
  struct Refresh {
    const Call* call;
    StateEntry* derived;
    const StateEntry* source;
    bool written;  ///< the step writes the derived state itself
  };
  /// An entry that an optimizer updates where its predicate holds.
  struct Update {
    std::size_t instruction;
    const std::uint8_t* predicate;
    StateEntry* entry;
    bool took_place;  ///< in the last run
  };
  struct InputBuffer {
    std::byte* data;
    std::size_t bytes;
  };

  CpuExecutable(std::shared_ptr<const Program> program, std::vector<std::shared_ptr<StateEntry>> entries,
                std::shared_ptr<Communicator> communicator);

  std::byte* Address(const Value& value);
  std::byte* Address(ValueId id) { return Address(program_->values[id]); }
  absl::StatusOr<std::unique_ptr<cpu::Kernel>> MakeKernel(const Instruction& instruction, const KernelSpec& spec) const;
  absl::Status AddCalls();
  void AddWrittenState();
  void RefreshStaleState();
  void RunKernel(const Call& call);
  /// Runs a call of the step, with the sequences that it calls. `observe` may be null. Errors: those of the
  /// communicator.
  absl::Status RunCallOfStep(const Call& call, const ResultObserver& observe = nullptr);
  /// Notes which updates of `call`, the next one of the step, take place. Their predicates are still there.
  void NoteUpdates(const Call& call);
  void Observe(const Call& call, const ResultObserver& observe);
  /// Begin and Finish do what comes before and after the instructions of a step.
  absl::Status Begin(StepInputs inputs);
  void Finish();
  /// Notes that a step which failed with `status` has written some of its state, and returns that.
  absl::Status Abandon(absl::Status status);

  std::shared_ptr<const Program> program_;
  std::vector<std::shared_ptr<StateEntry>> entries_;
  std::shared_ptr<Communicator> communicator_;  ///< null where the program runs in one process
  HostCode code_;                               ///< kernels call into it
  AlignedBuffer arena_;
  AlignedBuffer constants_;
  std::vector<InputBuffer> inputs_;
  StepCalls<std::unique_ptr<cpu::Kernel>> calls_;
  std::vector<Refresh> refreshes_;
  std::vector<StateEntry*> written_;  ///< what every step writes
  std::vector<Update> updates_;       ///< what steps write beside it, in the order of the instructions
  std::size_t next_update_ = 0;       ///< the first of them that the running step has not come to
  std::vector<absl::Span<const std::uint8_t>> outputs_;
  std::uint64_t steps_ = 0;
};

}  // namespace mpc::runtime
