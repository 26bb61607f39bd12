// The flags that say where steps run and how, the same for every tool.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/graph/context.h"
#include "tools/support/flag_set.h"
#include "tools/support/option_flag.h"

namespace mpc::tools {

/// The context as the flags ask for it. `num_threads` and `mode` have no flag here: tools have threads of their own.
struct DeviceOptions : ContextOptions {
  /// false: `choice_cache` is the user's, on device "cuda" or with `tune`.
  bool choice_cache_is_given = false;

  /// `fusion`, or its default.
  bool fuses() const;
};

/// A flag for each field of the context that has one. The help of what is compiled is that of the compiler's options.
const std::vector<OptionFlag<DeviceOptions>>& DeviceFlags();

/// Whether the flag of this name says how steps run: a tool that only compiles has no use for it.
bool IsOfRunning(std::string_view flag);

/// All of DeviceFlags but --arch, which tools have that can compile without running.
void AddDeviceFlags(FlagSet& flags, DeviceOptions& options);

/// The flags that ask for `options`: "--device=cuda", "--allow-tf32". Those of defaults are left out.
std::vector<std::string> DeviceArguments(const DeviceOptions& options);

/// What a message calls an option of a command line: "--image-size=64" of `image_size`, "--tune" where `text` is empty
/// or "true".
std::string FlagText(std::string_view name, std::string_view text);

/// What the flags ask of SetContext.
ContextOptions ContextOf(const DeviceOptions& options, std::int64_t threads);

/// "$XDG_CACHE_HOME/mpc/choices", else "~/.cache/mpc/choices"; empty where there is no such folder and none can be
/// made.
std::string UserChoiceCache();

/// Errors: a contradiction between the flags, with both; a device or an architecture that is not there. On the CPU
/// those of CheckChoiceCache.
absl::Status CheckDeviceFlags(const DeviceOptions& options);

}  // namespace mpc::tools
