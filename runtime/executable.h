// A Program bound to a StateStore on a device, ready to run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/communicator.h"
#include "kernels/dtype.h"
#include "kernels/weight_packing.h"
#include "runtime/plan_options.h"
#include "runtime/program.h"
#include "runtime/state_store.h"

namespace mpc::runtime {

/// The inputs of one step, in the order of Program::inputs, each of exactly its size.
using StepInputs = absl::Span<const absl::Span<const std::uint8_t>>;

/// When an instruction ran, in microseconds from the beginning of its step. Instructions that run as one kernel have
/// one time, that of the first (GroupInstructions in step_groups.h).
struct InstructionTime {
  std::size_t instruction = 0;
  double begin_us = 0;
  double duration_us = 0;
};

/// Bytes that an Executable holds on its device.
struct MemoryUse {
  std::size_t arena = 0;  ///< Program::arena_bytes
  std::size_t state = 0;  ///< entries, derived state included; shared with other Programs of the Model
  std::size_t other = 0;  ///< constants, staging of inputs and outputs
};

/// Runs one Program. Not thread-safe. Holds its state entries alive.
class Executable {
 public:
  virtual ~Executable() = default;

  /// Starts one step. First rebuilds derived state whose source changed without it: by a write of the host, or by a
  /// Program that updates the source alone. Inputs are copied before the call returns. On the CPU the step is then
  /// done. On a device with a queue of its own it may still be under way, and functions that read its results wait for
  /// it. Inside the step nothing is allocated, looked up by name or created. Errors: INVALID_ARGUMENT for a wrong
  /// number or size of inputs. Also the error of an earlier step, naming the instruction and its Cell where that is
  /// known.
  virtual absl::Status Run(StepInputs inputs) = 0;

  /// Starts `steps.size()` steps, at most steps_per_launch(), with one launch. Results are bit for bit those of as many
  /// calls of Run.
  virtual absl::Status RunSteps(absl::Span<const StepInputs> steps) {
    for (const StepInputs& inputs : steps) {
      if (absl::Status status = Run(inputs); !status.ok()) return status;
    }
    return absl::OkStatus();
  }
  /// How many steps one launch may take. Where it is above 1, records are best read a launch late.
  virtual int steps_per_launch() const { return 1; }

  /// Output `index` of the last step (order of Program::outputs). Waits for it. Valid until the next run. Empty where
  /// the step failed: Wait() says why.
  virtual absl::Span<const std::uint8_t> output(std::size_t index) const = 0;

  /// Steps started so far; step numbers count from 0.
  virtual std::uint64_t steps_started() const = 0;
  /// The number of last steps whose outputs can be read.
  virtual std::uint64_t steps_kept() const { return 1; }
  /// Output `index` of step `step`, one of the last steps_kept(). Waits for that step alone, so that reading the step
  /// before the last does not stop the device.
  virtual absl::StatusOr<absl::Span<const std::uint8_t>> OutputOfStep(std::uint64_t step, std::size_t index) const = 0;

  /// Waits for every step that was started. Errors: that of a step that failed.
  virtual absl::Status Wait() { return absl::OkStatus(); }

  /// Runs one step instruction by instruction, waiting for each, and returns how long each took. Results are those of
  /// Run, bit for bit.
  virtual absl::StatusOr<std::vector<InstructionTime>> RunTimed(StepInputs inputs) = 0;

