// Kernels that a device makes once for all instructions and Programs, since building a library's plan can take a
// second.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/kernel.h"

namespace mpc::runtime {

/// Makes one kernel, as cuda::CreateKernel does. Called from several threads, each with library handles of its own.
using KernelFactory = std::function<absl::StatusOr<std::unique_ptr<cuda::Kernel>>(const KernelSpec& spec,
                                                                                  const cuda::KernelContext& context)>;

/// The choices that tuning measures, as cuda::CandidateChoices gives them.
using KernelCandidates =
    std::function<absl::StatusOr<std::vector<std::string>>(const KernelSpec& spec, const cuda::KernelContext& context)>;

/// Thread-safe. Kernels themselves are not: the device's steps use them one after another.
class SharedKernels {
 public:
  explicit SharedKernels(KernelFactory make) : make_(std::move(make)) {}

  /// The kernel of `spec` with the choice in `context`: one that was made before, or a new one. A kernel that
  /// heuristics chose is also found under the name of its choice. Errors: the factory's. A kernel that failed is not
  /// remembered.
  absl::StatusOr<std::shared_ptr<cuda::Kernel>> Get(const KernelSpec& spec, const cuda::KernelContext& context);

  /// True if Get would give the kernel with this SharedKernelKey without making it.
  bool Has(const std::string& key);

  /// Makes a new kernel that is not kept. Tuning makes many and calls Keep for one.
  absl::StatusOr<std::shared_ptr<cuda::Kernel>> Make(const KernelSpec& spec, const cuda::KernelContext& context) const;
  void Keep(const KernelSpec& spec, const cuda::KernelContext& context, const std::shared_ptr<cuda::Kernel>& kernel);

  /// Writes "warning: TEXT" to std::cerr, each text once.
  void WarnOnce(const std::string& text);

 private:
  KernelFactory make_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<cuda::Kernel>> kernels_;
  std::set<std::string> said_;
};

/// The name of a kernel among all that one device can make. Two names are equal only where everything that the factory
/// reads, except the library handles, is equal byte for byte. cuda::ChoiceKey shortens numbers and leaves out which
/// results are used.
std::string SharedKernelKey(const KernelSpec& spec, const cuda::KernelContext& context);

}  // namespace mpc::runtime
