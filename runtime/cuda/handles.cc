#include "runtime/cuda/handles.h"

#include <unistd.h>

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "runtime/physical_memory.h"

namespace mpc::runtime {
namespace {

/// Tells the error from that of the device's memory.
constexpr char kHostMemory[] = "mpc/host_memory";

}  // namespace

absl::Status HostMemoryExhausted(std::size_t bytes, const absl::Status& status) {
  const auto free =
      static_cast<std::size_t>(::sysconf(_SC_AVPHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  absl::Status error = absl::ResourceExhaustedError(absl::StrCat(
      "no ", bytes, " bytes of the host's memory could be pinned, which copies to and from the device need (",
      std::string(status.message()), "); host bytes free: ", free, " of ", PhysicalMemory(),
      ". The device's memory is not what is short"));
  error.SetPayload(kHostMemory, absl::Cord(absl::StrCat(bytes)));
  return error;
}

bool IsHostMemoryExhausted(const absl::Status& status) { return status.GetPayload(kHostMemory).has_value(); }

}  // namespace mpc::runtime
