// Groups of channels of convolutions. Not part of the public API.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace mpc::nn::internal {

/// Empty, or why `layer` cannot have `group` groups of its channels.
inline std::string GroupError(std::string_view layer, std::int64_t group, std::int64_t in_channels,
                              std::int64_t out_channels) {
  if (group >= 1 && in_channels % group == 0 && out_channels % group == 0) return "";
  return absl::StrCat(std::string(layer), ": group must divide the ", in_channels, " input and ", out_channels,
                      " output channels, got ", group);
}

}  // namespace mpc::nn::internal
