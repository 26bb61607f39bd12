// One training step, instruction by instruction: what a callback is given that asks for it.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "runtime/executable.h"
#include "runtime/program.h"

namespace mpc {

struct StepTiming {
  using Time = std::chrono::steady_clock::time_point;

  std::int64_t global_step = 0;               ///< as RunContext::global_step after the step
  const runtime::Program* program = nullptr;  ///< the step's; it lives as long as the Model
  /// In the order of Program::instructions, in microseconds from `run_begin`.
  std::vector<runtime::InstructionTime> instructions;
  // What the host did: waited for the batch (data), ran the step (run), read its records and called the other callbacks
  // (records). A run copies the inputs before the first instruction.
  Time data_begin, data_end;
  Time run_begin, run_end;
  Time records_begin, records_end;
};

}  // namespace mpc
