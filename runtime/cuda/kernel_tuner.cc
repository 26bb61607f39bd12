#include "runtime/cuda/kernel_tuner.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/cuda/handles.h"
#include "runtime/cuda/stream_queue.h"

namespace mpc::runtime {
namespace {

constexpr int kRounds = 3;
constexpr double kRoundMicroseconds = 2000;
constexpr int kMostRunsARound = 20;
constexpr std::chrono::seconds kBetweenWrites{5};

/// Operands of one kernel, filled.
struct Operands {
  std::vector<DeviceMemory> memory;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  void* workspace = nullptr;

  /// Zeros.
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

/// Microseconds of `runs` runs.
absl::StatusOr<double> TimeRuns(CudaContext& context, cuda::Kernel& kernel, const Operands& operands, int runs,
                                const OwnedEvent& begin, const OwnedEvent& end) {
  CudaApi& api = context.api();
  StreamQueue queue(api, context.compute_stream());
  absl::Status status = api.RecordEvent(begin.get(), context.compute_stream());
  for (int run = 0; run < runs && status.ok(); ++run) {
    status = kernel.Enqueue({operands.inputs.data(), operands.outputs.data(), operands.workspace}, queue);
  }
  if (status.ok()) status = api.RecordEvent(end.get(), context.compute_stream());
  if (status.ok()) status = api.SynchronizeEvent(end.get());
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
  // The first run loads code, the second says how many make a round.
  absl::StatusOr<double> once = TimeRuns(context, kernel, operands, 1, begin, end);
  if (once.ok()) once = TimeRuns(context, kernel, operands, 1, begin, end);
  if (!once.ok()) return once;
  const int runs =
      static_cast<int>(std::clamp(kRoundMicroseconds / std::max(*once, 1.0), 1.0, double{kMostRunsARound}));
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    const absl::StatusOr<double> time = TimeRuns(context, kernel, operands, runs, begin, end);
    if (!time.ok()) return time;
    best = std::min(best, *time / runs);
  }
  return best;
}

std::string FastestChoice(CudaContext& context, const KernelSpec& spec, absl::Span<const std::string> choices,
                          const KernelFactory& create) {
  std::string fastest;
  double best = std::numeric_limits<double>::infinity();
  for (const std::string& choice : choices) {
    const absl::StatusOr<std::unique_ptr<cuda::Kernel>> kernel = create(choice);
    if (!kernel.ok()) continue;
    const absl::StatusOr<double> time = TimeKernel(context, spec, **kernel);
    if (!time.ok() || *time >= best) continue;
    best = *time;
    fastest = choice;
  }
  return fastest;
}

absl::StatusOr<std::string> KernelTuner::Choose(const KernelSpec& spec, const cuda::KernelContext& kernels,
                                                const PlanOptions& options) {
  const absl::StatusOr<std::vector<std::string>> candidates = cuda::CandidateChoices(spec, kernels);
  if (!candidates.ok()) return candidates.status();
  if (candidates->size() < 2) return "";
  const std::string key = absl::StrCat(cuda::ChoiceKey(spec), " on ", device_, kernels.allow_tf32 ? ", TF32" : "",
                                       ", workspaces up to ", kernels.workspace_cap);
  const std::lock_guard<std::mutex> lock(mutex_);
  ChoiceCache& cache = CacheOf(options);
  // A choice that the libraries no longer offer is no choice.
  std::string choice = cache.Find(key);
  if (std::find(candidates->begin(), candidates->end(), choice) != candidates->end()) return choice;
  if (!options.tune) return "";
  {
    const std::lock_guard<std::mutex> device_lock(context_->mutex());
    choice = FastestChoice(*context_, spec, *candidates, [&](const std::string& candidate) {
      cuda::KernelContext chosen = kernels;
      chosen.choice = candidate;
      return cuda::CreateKernel(spec, chosen);
    });
  }
  if (choice.empty()) return "";
  cache.Set(key, choice);
  if (absl::Status status = cache.WriteEvery(kBetweenWrites); !status.ok()) return status;
  return choice;
}

absl::Status KernelTuner::WriteCache(const PlanOptions& options) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return CacheOf(options).Write();
}

}  // namespace mpc::runtime
