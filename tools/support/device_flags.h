// The flags that say where steps run and how, the same for every tool.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/graph/context.h"
#include "tools/support/flag_set.h"
#include "tools/support/option_flag.h"

namespace mpc::tools {

struct DeviceOptions {
  std::string device = "cpu";
  std::optional<bool> fusion;  ///< left out: its default
  /// `fusion`, or its default.
  bool fuses() const;
  std::int64_t memory_budget = 0;   ///< bytes of arena, state and constants; 0: none
  std::int64_t head_chunks = 1;     ///< chunks of rows of a language model's head
  std::optional<bool> pad_classes;  ///< left out: heads that gain from it
  std::string arch;                 ///< to compile for without the device: "sm_90"
  std::string graph;                ///< "on", "off"; empty: not given
  std::int64_t steps_per_launch = 1;
  bool allow_tf32 = false;
  bool allow_conv_statistics = false;
  bool allow_winograd = false;
  bool tune = false;
  /// File of kernel choices; empty: none. Not given: the user's, on device "cuda" or with `tune`.
  std::optional<std::string> choice_cache;
};

/// A flag for each member. The help of what is compiled is that of the compiler's options.
const std::vector<OptionFlag<DeviceOptions>>& DeviceFlags();

/// Whether the flag of this name says how steps run: a tool that only compiles has no use for it.
bool IsOfRunning(std::string_view flag);

/// All of DeviceFlags but --arch, which tools have that can compile without running.
void AddDeviceFlags(FlagSet& flags, DeviceOptions& options);

/// What the flags ask of SetContext.
ContextOptions ContextOf(const DeviceOptions& options, std::int64_t threads);

/// "$XDG_CACHE_HOME/mpc/choices", else "~/.cache/mpc/choices"; empty where there is no such folder and none can be
/// made.
std::string UserChoiceCache();

/// Errors: a contradiction between the flags, with both; a device or an architecture that is not there.
absl::Status CheckDeviceFlags(const DeviceOptions& options);

}  // namespace mpc::tools
