// GPUs that plans are made for without having them.
#pragma once

#include <cudnn_frontend.h>

#include <memory>

#include "absl/status/statusor.h"

namespace mpc::cuda {

/// The properties that cuDNN plans with in place of a device of this compute capability. They are made once in a
/// process. Makes sure that engines which are compiled at run time can be planned where no driver is installed. Errors
/// (UNIMPLEMENTED): a cuDNN before 9.8, which knows no such descriptor.
absl::StatusOr<std::shared_ptr<const cudnn_frontend::DeviceProperties>> CudnnDeviceProperties(int compute_capability);

}  // namespace mpc::cuda