  virtual MemoryUse memory() const = 0;
  /// The number of nodes, kernels and copies, in the graph of one step. 0 where a step is no graph: on the CPU, or with
  /// LoadOptions::graph off.
  virtual std::size_t nodes_per_step() const { return 0; }
  virtual const Program& program() const = 0;
};

inline constexpr int kMostBranches = 8;

/// Options of Device::Load. The CPU has no graphs and ignores `graph`, `steps_per_launch` and `branches`.
struct LoadOptions {
  bool graph = true;         ///< record the step once as a CUDA graph and replay it; false: the same work on a stream
  int steps_per_launch = 1;  ///< 1 to 64
  /// How many calls of a step a graph may run at once, 1 to 8, as far as none touches what another one writes. The
  /// results are the same, bit for bit.
  int branches = 4;
  /// The processes that a Program of several processes runs in. Programs of one process do not use it. A step that
  /// meets its error ends at that instruction and returns it. State that the step has written by then stays written.
  std::shared_ptr<Communicator> communicator = nullptr;
};

/// What a device needs for one instruction.
struct InstructionPlan {
  std::size_t workspace_bytes = 0;
  /// The choice that was made among implementations, as key and value for Program::choices. Empty where there was none.
  std::pair<std::string, std::string> choice;
  /// The times of all candidates, for reports: MeasuredChoice::times. Empty where nothing was measured.
  std::string times = {};
  /// Set where the kernel would pack its weight in every run. An instruction of its own may pack it instead
  /// (packed_weights.h), once for all parts of the kernel. The kernel that then reads the packed weight is planned
  /// again.
  std::optional<WeightPacking> packing = {};
};

/// A device: what the compiler asks of it while it plans, and how a Program becomes runnable on it.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;
  /// "cpu" or "cuda": the backend whose kernels and generated code it runs. A device that a user registers may have
  /// another name.
  virtual std::string_view backend() const { return name(); }
  /// The architecture that code is made for: "sm_90"; empty on the CPU.
  virtual std::string_view arch() const { return ""; }
  /// The low type that it computes in natively: bf16 where it multiplies bf16, else f16.
  virtual DType native_low_type() const { return DType::kBF16; }
  /// The features for Program::required_cpu_features where no code is generated.
  virtual std::vector<std::string> required_cpu_features() const { return {}; }
  /// Plans the workspace and the choice of one instruction. `program` holds the choices so far: a choice that is in it
  /// is kept. Errors: the device has no such kernel.
  virtual absl::StatusOr<InstructionPlan> Plan(const Program& program, const Instruction& instruction,
                                               const PlanOptions& options = {}) const = 0;
  /// Called when every instruction of a Program has been planned. Writes the choices that are kept in a cache. Errors:
  /// `options.choice_cache` cannot be written.
  virtual absl::Status EndPlanning(const PlanOptions& /*options*/) const { return absl::OkStatus(); }
  /// True if the kernel may write `output` over `input`.
  virtual bool MayAlias(std::string_view kernel, std::size_t output, std::size_t input) const = 0;
  /// Creates kernels, allocates the arena, binds state entries by name. Weights that kernels here want packed in
  /// another layout are packed anew. A GPU replaces a choice that it does not offer, and says so. Errors: NOT_FOUND or
  /// INVALID_ARGUMENT for a missing, misshapen or uninitialised entry (all are listed). FAILED_PRECONDITION for a
  /// missing processor feature, another architecture, or a device that can only be compiled for. FAILED_PRECONDITION
  /// also for a choice that this processor does not offer. RESOURCE_EXHAUSTED, with the planned peak and the free
  /// memory, where memory cannot be had.
  virtual absl::StatusOr<std::unique_ptr<Executable>> Load(std::shared_ptr<const Program> program,
                                                           const StateStore& state,
                                                           const LoadOptions& options = {}) const = 0;
};

/// The device called `name`: "cpu" or "cuda". Errors (NOT_FOUND or UNAVAILABLE): what was given, what exists, why it is
/// missing (no CUDA in this build, no device, a driver too old).
absl::StatusOr<const Device*> GetDevice(std::string_view name);

/// The device to compile for. With an empty `arch` it is GetDevice(name), else a device of that architecture ("sm_80",
/// "sm_90"; "cpu" has none). This machine need not have such a device. Errors: as GetDevice, and an unknown
/// architecture.
absl::StatusOr<const Device*> GetTarget(std::string_view name, std::string_view arch);

/// Makes `device` the one that GetDevice gives for its name, for tests and for devices of users. It is never destroyed.
void RegisterDevice(std::unique_ptr<Device> device);

}  // namespace mpc::runtime
