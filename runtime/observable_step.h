// Looking at every result of a step, before the arena is used again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/executable.h"

namespace mpc::runtime {

/// A result right after the kernel of its instruction has run.
struct ObservedResult {
  std::size_t sequence = 0;     ///< index into Program::sequences
  std::size_t instruction = 0;  ///< index into Sequence::instructions
  std::size_t result = 0;       ///< index into Instruction::outputs
  absl::Span<std::uint8_t> bytes;
};

/// May change the bytes: later instructions read what it leaves there.
using ResultObserver = std::function<void(const ObservedResult&)>;

/// An Executable whose steps can be observed is one of these, too.
class ObservableStep {
 public:
  virtual ~ObservableStep() = default;

  /// Executable::Run, with a call of `observe` for each result that is used, in the order of the instructions.
  /// Instructions that run as one kernel are observed after the last of them. A sequence that runs several times is
  /// observed each time. Refreshes of stale state come before the step and are not observed. Errors: those of Run.
  virtual absl::Status RunObserved(StepInputs inputs, const ResultObserver& observe) = 0;
};

}  // namespace mpc::runtime
