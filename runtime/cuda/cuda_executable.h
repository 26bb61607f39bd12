// A Program on a GPU. Load allocates everything and records the step as CUDA graphs. From then on a launch writes the
// inputs, starts their upload and the graph, and returns. The host is at most two launches ahead.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/cuda/cuda_context.h"
#include "runtime/cuda/device_state.h"
#include "runtime/cuda/device_step.h"
#include "runtime/cuda/handles.h"
#include "runtime/cuda/input_staging.h"
#include "runtime/cuda/output_ring.h"
#include "runtime/cuda/program_memory.h"
#include "runtime/cuda/step_branches.h"
#include "runtime/cuda/stream_queue.h"
#include "runtime/executable.h"
#include "runtime/observable_step.h"

namespace mpc::runtime {

class CudaExecutable : public Executable, public ObservableStep {
 public:
  /// `program` has passed CheckProgram; `entries` are those of Program::state, in order. Kernels come from `shared`,
  /// and new ones go there. A Program of several processes has a `group`. Errors: those of kernels, RESOURCE_EXHAUSTED,
  /// CUDA's, the group's.
  static absl::StatusOr<std::unique_ptr<Executable>> Create(std::shared_ptr<CudaContext> context,
                                                            std::shared_ptr<const Program> program,
                                                            const StateEntries& entries,
                                                            const cuda::KernelContext& kernels, SharedKernels& shared,
                                                            const LoadOptions& options,
                                                            std::shared_ptr<NcclGroup> group = nullptr);
  ~CudaExecutable() override;

  absl::Status Run(StepInputs inputs) override;
  absl::Status RunSteps(absl::Span<const StepInputs> steps) override;
  int steps_per_launch() const override { return static_cast<int>(steps_per_launch_); }
  absl::Span<const std::uint8_t> output(std::size_t index) const override;
  std::uint64_t steps_started() const override { return steps_; }
  std::uint64_t steps_kept() const override { return kLaunchesInFlight * steps_per_launch_; }
  absl::StatusOr<absl::Span<const std::uint8_t>> OutputOfStep(std::uint64_t step, std::size_t index) const override;
  absl::Status Wait() override;
  absl::StatusOr<std::vector<InstructionTime>> RunTimed(StepInputs inputs) override;
  /// Waits for each kernel and copies its results to the host, one at a time. That takes twice the bytes of the largest
  /// one there. `observe` makes no calls of the device, reading state included. Errors: also of a kernel that fails,
  /// which is named.
  absl::Status RunObserved(StepInputs inputs, const ResultObserver& observe) override;
  MemoryUse memory() const override;
  std::size_t nodes_per_step() const override { return nodes_per_step_; }
  /// The Program with the choices in force: those that it left open, or that this device refused, are filled in.
  const Program& program() const override { return *program_; }

 private:
  /// The resources of one launch under way. They are used in turn.
  struct LaunchResources {
    OwnedEvent done;
    OwnedGraphExec one_step, all_steps;  ///< empty where the graph is off
    std::uint64_t first_step = 0;
    std::size_t steps = 0;         ///< steps of the last launch; 0 before the first
    mutable bool finished = true;  ///< the last launch is known to be done
  };

  CudaExecutable(std::shared_ptr<CudaContext> context, std::shared_ptr<const Program> program,
                 const StateEntries& entries, const LoadOptions& options, std::shared_ptr<NcclGroup> group);

  absl::Status Allocate(const StateEntries& entries, StepKernels& kernels);
  absl::Status CreateEvents();
  /// Records the work of `steps` steps with the buffers of index `buffer`. Returns the number of nodes.
  absl::StatusOr<std::size_t> Record(std::size_t buffer, std::size_t steps, OwnedGraphExec& recorded);
  absl::Status RecordGraphs();

  absl::Status Launch(absl::Span<const StepInputs> steps);
  /// Does what comes before the device's work of a launch: waits until the buffers are free, and uploads inputs and
  /// state.
  absl::Status Prepare(LaunchResources& launch, absl::Span<const StepInputs> steps);
  /// Enqueues the instructions of `steps` steps, with the copies around them.
  absl::Status EnqueueSteps(std::size_t buffer, std::size_t steps, CudaApi::Stream stream) const;
  absl::Status EnqueueEnd(std::size_t buffer, std::size_t step, CudaApi::Stream stream) const;
  /// Does what comes after the device's work of a launch.
  absl::Status Finish(LaunchResources& launch, std::size_t steps);
  /// Runs one step on the stream, without its graph. `run_calls` enqueues the calls.
  absl::Status RunCallByCall(StepInputs inputs, const std::function<absl::Status(StreamQueue&)>& run_calls);
  /// Runs each call alone and adds how long it took to `times`.
  absl::Status TimeCalls(StreamQueue& queue, std::vector<InstructionTime>& times);
  absl::StatusOr<double> TimeSinceStart(CudaApi::Event event);
  /// A result on the host. Its memory serves one result after another.
  struct HostResult {
    std::vector<std::uint8_t> computed;
    std::vector<std::uint8_t> shown;  ///< the observer may change it
  };
  /// Shows the results of `call`, the last one that was enqueued.
  absl::Status Observe(const DeviceStep::Call& call, const ResultObserver& observe, HostResult& host);
  /// Shows `bytes` bytes at `device` as `seen` says, and brings what the observer changes there back.
  absl::Status ShowResult(void* device, std::size_t bytes, ObservedResult seen, const ResultObserver& observe,
                          HostResult& host);
  /// Waits for all work of the stream, by way of `event`.
  absl::Status WaitForStream(CudaApi::Event event);

  /// The error of the group, after which no step can end.
  absl::Status group_status() const { return group_ == nullptr ? absl::OkStatus() : group_->status(); }

  /// Waits until the device has passed `event`, as the group waits where there is one.
  absl::Status WaitForEvent(CudaApi::Event event) const;

  std::size_t IndexOf(const LaunchResources& launch) const {
    return static_cast<std::size_t>(&launch - launch_resources_.data());
  }
  /// Waits until the last launch with these resources is done.
  absl::Status WaitFor(const LaunchResources& launch) const;
  /// Saves the outputs that Prepare would overwrite although they are among the last steps_kept().
  absl::Status SaveOutputs(const LaunchResources& launch, std::size_t new_steps);
  /// Makes every later call fail with `status`, which is extended by the steps that failed.
  absl::Status Fail(const absl::Status& status, std::uint64_t first_step, std::size_t steps) const;

  std::shared_ptr<CudaContext> context_;
  CudaApi& api_;
  std::shared_ptr<const Program> program_;
  std::size_t steps_per_launch_;
  bool graph_;
  std::size_t most_branches_;
  std::shared_ptr<NcclGroup> group_;  ///< null where this process trains alone
  ProgramMemory memory_;
  std::unique_ptr<DeviceStep> step_;
  StepBranches branches_;
  mutable DeviceState state_;
  InputStaging inputs_;
  OutputRing outputs_;
  std::array<LaunchResources, kLaunchesInFlight> launch_resources_;
  OwnedEvent timed_start_, timed_begin_, timed_end_;
  std::size_t nodes_per_step_ = 0;
  std::size_t launches_ = 0;
  std::uint64_t steps_ = 0;
  mutable absl::Status failure_;
};

}  // namespace mpc::runtime
