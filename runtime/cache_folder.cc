#include "runtime/cache_folder.h"

#include <cstdlib>
#include <filesystem>

namespace mpc::runtime {

std::string UserCacheFolder() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  if (cache != nullptr && *cache != '\0') return std::filesystem::path(cache) / "mpc";
  if (home != nullptr && *home != '\0') return std::filesystem::path(home) / ".cache" / "mpc";
  return "";
}

}  // namespace mpc::runtime
