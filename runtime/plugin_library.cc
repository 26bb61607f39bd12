#include "runtime/plugin_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mpc::runtime {
namespace {

/// The folder of the running program; "" where it cannot be told.
std::string ProgramFolder() {
  char path[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof(path));
  if (length <= 0) return "";
  const std::string_view text(path, static_cast<std::size_t>(length));
  return std::string(text.substr(0, text.rfind('/')));
}

std::vector<std::string> Candidates(const PluginLibrary::Description& description) {
  // Whoever names a library wants that one or an error.
  if (const char* named = std::getenv(description.variable.c_str()); named != nullptr && *named != '\0') return {named};
  std::vector<std::string> candidates;
  if (const std::string folder = ProgramFolder(); !folder.empty()) {
    candidates.push_back(absl::StrCat(folder, "/", description.file));
    candidates.push_back(absl::StrCat(folder, "/../lib/", description.file));
  }
  candidates.push_back(absl::StrCat(description.folder, "/", description.file));
  return candidates;
}

}  // namespace

PluginLibrary::PluginLibrary(Description description) : description_(std::move(description)) {}

absl::StatusOr<const PluginTable*> PluginLibrary::Open() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (opened_ != nullptr) return opened_;
  absl::StatusOr<const PluginTable*> table = OpenFirst();
  if (table.ok()) opened_ = *table;
  return table;
}

absl::StatusOr<const PluginTable*> PluginLibrary::OpenFirst() const {
  std::vector<std::string> tried;
  for (const std::string& path : Candidates(description_)) {
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) return TableOf(library, path);
    tried.emplace_back(::dlerror());
  }
  return absl::UnavailableError(absl::StrCat(description_.subject, ": its library cannot be opened (",
                                             description_.variable, " may name it); tried:\n  ",
                                             absl::StrJoin(tried, "\n  ")));
}

absl::StatusOr<const PluginTable*> PluginLibrary::TableOf(void* library, const std::string& path) const {
  const auto function = reinterpret_cast<PluginFunction>(::dlsym(library, description_.function.c_str()));
  if (function == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(description_.subject, ": ", path, " is no ", description_.kind,
                                                      " of mpc: it has no ", description_.function));
  }
  const PluginTable* table = function();
  if (table->build != description_.build) {
    return absl::FailedPreconditionError(absl::StrCat(description_.subject, ": ", path, " is of the build \"",
                                                      table->build, "\", this program is of \"", description_.build,
                                                      "\"; install both from one build"));
  }
  return table;
}

}  // namespace mpc::runtime
