// A GPU as a device, over a table of CUDA calls.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "kernels/cuda/kernel.h"
#include "runtime/cuda/cuda_api.h"
#include "runtime/cuda/nccl_api.h"
#include "runtime/cuda/shared_kernels.h"
#include "runtime/executable.h"
#include "runtime/kernel_tuner.h"

namespace mpc::runtime {

class CudaContext;

struct CudaDeviceOptions {
  /// False: own kernels only, as the emulation needs it.
  bool use_libraries = true;
  /// The functions that make kernels and that list what tuning tries. Tests put stand-ins for the libraries here.
  KernelFactory make_kernel = cuda::CreateKernel;
  KernelCandidates candidates = cuda::CandidateChoices;
  /// NCCL, for Programs of several processes. Called when one is loaded. Errors say why this process has none.
  std::function<absl::StatusOr<NcclApi*>()> nccl = [] {
    return absl::UnavailableError("this build has no NCCL (nccl.h was not found)");
  };
};

/// A Program that was planned for sm_80 runs on every GPU of compute capability 8.x, one for sm_90 on 9.x.
class CudaDevice : public Device {
 public:
  /// The GPU behind `api`, which must outlive the device. Errors (UNAVAILABLE): no device, a driver too old, a compute
  /// capability below 8.0.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Open(CudaApi& api, const CudaDeviceOptions& options = {});

  /// A GPU that is only compiled for. Errors (INVALID_ARGUMENT): an unknown architecture, with those that are known.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> ForTarget(std::string_view arch,
                                                               const CudaDeviceOptions& options = {});

  std::string_view name() const override { return "cuda"; }
  std::string_view arch() const override { return arch_; }
  absl::StatusOr<InstructionPlan> Plan(const Program& program, const Instruction& instruction,
                                       const PlanOptions& options = {}) const override;
  absl::Status EndPlanning(const PlanOptions& options) const override;
  bool MayAlias(std::string_view kernel, std::size_t output, std::size_t input) const override;
  /// Opens NCCL for `processes`, whose Programs are going to be loaded. Load does it where this has not been called.
  /// Every process calls it. Errors: those of NcclGroup::Open; FAILED_PRECONDITION for a device that is only compiled
  /// for.
  absl::Status Join(const std::shared_ptr<Communicator>& processes) const;
  absl::StatusOr<std::unique_ptr<Executable>> Load(std::shared_ptr<const Program> program, const StateStore& state,
                                                   const LoadOptions& options = {}) const override;

 private:
  explicit CudaDevice(const CudaDeviceOptions& options)
      : candidates_(options.candidates), nccl_(options.nccl), shared_(options.make_kernel) {}

  cuda::KernelContext KernelsOf(bool allow_tf32) const;
  /// The choice for `spec`: the one in `program`, else the cache's, else the fastest by timing. No choice leaves it to
  /// the heuristics.
  absl::StatusOr<MeasuredChoice> Choose(const Program& program, const KernelSpec& spec,
                                        const cuda::KernelContext& kernels, const PlanOptions& options) const;
  /// The kernel of `spec`. It is made under the device's mutex where the device is present.
  absl::StatusOr<std::shared_ptr<cuda::Kernel>> MakeShared(const KernelSpec& spec,
                                                           const cuda::KernelContext& kernels) const;

  std::string arch_;
  std::string description_;               ///< "NVIDIA H200 (sm_90)"
  std::string id_;                        ///< CudaDeviceProperties::id
  std::string measured_on_;               ///< the GPU and the versions of the libraries: what measurements depend on
  std::shared_ptr<CudaContext> context_;  ///< null where the device is only compiled for
  KernelCandidates candidates_;
  std::function<absl::StatusOr<NcclApi*>()> nccl_;
  mutable SharedKernels shared_;  ///< kernels of plans, tuning and Programs; they use the context's handles
  mutable KernelTuner tuner_;
  cuda::KernelContext kernels_;  ///< without a choice
};

}  // namespace mpc::runtime
