#include "kernels/cuda/library/cudnn_device.h"

#include <dlfcn.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/library/device_properties.h"

namespace mpc::cuda {
namespace {

/// cuDNN compiles some engines at run time (fused graphs, attention). It offers them only where it can open the
/// driver's library, even to plan for a device that is elsewhere. The toolkit's stub of it is enough: it is the same
/// interface, and nothing is called in it. Where a driver is installed it is used.
void OpenDriverLibrary() {
  static const bool opened = [] {
    if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) != nullptr) return true;
    // It is called libcuda.so.1 inside, so that cuDNN's own dlopen finds it.
    return dlopen(std::string(DriverStubPath()).c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr;
  }();
  static_cast<void>(opened);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const cudnn_frontend::DeviceProperties>> CudnnDeviceProperties(int compute_capability) {
  static auto* const mutex = new std::mutex;
  static auto* const known = new std::map<std::string_view, std::shared_ptr<const cudnn_frontend::DeviceProperties>>;
  const std::string_view text = DevicePropertiesText(compute_capability);
  const std::lock_guard<std::mutex> lock(*mutex);
  auto& properties = (*known)[text];
  if (properties == nullptr) {
    OpenDriverLibrary();
    auto made = std::make_shared<cudnn_frontend::DeviceProperties>();
    auto error = made->deserialize(std::vector<std::uint8_t>(text.begin(), text.end()));
    if (error.is_bad()) {
      return absl::UnimplementedError(absl::StrCat("cuDNN cannot plan without a device: ", error.get_message()));
    }
    properties = std::move(made);
  }
  return properties;
}

}  // namespace mpc::cuda
