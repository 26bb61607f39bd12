// The flags of amp::Options, the same for every tool.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "frontend/graph/amp_options.h"

namespace mpc::tools {

struct AmpFlag {
  std::string name;         ///< "keep-batchnorm-fp32"
  std::string placeholder;  ///< "true|false"
  std::string help;
  bool is_switch = false;  ///< without a value it means true
  /// Errors: a list or a whole number that is none. Everything else is checked by amp::ResolveOptions.
  std::function<absl::Status(const std::string& value, amp::Options& options)> set;
};

/// One for each option of amp::Options. Lists are words between commas, and a flag that is repeated adds to its list.
const std::vector<AmpFlag>& AmpFlags();

/// Sets the option of flag `name`, which exists.
absl::Status SetAmpFlag(std::string_view name, const std::string& value, amp::Options& options);

}  // namespace mpc::tools
