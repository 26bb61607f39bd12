// The kernels of one Program on one device. Each is made once, several at a time, and the choices are reported.
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
#include "runtime/cuda/nccl_group.h"
#include "runtime/cuda/shared_kernels.h"
#include "runtime/program.h"

namespace mpc::runtime {

/// Replaces each choice of the Program that the device refuses. The libraries' heuristics are asked first, then the
/// project's own kernel is taken.
class StepKernels {
 public:
  /// Makes nothing yet. `program` and `shared` outlive the object. `context` has no choice.
  /// Instructions of several processes run in `group`, which is null where there are none.
  StepKernels(const Program& program, const cuda::KernelContext& context, SharedKernels& shared,
              std::shared_ptr<NcclGroup> group = nullptr)
      : program_(program), context_(context), shared_(shared), group_(std::move(group)) {}

  /// Makes the kernels of all instructions that have one of their own, on a thread for each of `handles`; each thread
  /// uses its handles alone. Errors are returned when the kernel is asked for.
  void MakeAll(CudaApi& api, absl::Span<const cuda::LibraryHandles> handles);

  /// The kernel of `spec`, made now where MakeAll left it out. Errors: those of the factory for all that was tried.
  absl::StatusOr<std::shared_ptr<cuda::Kernel>> KernelFor(const KernelSpec& spec);
  /// One kernel for all of `specs`, which has no choices. Errors: UNIMPLEMENTED where each is to have its own.
  absl::StatusOr<std::shared_ptr<cuda::Kernel>> GroupKernelFor(const std::vector<KernelSpec>& specs) const;

  /// The number of kernels that take long to make: convolutions and attentions of a library that have not been made
  /// yet.
  std::size_t LongToMake();

  /// The Program with the choices in force. The device fills in those that the Program left open or that the device
  /// refused.
  std::shared_ptr<const Program> WithChoices(const std::shared_ptr<const Program>& program) const;

  /// Warns, once each, of choices that were replaced and of large operations that went to own kernels.
  void Warn() const;

  const std::shared_ptr<NcclGroup>& group() const { return group_; }

 private:
  struct Entry {
    KernelSpec spec;
    cuda::KernelContext context;                                               ///< with the Program's choice
    std::optional<absl::StatusOr<std::shared_ptr<cuda::Kernel>>> kernel = {};  ///< empty where it is not made yet
    std::string refusal = {};  ///< why the Program's choice was refused; empty where it was not

    /// Null where it is not made or could not be.
    const cuda::Kernel* made() const { return kernel.has_value() && kernel->ok() ? (*kernel)->get() : nullptr; }
  };

  Entry& EntryOf(const KernelSpec& spec);
  void Make(Entry& entry) const;
  /// Collects the kernels that MakeAll makes.
  void Collect();

  const Program& program_;
  const cuda::KernelContext context_;
  SharedKernels& shared_;
  const std::shared_ptr<NcclGroup> group_;
  std::map<std::string, Entry> entries_;  ///< by SharedKernelKey
  bool is_collected_ = false;
};

/// Floating-point operations of a product, a convolution or an attention; 0 for everything else.
double MatrixFlops(const KernelSpec& spec);

/// The warning for a kernel of more than 1 GFLOP that the libraries left to the project's own code. It names the
/// operation, its work and the libraries' reason. Nothing for all other kernels, and for an own kernel that was asked
/// for.
std::optional<std::string> SlowKernelWarning(const KernelSpec& spec, const cuda::Kernel& kernel);

}  // namespace mpc::runtime
