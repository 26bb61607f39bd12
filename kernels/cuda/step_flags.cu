// merge_checks, all_of, any_of: they combine several finite checks or flags into one. All operands are scalars.
#include <cstdint>
#include <vector>

#include "kernels/cuda/device_language.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/registry.h"

namespace mpc::cuda {
namespace {

/// Scalars that one launch reads, a thread each.
constexpr int kScalars = 256;

template <typename T>
struct Scalars {
  const T* addresses[kScalars];
  int count;
};

/// The largest position of a gradient that is not finite; else the smallest of the rest (-2 before -1).
__global__ void __launch_bounds__(kScalars) MergeChecksKernel(Scalars<std::int32_t> checks, std::int32_t* merged) {
  AwaitEarlierLaunches();
  MPC_SHARED_ARRAY(int, largest, 1);
  MPC_SHARED_ARRAY(int, smallest, 1);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) largest[0] = smallest[0] = -1;
  __syncthreads();
  if (thread < checks.count) {
    const int check = *checks.addresses[thread];
    atomicMax(&largest[0], check);
    atomicMin(&smallest[0], check);
  }
  __syncthreads();
  if (thread == 0) *merged = largest[0] >= 0 ? largest[0] : smallest[0];
}

/// Whether a flag equal to `kDecisive` is among them decides: none is false, some is true.
template <bool kDecisive>
__global__ void __launch_bounds__(kScalars) ReduceFlagsKernel(Scalars<std::uint8_t> flags, std::uint8_t* result) {
  AwaitEarlierLaunches();
  const int thread = static_cast<int>(threadIdx.x);
  const bool decides = thread < flags.count && (*flags.addresses[thread] != 0) == kDecisive;
  const bool found = __syncthreads_or(decides) != 0;
  if (thread == 0) *result = found == kDecisive;
}

/// Combines all operands by `kernel`. Where they are too many for one launch, the next launch takes the result as its
/// first operand.
template <typename T>
absl::StatusOr<std::unique_ptr<Kernel>> CreateReduction(const KernelSpec& spec, void (*kernel)(Scalars<T>, T*)) {
  return MakeKernel([kernel, inputs = spec.inputs.size()](const KernelOperands& operands, LaunchQueue& queue) {
    T* result = static_cast<T*>(operands.outputs[0]);
    LaunchShape shape;
    shape.threads = inputs <= kWarpSize ? kWarpSize : kScalars;
    std::size_t next = 0;
    do {
      Scalars<T> scalars{};
      if (next > 0) scalars.addresses[scalars.count++] = result;
      while (scalars.count < kScalars && next < inputs) {
        scalars.addresses[scalars.count++] = static_cast<const T*>(operands.inputs[next++]);
      }
      if (absl::Status status = launch(queue, kernel, shape, scalars, result); !status.ok()) return status;
    } while (next < inputs);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateMergeChecks(const KernelSpec& spec, const KernelContext&) {
  return CreateReduction<std::int32_t>(spec, &MergeChecksKernel);
}

template <bool kDecisive>
absl::StatusOr<std::unique_ptr<Kernel>> CreateFlagReduction(const KernelSpec& spec, const KernelContext&) {
  return CreateReduction<std::uint8_t>(spec, &ReduceFlagsKernel<kDecisive>);
}

}  // namespace

void RegisterStepFlags(Registry& registry) {
  registry.Add("merge_checks", CreateMergeChecks);
  registry.Add("all_of", CreateFlagReduction<false>);
  registry.Add("any_of", CreateFlagReduction<true>);
}

}  // namespace mpc::cuda
