#include "kernels/dtype.h"

namespace mpc {

std::optional<DType> ParseDType(std::string_view name) {
  for (std::size_t i = 0; i < kDTypes.size(); ++i) {
    if (name == kDTypes[i].name || name == kDTypes[i].long_name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

}  // namespace mpc
