// all_reduce, all_reduce_max, all_gather, process_rank of one process: copies, and a zero. Several processes also need
// an exchange, which the runtime enqueues between the parts in collectives.h.
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/collectives.h"
#include "kernels/cuda/device_language.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/registry.h"
#include "kernels/known_attributes.h"

namespace mpc::cuda {
namespace {

absl::Status CheckAlone(const KernelSpec& spec) {
  const std::int64_t processes = spec.attributes.Get(attribute::kProcesses);
  if (processes == 1) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("mpc.", spec.name, " for ", processes,
                                                    " processes is no kernel by itself; a group of GPUs makes it"));
}

/// One copy for each of `specs`.
absl::StatusOr<std::unique_ptr<Kernel>> CreateCopies(absl::Span<const KernelSpec> specs, const KernelContext&) {
  std::vector<std::size_t> bytes;
  for (const KernelSpec& spec : specs) {
    if (absl::Status status = CheckAlone(spec); !status.ok()) return status;
    if (spec.inputs[0].dtype != spec.outputs[0].dtype) return UnsupportedTypes(spec);
    bytes.push_back(spec.outputs[0].bytes());
  }
  return MakeKernel([bytes](const KernelOperands& operands, LaunchQueue& queue) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] == 0 || operands.inputs[i] == operands.outputs[i]) continue;
      if (absl::Status status = queue.Copy(operands.outputs[i], operands.inputs[i], bytes[i]); !status.ok()) {
        return status;
      }
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateCopy(const KernelSpec& spec, const KernelContext& context) {
  return CreateCopies({&spec, 1}, context);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateProcessRank(const KernelSpec& spec, const KernelContext&) {
  if (absl::Status status = CheckAlone(spec); !status.ok()) return status;
  return MakeKernel([](const KernelOperands& operands, LaunchQueue& queue) {
    return EnqueueNumber(queue, static_cast<std::int32_t*>(operands.outputs[0]), 0);
  });
}

__global__ void NumberKernel(std::int32_t* place, std::int32_t number) {
  AwaitEarlierLaunches();
  *place = number;
}

__global__ void PlaceKernel(DevicePlace* place, std::int32_t number, std::int32_t inside) {
  AwaitEarlierLaunches();
  place->number = number;
  place->inside = inside;
  place->changes = static_cast<std::int32_t>(static_cast<std::uint32_t>(place->changes) + 1);
}

/// A GPU's own pattern of what is not a number depends on the operands.
struct SumOfTwo {
  __device__ __forceinline__ float operator()(float low, float high) const {
    const float sum = low + high;
    return sum == sum ? sum : std::numeric_limits<float>::quiet_NaN();
  }
};

}  // namespace

absl::Status EnqueueSum(LaunchQueue& queue, DType dtype, const void* low, const void* high, void* output,
                        std::int64_t elements) {
  return Map<2>(queue, {{{low, dtype}, {high, dtype}}, {output, dtype}}, SumOfTwo(), elements);
}

absl::Status EnqueueNumber(LaunchQueue& queue, std::int32_t* place, std::int32_t number) {
  LaunchShape shape;
  shape.threads = 1;
  return launch(queue, &NumberKernel, shape, place, number);
}

absl::Status EnqueuePlace(LaunchQueue& queue, DevicePlace* place, std::int32_t number, bool comes) {
  LaunchShape shape;
  shape.threads = 1;
  return launch(queue, &PlaceKernel, shape, place, number, comes ? 1 : 0);
}

void RegisterCollectives(Registry& registry) {
  registry.Add("all_reduce", CreateCopy, {{0, 0}});
  registry.AddGroup("all_reduce", CreateCopies);
  registry.Add("all_reduce_max", CreateCopy, {{0, 0}});
  registry.AddGroup("all_reduce_max", CreateCopies);
  registry.Add("all_gather", CreateCopy);
  registry.AddGroup("all_gather", CreateCopies);
  registry.Add("process_rank", CreateProcessRank);
}

}  // namespace mpc::cuda
