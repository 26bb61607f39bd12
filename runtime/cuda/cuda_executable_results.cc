// Reading results back from a CudaExecutable: outputs, errors, times.
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/cuda/cuda_executable.h"
#include "runtime/cuda/stream_queue.h"
#include "runtime/program_binding.h"

namespace mpc::runtime {

absl::Status CudaExecutable::Fail(const absl::Status& status, std::uint64_t first_step, std::size_t steps) const {
  if (!failure_.ok()) return failure_;
  // The others wait for what this step does not send.
  if (group_ != nullptr) group_->Fail(status);
  const std::string where = steps == 1 ? absl::StrCat("step ", first_step)
                                       : absl::StrCat("steps ", first_step, " to ", first_step + steps - 1);
  failure_ = absl::Status(status.code(), absl::StrCat("program \"", program_->name, "\", ", where,
                                                      " or work started before: ", status.message()));
  state_.MarkBroken(failure_);
  return failure_;
}

absl::Status CudaExecutable::WaitForEvent(CudaApi::Event event) const {
  if (group_ == nullptr) return context_->WaitFor(event);
  return group_->WaitUntil([&] { return api_.EventDone(event); });
}

absl::Status CudaExecutable::WaitFor(const LaunchResources& launch) const {
  if (!failure_.ok()) return failure_;
  if (launch.finished) return absl::OkStatus();
  absl::Status status = api_.UseDevice();
  if (status.ok()) {
    const absl::StatusOr<bool> done = api_.EventDone(launch.done.get());
    status = done.status();
    if (done.ok() && !*done) status = WaitForEvent(launch.done.get());
  }
  launch.finished = true;
  // Another wait may have met the group's error.
  if (status.ok()) status = group_status();
  if (status.ok()) return status;
  if (!group_status().ok()) return Fail(status, launch.first_step, launch.steps);
  const char* const how_to_find_it =
      graph_
          ? "the step ran as one graph, so that the instruction is not known: run it with the graph off "
            "(LoadOptions::graph = false, --graph=off) and CUDA_LAUNCH_BLOCKING=1 in the environment"
          : "it failed after it was started, so that the instruction is not known: set CUDA_LAUNCH_BLOCKING=1 in the "
            "environment";
  return Fail(absl::Status(status.code(), absl::StrCat(status.message(), "; ", how_to_find_it)), launch.first_step,
              launch.steps);
}

absl::Status CudaExecutable::Wait() {
  for (std::size_t i = 0; i < kLaunchesInFlight; ++i) {
    // The older launch is asked first, since it is the one to blame.
    if (absl::Status status = WaitFor(launch_resources_[(launches_ + i) % kLaunchesInFlight]); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::Status CudaExecutable::SaveOutputs(const LaunchResources& launch, std::size_t new_steps) {
  if (launch.steps == 0) return absl::OkStatus();
  const std::uint64_t steps_then = steps_ + new_steps;
  const std::uint64_t oldest_kept = steps_then < steps_kept() ? 0 : steps_then - steps_kept();
  if (launch.first_step + launch.steps <= oldest_kept) return absl::OkStatus();
  if (absl::Status status = WaitFor(launch); !status.ok()) return status;
  for (std::size_t step = 0; step < launch.steps; ++step) {
    outputs_.Save(IndexOf(launch), step, launch.first_step + step);
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<const std::uint8_t>> CudaExecutable::OutputOfStep(std::uint64_t step,
                                                                            std::size_t index) const {
  if (step >= steps_ || step + steps_kept() < steps_ || index >= program_->outputs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("program \"", program_->name, "\" keeps the ", program_->outputs.size(), " outputs of its last ",
                     steps_kept(), " steps; asked for output ", index, " of step ", step, " of ", steps_));
  }
  for (const LaunchResources& launch : launch_resources_) {
    if (step < launch.first_step || step >= launch.first_step + launch.steps) continue;
    if (absl::Status status = WaitFor(launch); !status.ok()) return status;
    return outputs_.Get(IndexOf(launch), step - launch.first_step, index);
  }
  return outputs_.Saved(step, index);
}

absl::Span<const std::uint8_t> CudaExecutable::output(std::size_t index) const {
  if (steps_ == 0 || index >= program_->outputs.size()) return {};
  const absl::StatusOr<absl::Span<const std::uint8_t>> last = OutputOfStep(steps_ - 1, index);
  return last.ok() ? *last : absl::Span<const std::uint8_t>();
}

absl::Status CudaExecutable::WaitForStream(CudaApi::Event event) {
  const absl::Status status = api_.RecordEvent(event, context_->compute_stream());
  return status.ok() ? WaitForEvent(event) : status;
}

absl::Status CudaExecutable::RunCallByCall(StepInputs inputs,
                                           const std::function<absl::Status(StreamQueue&)>& run_calls) {
  if (!failure_.ok()) return failure_;
  if (absl::Status status = CheckInputs(*program_, inputs); !status.ok()) return status;
  if (absl::Status status = Wait(); !status.ok()) return status;
  const std::lock_guard<std::mutex> lock(context_->mutex());
  LaunchResources& launch = launch_resources_[launches_ % kLaunchesInFlight];
  const CudaApi::Stream stream = context_->compute_stream();
  StreamQueue queue(api_, stream);
  absl::Status status = api_.UseDevice();
  if (status.ok()) status = Prepare(launch, absl::MakeConstSpan(&inputs, 1));
  if (status.ok()) status = api_.RecordEvent(timed_start_.get(), stream);
  if (status.ok()) status = inputs_.Enqueue(IndexOf(launch), 0, queue);
  if (status.ok()) status = run_calls(queue);
  if (status.ok()) status = EnqueueEnd(IndexOf(launch), 0, stream);
  if (status.ok()) status = Finish(launch, 1);
  return status.ok() ? status : Fail(status, steps_, 1);
}

absl::StatusOr<double> CudaExecutable::TimeSinceStart(CudaApi::Event event) {
  if (absl::Status status = WaitForStream(event); !status.ok()) return status;
  const absl::StatusOr<double> milliseconds = api_.ElapsedMilliseconds(timed_start_.get(), event);
  if (!milliseconds.ok()) return milliseconds.status();
  return *milliseconds * 1000;
}

absl::Status CudaExecutable::TimeCalls(StreamQueue& queue, std::vector<InstructionTime>& times) {
  for (const DeviceStep::Call& call : step_->calls()) {
    const absl::StatusOr<double> begin = TimeSinceStart(timed_begin_.get());
    if (!begin.ok()) return begin.status();
    if (absl::Status status = step_->Enqueue(call, queue); !status.ok()) return status;
    const absl::StatusOr<double> end = TimeSinceStart(timed_end_.get());
    // The device was idle before, so that this call is to blame.
    if (!end.ok()) return WithPlace(DescribeInstruction(*program_, call.instruction), end.status());
    times.push_back({call.instruction, *begin, *end - *begin});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<InstructionTime>> CudaExecutable::RunTimed(StepInputs inputs) {
  std::vector<InstructionTime> times;
  const absl::Status status = RunCallByCall(inputs, [&](StreamQueue& queue) { return TimeCalls(queue, times); });
  if (!status.ok()) return status;
  return times;
}

absl::Status CudaExecutable::ShowResult(void* device, std::size_t bytes, ObservedResult seen,
                                        const ResultObserver& observe, HostResult& host) {
  host.shown.resize(bytes);
  const CudaApi::Stream stream = context_->compute_stream();
  if (bytes > 0) {
    absl::Status status = api_.Copy(host.shown.data(), device, bytes, CudaCopy::kDeviceToHost, stream);
    if (status.ok()) status = WaitForStream(timed_end_.get());
    if (!status.ok()) return status;
  }
  host.computed = host.shown;
  seen.bytes = absl::MakeSpan(host.shown);
  observe(seen);
  if (host.shown == host.computed) return absl::OkStatus();
  const absl::Status status = api_.Copy(device, host.shown.data(), bytes, CudaCopy::kHostToDevice, stream);
  // The copy reads the host's memory until then.
  return status.ok() ? WaitForStream(timed_end_.get()) : status;
}

absl::Status CudaExecutable::Observe(const DeviceStep::Call& call, const ResultObserver& observe, HostResult& host) {
  // The device was idle before, so that this call is to blame.
  if (absl::Status status = WaitForStream(timed_end_.get()); !status.ok()) {
    return WithPlace(step_->Describe(call), status);
  }
  for (std::size_t i = call.instruction; i < call.instruction + call.instructions; ++i) {
    const std::vector<ValueId>& outputs = program_->sequences[call.sequence].instructions[i].outputs;
    for (std::size_t result = 0; result < outputs.size(); ++result) {
      if (outputs[result] == kNoValue) continue;
      const Value& value = program_->values[outputs[result]];
      const absl::Status status = ShowResult(step_->addresses().AddressOf(value), value.spec.bytes(),
                                             {call.sequence, i, result, {}}, observe, host);
      if (!status.ok()) {
        return WithPlace(absl::StrCat(step_->Describe(call), ", copying its result ", result), status);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CudaExecutable::RunObserved(StepInputs inputs, const ResultObserver& observe) {
  HostResult host;
  const auto show = [&](const DeviceStep::Call& call) { return Observe(call, observe, host); };
  const absl::Status status = RunCallByCall(inputs, [&](StreamQueue& queue) -> absl::Status {
    // What uploads state and inputs is no fault of the first kernel.
    if (absl::Status idle = WaitForStream(timed_begin_.get()); !idle.ok()) return idle;
    for (const DeviceStep::Call& call : step_->calls()) {
      if (absl::Status enqueued = step_->Enqueue(call, queue, show); !enqueued.ok()) return enqueued;
    }
    return absl::OkStatus();
  });
  return status.ok() ? Wait() : status;
}

}  // namespace mpc::runtime
