// Chooses among implementations and algorithms by running each of them once for its shape.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/cuda/kernel.h"
#include "runtime/cuda/choice_cache.h"
#include "runtime/cuda/cuda_context.h"
#include "runtime/plan_options.h"

namespace mpc::runtime {

/// The time of one run of `kernel` in microseconds, on operands of the device's own: random numbers in [-1, 1), whose
/// products draw the power, and so leave the clock, that those of a training do; integers and flags are 0, which is in
/// every range. Errors: the kernel's, no memory.
absl::StatusOr<double> TimeKernel(CudaContext& context, const KernelSpec& spec, cuda::Kernel& kernel);

/// The fastest of `choices`, each made by `create`. What cannot be created or run is left out; empty where nothing
/// could.
using KernelFactory = std::function<absl::StatusOr<std::unique_ptr<cuda::Kernel>>(const std::string& choice)>;
std::string FastestChoice(CudaContext& context, const KernelSpec& spec, absl::Span<const std::string> choices,
                          const KernelFactory& create);

/// The choices of one device: those of the cache, and those that tuning measures.
class KernelTuner {
 public:
  /// `device` names what measurements depend on: the GPU and the versions of the libraries.
  KernelTuner(std::shared_ptr<CudaContext> context, std::string device)
      : context_(std::move(context)), device_(std::move(device)) {}

  /// What the cache has for `spec`, else what `options.tune` measures now; empty: leave it to the heuristics. What was
  /// measured is written now and then, so that little is lost where a long planning ends early. Errors: the cache
  /// cannot be written; asking for the candidates.
  absl::StatusOr<std::string> Choose(const KernelSpec& spec, const cuda::KernelContext& kernels,
                                     const PlanOptions& options);
  /// Writes what was measured for the cache of `options` and not written yet.
  absl::Status WriteCache(const PlanOptions& options);

 private:
  ChoiceCache& CacheOf(const PlanOptions& options) {
    return caches_.try_emplace(options.choice_cache, options.choice_cache).first->second;
  }

  std::shared_ptr<CudaContext> context_;
  std::string device_;
  std::mutex mutex_;
  std::map<std::string, ChoiceCache> caches_;  ///< by path
};

}  // namespace mpc::runtime
