// Where a user's caches are.
#pragma once

#include <string>

namespace mpc::runtime {

/// "$XDG_CACHE_HOME/mpc", else "~/.cache/mpc", which need not be there; empty where the environment names neither.
std::string UserCacheFolder();

}  // namespace mpc::runtime
