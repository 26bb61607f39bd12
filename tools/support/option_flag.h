// Flags of a structure of options, for every tool that has these options, whatever parses its command line.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace mpc::tools {

template <typename Options>
struct OptionFlag {
  std::string name;         ///< "keep-batchnorm-fp32"
  std::string placeholder;  ///< "true|false"
  std::string help;
  bool is_switch = false;  ///< without a value it means true
  /// Errors: text that is no value of the option. What depends on other options is checked elsewhere.
  std::function<absl::Status(const std::string& value, Options& options)> set;
};

/// Sets the option of the flag `name` of `flags`. Errors (INVALID_ARGUMENT): the flag and what its value lacks;
/// (NOT_FOUND): there is no such flag.
template <typename Options>
absl::Status SetOption(const std::vector<OptionFlag<Options>>& flags, std::string_view name, const std::string& value,
                       Options& options) {
  for (const OptionFlag<Options>& flag : flags) {
    if (flag.name != name) continue;
    absl::Status status = flag.set(value, options);
    if (status.ok()) return status;
    return absl::InvalidArgumentError(absl::StrCat("--", flag.name, ": ", status.message()));
  }
  return absl::NotFoundError("no flag --" + std::string(name));
}

}  // namespace mpc::tools
