// The properties of GPUs that cuDNN needs to choose plans on a machine without them.
#pragma once

#include <string_view>

namespace mpc::cuda {

/// The text of cuDNN's device-properties descriptor (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION) for the largest known
/// GPU of a compute capability: an H200 for 90 and above, an A100 below. From public data sheets, in
/// device_properties/sm_*.json. An H100's own text, which gpu_probe prints, has the same fields.
std::string_view DevicePropertiesText(int compute_capability);

/// The toolkit's stub of the driver's library on the machine that built this; null-terminated.
std::string_view DriverStubPath();

}  // namespace mpc::cuda
