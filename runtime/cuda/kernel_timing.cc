#include "runtime/cuda/kernel_timing.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/cuda/handles.h"
#include "runtime/cuda/stream_queue.h"
#include "runtime/kernel_tuner.h"

namespace mpc::runtime {
namespace {

/// The memory of one kernel's operands, filled with values.
struct Operands {
  std::vector<DeviceMemory> memory;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  void* workspace = nullptr;

  /// Adds memory that is filled with zeros.
  absl::StatusOr<void*> Add(CudaContext& context, std::size_t bytes) {
    CudaApi& api = context.api();
    if (absl::Status status = Allocate(api, bytes, memory.emplace_back()); !status.ok()) return status;
    if (bytes > 0) {
      if (absl::Status status = api.Fill(memory.back().get(), 0, bytes, context.compute_stream()); !status.ok()) {
        return status;
      }
    }
    return memory.back().get();
  }
};

/// Fills `address` with uniform numbers in [-1, 1), other ones for each `stream`.
absl::Status FillWithRandomNumbers(CudaContext& context, const TensorSpec& spec, std::int64_t stream, const void* seed,
                                   void* address) {
  const KernelSpec random{"random",
                          {{DType::kI64, {}}},
                          {spec},
                          {},
                          {{"distribution", "uniform"}, {"a", -1.0}, {"b", 1.0}, {"stream", stream}}};
  absl::StatusOr<std::unique_ptr<cuda::Kernel>> kernel = cuda::CreateKernel(random, {.use_libraries = false});
  if (!kernel.ok()) return kernel.status();
  StreamQueue queue(context.api(), context.compute_stream());
  return (*kernel)->Enqueue({&seed, &address, nullptr}, queue);
}

absl::Status MakeOperands(CudaContext& context, const KernelSpec& spec, std::size_t workspace_bytes,
                          Operands& operands) {
  const absl::StatusOr<void*> seed = operands.Add(context, sizeof(std::int64_t));
  if (!seed.ok()) return seed.status();
  for (const TensorSpec& input : spec.inputs) {
    absl::StatusOr<void*> address = operands.Add(context, input.bytes());
    absl::Status status = address.status();
    if (status.ok() && IsFloating(input.dtype) && input.bytes() > 0) {
      const auto stream = static_cast<std::int64_t>(operands.inputs.size());
      status = FillWithRandomNumbers(context, input, stream, *seed, *address);
    }
    if (!status.ok()) return status;
    operands.inputs.push_back(*address);
  }
  for (std::size_t i = 0; i < spec.outputs.size(); ++i) {
    operands.outputs.push_back(nullptr);
    if (!spec.uses(i)) continue;
    absl::StatusOr<void*> address = operands.Add(context, spec.outputs[i].bytes());
    if (!address.ok()) return address.status();
    operands.outputs.back() = *address;
  }
  absl::StatusOr<void*> workspace = operands.Add(context, workspace_bytes);
  if (workspace.ok()) operands.workspace = *workspace;
  return workspace.status();
}

/// The time of `runs` runs in microseconds.
absl::StatusOr<double> TimeRuns(CudaContext& context, cuda::Kernel& kernel, const Operands& operands, int runs,
                                const OwnedEvent& begin, const OwnedEvent& end) {
  CudaApi& api = context.api();
  StreamQueue queue(api, context.compute_stream());
  absl::Status status = api.RecordEvent(begin.get(), context.compute_stream());
  for (int run = 0; run < runs && status.ok(); ++run) {
    status = kernel.Enqueue({operands.inputs.data(), operands.outputs.data(), operands.workspace}, queue);
  }
  if (status.ok()) status = api.RecordEvent(end.get(), context.compute_stream());
  if (status.ok()) status = context.WaitFor(end.get());
  if (!status.ok()) return status;
  const absl::StatusOr<double> milliseconds = api.ElapsedMilliseconds(begin.get(), end.get());
  if (!milliseconds.ok()) return milliseconds.status();
  return *milliseconds * 1000;
}

}  // namespace

absl::StatusOr<double> TimeKernel(CudaContext& context, const KernelSpec& spec, cuda::Kernel& kernel) {
  CudaApi& api = context.api();
  Operands operands;
  OwnedEvent begin, end;
  absl::Status status = MakeOperands(context, spec, kernel.workspace_bytes(), operands);
  if (status.ok()) status = Keep(api, api.CreateEvent(true), begin);
  if (status.ok()) status = Keep(api, api.CreateEvent(true), end);
  if (!status.ok()) return status;
  return TimeOfOneRun([&](int runs) { return TimeRuns(context, kernel, operands, runs, begin, end); });
}

}  // namespace mpc::runtime
