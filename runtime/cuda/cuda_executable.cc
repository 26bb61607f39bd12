#include "runtime/cuda/cuda_executable.h"

#include <cassert>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/cuda/stream_queue.h"
#include "runtime/program_binding.h"

namespace mpc::runtime {

CudaExecutable::CudaExecutable(std::shared_ptr<CudaContext> context, std::shared_ptr<const Program> program,
                               const StateEntries& entries, const LoadOptions& options,
                               std::shared_ptr<NcclGroup> group)
    : context_(std::move(context)),
      api_(context_->api()),
      program_(std::move(program)),
      steps_per_launch_(static_cast<std::size_t>(options.steps_per_launch)),
      graph_(options.graph),
      most_branches_(options.graph ? static_cast<std::size_t>(options.branches) : 1),
      group_(std::move(group)),
      state_(*program_, entries) {}

absl::StatusOr<std::unique_ptr<Executable>> CudaExecutable::Create(std::shared_ptr<CudaContext> context,
                                                                   std::shared_ptr<const Program> program,
                                                                   const StateEntries& entries,
                                                                   const cuda::KernelContext& kernels,
                                                                   SharedKernels& shared, const LoadOptions& options,
                                                                   std::shared_ptr<NcclGroup> group) {
  const std::lock_guard<std::mutex> lock(context->mutex());
  if (absl::Status status = context->PrepareToAllocate(); !status.ok()) return status;
  StepKernels step_kernels(*program, kernels, shared, group);
  step_kernels.MakeAll(context->api(), context->HandlesForThreads(step_kernels.LongToMake()));
  step_kernels.Warn();
  std::unique_ptr<CudaExecutable> executable(
      new CudaExecutable(std::move(context), step_kernels.WithChoices(program), entries, options, std::move(group)));
  if (absl::Status status = executable->Allocate(entries, step_kernels); !status.ok()) return status;
  if (absl::Status status = executable->CreateEvents(); !status.ok()) return status;
  if (options.graph) {
    if (absl::Status status = executable->RecordGraphs(); !status.ok()) return status;
  }
  return executable;
}

CudaExecutable::~CudaExecutable() {
  // Steps under way use what is given back now.
  context_->Synchronize().IgnoreError();
  api_.SynchronizeStream(context_->upload_stream()).IgnoreError();
}

absl::Status CudaExecutable::Allocate(const StateEntries& entries, StepKernels& kernels) {
  const Program& program = *program_;
  const std::size_t staging_bytes = InputStaging::DeviceBytes(program, steps_per_launch_);
  absl::StatusOr<ProgramMemory> memory = ProgramMemory::Create(context_, program, entries, staging_bytes);
  if (!memory.ok()) return memory.status();
  memory_ = *std::move(memory);
  absl::StatusOr<std::unique_ptr<DeviceStep>> step = DeviceStep::Create(api_, program, memory_.addresses(), kernels);
  absl::Status status = step.status();
  if (step.ok()) {
    step_ = *std::move(step);
    absl::StatusOr<StepBranches> branches = StepBranches::Create(api_, *step_, most_branches_);
    if (!branches.ok()) return branches.status();
    branches_ = *std::move(branches);
    status = inputs_.Create(api_, program, memory_.addresses(), steps_per_launch_);
    if (status.ok()) status = outputs_.Create(api_, program, memory_.addresses(), steps_per_launch_);
  }
  if (!absl::IsResourceExhausted(status) || IsHostMemoryExhausted(status)) return status;
  return MemoryExhausted(*context_, program, staging_bytes, std::string(status.message()));
}

absl::Status CudaExecutable::CreateEvents() {
  for (LaunchResources& launch : launch_resources_) {
    if (absl::Status status = Keep(api_, api_.CreateEvent(false), launch.done); !status.ok()) return status;
  }
  for (OwnedEvent* event : {&timed_start_, &timed_begin_, &timed_end_}) {
    if (absl::Status status = Keep(api_, api_.CreateEvent(true), *event); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CudaExecutable::RecordGraphs() {
  for (LaunchResources& launch : launch_resources_) {
    const absl::StatusOr<std::size_t> nodes = Record(IndexOf(launch), 1, launch.one_step);
    if (!nodes.ok()) return nodes.status();
    nodes_per_step_ = *nodes;
    if (steps_per_launch_ == 1) continue;
    if (absl::Status status = Record(IndexOf(launch), steps_per_launch_, launch.all_steps).status(); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::size_t> CudaExecutable::Record(std::size_t buffer, std::size_t steps, OwnedGraphExec& recorded) {
  const CudaApi::Stream stream = context_->capture_stream();
  if (absl::Status status = api_.BeginCapture(stream); !status.ok()) return status;
  const absl::Status enqueued = EnqueueSteps(buffer, steps, stream);
  // The capture is ended after an error too, since the stream must leave it.
  const absl::StatusOr<CudaApi::Graph> captured = api_.EndCapture(stream);
  OwnedGraph graph;
  if (captured.ok()) graph = OwnedGraph(api_, *captured);
  if (!enqueued.ok()) return enqueued;
  if (!captured.ok()) return WithPlace(absl::StrCat(program_->name, ", recording its graph"), captured.status());
  absl::StatusOr<std::size_t> nodes = api_.NodeCount(graph.get());
  if (!nodes.ok()) return WithPlace(absl::StrCat(program_->name, ", counting the nodes of its graph"), nodes.status());
  const absl::Status status = Keep(api_, api_.Instantiate(graph.get()), recorded);
  if (!status.ok()) return WithPlace(absl::StrCat(program_->name, ", instantiating its graph"), status);
  return nodes;
}

absl::Status CudaExecutable::EnqueueEnd(std::size_t buffer, std::size_t step, CudaApi::Stream stream) const {
  StreamQueue queue(api_, stream);
  if (absl::Status status = step_->EnqueueStateCopies(queue); !status.ok()) return status;
  const absl::Status status = outputs_.Enqueue(api_, buffer, step, stream);
  return status.ok() ? status : WithPlace(absl::StrCat(program_->name, ", copies of outputs"), status);
}

absl::Status CudaExecutable::EnqueueSteps(std::size_t buffer, std::size_t steps, CudaApi::Stream stream) const {
  assert(buffer < launch_resources_.size() && steps <= steps_per_launch_);
  StreamQueue queue(api_, stream);
  for (std::size_t step = 0; step < steps; ++step) {
    if (step > 0) {
      if (absl::Status status = state_.EnqueueRefreshesBetweenSteps(*step_, queue); !status.ok()) return status;
    }
    if (absl::Status status = inputs_.Enqueue(buffer, step, queue); !status.ok()) {
      return WithPlace(absl::StrCat(program_->name, ", copies of inputs"), status);
    }
    if (absl::Status status = branches_.Enqueue(*step_, queue); !status.ok()) return status;
    if (absl::Status status = EnqueueEnd(buffer, step, stream); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CudaExecutable::Prepare(LaunchResources& launch, absl::Span<const StepInputs> steps) {
  const std::size_t index = IndexOf(launch);
  if (absl::Status status = SaveOutputs(launch, steps.size()); !status.ok()) return status;
  if (!launch.finished && !inputs_.empty()) {
    // The host is two launches ahead: the pinned memory may still be read.
    const absl::StatusOr<bool> uploaded = api_.EventDone(inputs_.uploaded(index));
    if (!uploaded.ok()) return uploaded.status();
    if (!*uploaded) {
      if (absl::Status status = WaitForEvent(inputs_.uploaded(index)); !status.ok()) return status;
    }
  }
  for (std::size_t step = 0; step < steps.size(); ++step) inputs_.Write(index, step, steps[step]);
  StreamQueue queue(api_, context_->compute_stream());
  if (absl::Status status = state_.BringUpToDate(*step_, queue); !status.ok()) return status;
  return inputs_.Upload(*context_, index, steps.size(), launch.steps == 0 ? nullptr : launch.done.get());
}

absl::Status CudaExecutable::Finish(LaunchResources& launch, std::size_t steps) {
  if (absl::Status status = api_.RecordEvent(launch.done.get(), context_->compute_stream()); !status.ok())
    return status;
  launch.first_step = steps_;
  launch.steps = steps;
  launch.finished = false;
  state_.MarkStepsStarted(steps);
  steps_ += steps;
  ++launches_;
  return absl::OkStatus();
}

absl::Status CudaExecutable::Launch(absl::Span<const StepInputs> steps) {
  assert(!steps.empty() && steps.size() <= steps_per_launch_ && "RunSteps refuses more steps");
  assert((!graph_ || steps.size() == 1 || steps.size() == steps_per_launch_) && "a graph holds one step or all");
  if (!failure_.ok()) return failure_;
  if (!group_status().ok()) return Fail(group_status(), steps_, steps.size());
  for (const StepInputs& inputs : steps) {
    if (absl::Status status = CheckInputs(*program_, inputs); !status.ok()) return status;
  }
  const std::lock_guard<std::mutex> lock(context_->mutex());
  if (absl::Status status = api_.UseDevice(); !status.ok()) return Fail(status, steps_, steps.size());
  LaunchResources& launch = launch_resources_[launches_ % kLaunchesInFlight];
  if (absl::Status status = Prepare(launch, steps); !status.ok()) return Fail(status, steps_, steps.size());
  const OwnedGraphExec& graph = steps.size() == 1 ? launch.one_step : launch.all_steps;
  absl::Status status = graph_ ? api_.LaunchGraph(graph.get(), context_->compute_stream())
                               : EnqueueSteps(IndexOf(launch), steps.size(), context_->compute_stream());
  if (status.ok()) status = Finish(launch, steps.size());
  return status.ok() ? status : Fail(status, steps_, steps.size());
}

absl::Status CudaExecutable::Run(StepInputs inputs) { return Launch(absl::MakeConstSpan(&inputs, 1)); }

absl::Status CudaExecutable::RunSteps(absl::Span<const StepInputs> steps) {
  if (steps.size() > steps_per_launch_) {
    return absl::InvalidArgumentError(absl::StrCat("program \"", program_->name, "\" was loaded for at most ",
                                                   steps_per_launch_, " steps a launch, got ", steps.size()));
  }
  if (steps.empty()) return absl::OkStatus();
  if (!graph_ || steps.size() == steps_per_launch_) return Launch(steps);
  for (const StepInputs& inputs : steps) {
    if (absl::Status status = Run(inputs); !status.ok()) return status;
  }
  return absl::OkStatus();
}

MemoryUse CudaExecutable::memory() const {
  return {program_->arena_bytes, program_->state_bytes(),
          program_->constant_bytes() + InputStaging::DeviceBytes(*program_, steps_per_launch_) + step_->extra_bytes()};
}

}  // namespace mpc::runtime
