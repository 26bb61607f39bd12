#include "runtime/cuda/backend_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/cuda/backend.h"

namespace mpc::runtime {
namespace {

#ifdef MPC_HAVE_CUDA_BACKEND

constexpr char kLibrary[] = "libmpc_cuda.so";
constexpr char kVariable[] = "MPC_CUDA_LIBRARY";

/// The folder of the running program; "" where it cannot be told.
std::string ProgramFolder() {
  char path[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof(path));
  if (length <= 0) return "";
  const std::string_view text(path, static_cast<std::size_t>(length));
  return std::string(text.substr(0, text.rfind('/')));
}

std::vector<std::string> Candidates() {
  // Whoever names a library wants that one or an error.
  if (const char* named = std::getenv(kVariable); named != nullptr && *named != '\0') return {named};
  std::vector<std::string> candidates;
  if (const std::string folder = ProgramFolder(); !folder.empty()) {
    candidates.push_back(absl::StrCat(folder, "/", kLibrary));
    candidates.push_back(absl::StrCat(folder, "/../lib/", kLibrary));
  }
  candidates.push_back(absl::StrCat(MPC_CUDA_BUILD_FOLDER, "/", kLibrary));
  return candidates;
}

absl::StatusOr<const CudaBackend*> OpenLibrary() {
  std::vector<std::string> tried;
  for (const std::string& path : Candidates()) {
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      tried.emplace_back(::dlerror());
      continue;
    }
    const auto function = reinterpret_cast<CudaBackendFunction>(::dlsym(library, kCudaBackendFunction));
    if (function == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("device \"cuda\": ", path, " is no backend of mpc: it has no ", kCudaBackendFunction));
    }
    const CudaBackend* backend = function();
    if (std::string_view(backend->build) != kCudaBackendBuild) {
      return absl::FailedPreconditionError(absl::StrCat("device \"cuda\": ", path, " is of the build \"",
                                                        backend->build, "\", this program is of \"", kCudaBackendBuild,
                                                        "\"; install both from one build"));
    }
    return backend;
  }
  return absl::UnavailableError(absl::StrCat("device \"cuda\": its library cannot be opened (", kVariable,
                                             " may name it); tried:\n  ", absl::StrJoin(tried, "\n  ")));
}

absl::StatusOr<const CudaBackend*> Backend() {
  static std::mutex mutex;
  static const CudaBackend* opened = nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  if (opened != nullptr) return opened;
  absl::StatusOr<const CudaBackend*> backend = OpenLibrary();
  if (backend.ok()) opened = *backend;
  return backend;
}

#else

absl::StatusOr<const CudaBackend*> Backend() {
  return absl::UnavailableError("device \"cuda\": this build has no CUDA backend (MPC_CUDA=OFF); it has \"cpu\"");
}

#endif

}  // namespace

absl::StatusOr<const Device*> OpenCudaDevice() {
  const absl::StatusOr<const CudaBackend*> backend = Backend();
  return backend.ok() ? (*backend)->open_device() : backend.status();
}

absl::StatusOr<const Device*> OpenCudaTarget(std::string_view arch) {
  const absl::StatusOr<const CudaBackend*> backend = Backend();
  return backend.ok() ? (*backend)->open_target(arch) : backend.status();
}

}  // namespace mpc::runtime
