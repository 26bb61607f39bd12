// Machine code for the host, from a Program's blobs to functions that can be called.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/program.h"

namespace mpc::runtime {

/// The code of one blob. Its functions are valid while it lives.
class LoadedCode {
 public:
  virtual ~LoadedCode() = default;
  /// The address of a function. Errors (NOT_FOUND): the code has no function of this name.
  virtual absl::StatusOr<void*> Find(const std::string& function) const = 0;
};

using CodeLoader = std::function<absl::StatusOr<std::unique_ptr<LoadedCode>>(const CodeBlob& blob)>;

/// Loads `blob`. Format "elf", a shared object, is loaded from memory; any other format by the loader that is
/// registered for it. Errors carry the blob's name. INVALID_ARGUMENT: the code is malformed or for another processor.
/// FAILED_PRECONDITION: the format has no loader, or the code asks for a function that this process does not have.
absl::StatusOr<std::unique_ptr<LoadedCode>> LoadCode(const CodeBlob& blob);

/// Makes `loader` the one for `format`. The compiler registers "object", relocatable code that never leaves the
/// process.
void RegisterCodeLoader(const std::string& format, CodeLoader loader);

}  // namespace mpc::runtime
