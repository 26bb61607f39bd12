// Opens a library of mpc that a program loads when it is asked for. Whoever does not ask needs none of what it links.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace mpc::runtime {

/// What a library of mpc exports: a table of functions, which derives from this. `build` names the layout of everything
/// that crosses the border between the program and the library.
///
/// Both sides have a copy of the runtime's plain functions. Objects cross the border, global variables do not. So
/// functions that count or register are virtual and run in the code that made the object.
struct PluginTable {
  const char* build;
};

/// The function that a library exports: `extern "C" const PluginTable* NAME()`.
using PluginFunction = const PluginTable* (*)();

/// One library, which is opened at most once and never closed. Thread-safe.
class PluginLibrary {
 public:
  struct Description {
    std::string subject;   ///< begins every message: `device "cuda"`
    std::string kind;      ///< what it is for mpc: "backend"
    std::string file;      ///< "libmpc_cuda.so"
    std::string variable;  ///< the environment variable that may name the library
    std::string folder;    ///< where the build leaves it
    std::string function;  ///< the name of the PluginFunction
    std::string build;     ///< the program's; the library's must be equal
  };

  explicit PluginLibrary(Description description);

  /// The library's table. The library is looked for beside the running program, in ../lib of it and in the build
  /// folder. Where the variable is set, only the library that it names is tried. Errors: UNAVAILABLE where the library
  /// cannot be opened, with the loader's reasons. FAILED_PRECONDITION for a library without the function or of another
  /// build.
  absl::StatusOr<const PluginTable*> Open();

 private:
  absl::StatusOr<const PluginTable*> OpenFirst() const;
  absl::StatusOr<const PluginTable*> TableOf(void* library, const std::string& path) const;

  const Description description_;
  std::mutex mutex_;
  const PluginTable* opened_ = nullptr;
};

}  // namespace mpc::runtime
