// What a transport asks while it waits for other ranks.
#pragma once

#include <functional>
#include <string_view>

#include "absl/status/status.h"

namespace mpc::distributed {

/// Called about ten times a second on the thread of a call that waits, with what waits: "all-reduce, its call 7". An
/// error ends the wait, and the call returns it. An empty one is not called.
using WaitHook = std::function<absl::Status(std::string_view what)>;

/// What waits where Communicator::LookForLoss is called.
inline constexpr char kWaitOfDevice[] = "a step on a GPU";
/// What waits while a group comes together.
inline constexpr char kJoining[] = "joining the group";

}  // namespace mpc::distributed
