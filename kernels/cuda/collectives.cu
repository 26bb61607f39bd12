// all_reduce, all_reduce_max, all_gather, process_rank of one process: copies, and a zero. GPUs do not exchange values
// with other processes yet.
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/device_language.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/registry.h"
#include "kernels/known_attributes.h"

namespace mpc::cuda {
namespace {

absl::Status CheckAlone(const KernelSpec& spec) {
  const std::int64_t processes = spec.attributes.Get(attribute::kProcesses);
  if (processes == 1) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("mpc.", spec.name, " has no CUDA kernel for ", processes,
                                               " processes; several processes train on the device \"cpu\""));
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateCopy(const KernelSpec& spec, const KernelContext&) {
  if (absl::Status status = CheckAlone(spec); !status.ok()) return status;
  if (spec.inputs[0].dtype != spec.outputs[0].dtype) return UnsupportedTypes(spec);
  return MakeKernel([bytes = spec.outputs[0].bytes()](const KernelOperands& operands, LaunchQueue& queue) {
    if (bytes == 0 || operands.inputs[0] == operands.outputs[0]) return absl::OkStatus();
    return queue.Copy(operands.outputs[0], operands.inputs[0], bytes);
  });
}

__global__ void RankKernel(std::int32_t* rank) { *rank = 0; }

absl::StatusOr<std::unique_ptr<Kernel>> CreateProcessRank(const KernelSpec& spec, const KernelContext&) {
  if (absl::Status status = CheckAlone(spec); !status.ok()) return status;
  return MakeKernel([](const KernelOperands& operands, LaunchQueue& queue) {
    LaunchShape shape;
    shape.threads = 1;
    return launch(queue, &RankKernel, shape, static_cast<std::int32_t*>(operands.outputs[0]));
  });
}

}  // namespace

void RegisterCollectives(Registry& registry) {
  registry.Add("all_reduce", CreateCopy, {{0, 0}});
  registry.Add("all_reduce_max", CreateCopy, {{0, 0}});
  registry.Add("all_gather", CreateCopy, {{0, 0}});
  registry.Add("process_rank", CreateProcessRank);
}

}  // namespace mpc::cuda
