// Prints what mpc sees of this machine's GPU, and the device descriptor that cuDNN makes of it: the text that belongs
// in kernels/cuda/library/device_properties. One JSON object.
#include <cudnn_frontend.h>

#include <iostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/cuda/cudart_api.h"

namespace mpc::tools {
namespace {

absl::Status Probe(nlohmann::json& json) {
  runtime::CudartApi api;
  const absl::StatusOr<runtime::CudaDeviceProperties> properties = api.Properties();
  if (!properties.ok()) return properties.status();
  const absl::StatusOr<runtime::CudaMemoryInfo> memory = api.MemoryInfo();
  if (!memory.ok()) return memory.status();
  json["name"] = properties->name;
  json["compute_capability"] = properties->compute_capability;
  json["multiprocessors"] = properties->multiprocessors;
  json["l2_cache_bytes"] = properties->l2_cache_bytes;
  json["memory_bytes"] = properties->memory_bytes;
  json["free_bytes"] = memory->free_bytes;
  json["driver_version"] = properties->driver_version;
  json["runtime_version"] = properties->runtime_version;
  json["libraries"] = api.LibraryVersions();

  cudnn_frontend::DeviceProperties descriptor;
  if (auto error = descriptor.set_device_id(0).build(); error.is_bad()) {
    return absl::InternalError(absl::StrCat("cuDNN describes no device: ", error.get_message()));
  }
  std::vector<std::uint8_t> text;
  if (auto error = descriptor.serialize(text); error.is_bad()) {
    return absl::InternalError(absl::StrCat("cuDNN cannot write its device descriptor: ", error.get_message()));
  }
  json["cudnn_device_properties"] = std::string(text.begin(), text.end());
  return absl::OkStatus();
}

}  // namespace
}  // namespace mpc::tools

int main() {
  nlohmann::json json;
  const absl::Status status = mpc::tools::Probe(json);
  if (!json.empty()) std::cout << json.dump() << "\n";
  if (status.ok()) return 0;
  std::cerr << "gpu_probe: " << status.message() << "\n";
  return 1;
}
