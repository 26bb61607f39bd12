#include "runtime/cuda/device_choice.h"

#include "absl/strings/str_cat.h"
#include "runtime/distributed/launch_environment.h"

namespace mpc::runtime {

absl::StatusOr<int> ChooseGpu(int count, const std::function<const char*(const char*)>& get) {
  if (count <= 1) return 0;
  const absl::StatusOr<LaunchEnvironment> place = ReadLaunchEnvironment(get);
  if (!place.ok()) return place.status();
  if (place->local_rank < count) return place->local_rank;
  return absl::InvalidArgumentError(absl::StrCat("device \"cuda\": local rank ", place->local_rank, " of ",
                                                 place->local_size, " has no GPU: CUDA_VISIBLE_DEVICES shows ", count,
                                                 ", and each process uses one of its own"));
}

}  // namespace mpc::runtime
