// The kernels of one Program on one device: each is made once, several at a time, and what was chosen is told.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/cuda/kernel.h"
#include "runtime/cuda/cuda_api.h"
#include "runtime/cuda/shared_kernels.h"
#include "runtime/program.h"

namespace mpc::runtime {

/// A choice of the Program that the device refuses is replaced, in this order: by what the libraries' heuristics offer
/// on the device, then by the project's own kernel.
class StepKernels {
 public:
  /// Makes nothing yet. `program` and `shared` outlive the object. `context` has no choice.
  StepKernels(const Program& program, const cuda::KernelContext& context, SharedKernels& shared)
      : program_(program), context_(context), shared_(shared) {}

  /// Makes the kernels of all instructions that have one of their own, on a thread for each of `handles`; each thread
  /// uses its handles alone. Errors show where a kernel is asked for.
  void MakeAll(CudaApi& api, absl::Span<const cuda::LibraryHandles> handles);

  /// The kernel of `spec`, made now where MakeAll left it out. Errors: those of the factory for all that was tried.
  absl::StatusOr<std::shared_ptr<cuda::Kernel>> Of(const KernelSpec& spec);

  /// How many of them take long to make: convolutions and attentions of a library that nobody has made yet.
  std::size_t LongToMake();

  /// The Program with the choices in force: those that the device made for what the Program left open, or refused.
  std::shared_ptr<const Program> WithChoices(const std::shared_ptr<const Program>& program) const;

  /// Says, once each, which choices were replaced and what much work went to own kernels.
  void Warn() const;

  /// For groups, which have no choices.
  const cuda::KernelContext& context() const { return context_; }

 private:
  struct Entry {
    KernelSpec spec;
    cuda::KernelContext context;                                               ///< with the Program's choice
    std::optional<absl::StatusOr<std::shared_ptr<cuda::Kernel>>> kernel = {};  ///< nothing: not made yet
    std::string refusal = {};  ///< of the Program's choice; empty: there was none

    /// Null where it is not made or could not be.
    const cuda::Kernel* made() const { return kernel.has_value() && kernel->ok() ? (*kernel)->get() : nullptr; }
  };

  Entry& EntryOf(const KernelSpec& spec);
  void Make(Entry& entry) const;
  /// Notes what MakeAll makes.
  void Collect();

  const Program& program_;
  const cuda::KernelContext context_;
  SharedKernels& shared_;
  std::map<std::string, Entry> entries_;  ///< by SharedKernelKey
  bool is_collected_ = false;
};

/// Floating-point operations of a product, a convolution or an attention; 0 for everything else.
double MatrixFlops(const KernelSpec& spec);

/// What is to be said of a kernel that the libraries left to the project's own code although it is more than 1 GFLOP:
/// the operation, its work and the libraries' reason. Nothing for all others, and for an own kernel that was asked for.
std::optional<std::string> SlowKernelWarning(const KernelSpec& spec, const cuda::Kernel& kernel);

}  // namespace mpc::runtime
