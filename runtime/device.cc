#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/cpu/cpu_features.h"
#include "runtime/executable.h"

namespace mpc::runtime {

absl::StatusOr<const Device*> GetDevice(std::string_view name) {
  if (name == "cpu") {
    if (absl::Status status = CheckCpuBaseline(); !status.ok()) return status;
    static const CpuDevice device;
    return &device;
  }
  if (name == "cuda") {
    return absl::UnavailableError("device \"cuda\": this build has no CUDA backend; it has \"cpu\"");
  }
  return absl::NotFoundError(absl::StrCat("there is no device \"", std::string(name), "\"; this build has \"cpu\""));
}

}  // namespace mpc::runtime
