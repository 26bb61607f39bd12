#include "tools/mpc-bench/resident_memory.h"

#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace mpc::tools {
namespace {

/// The bytes in the line `field` of /proc/self/status; 0 if there is none.
std::size_t Status(const std::string& field) {
  std::ifstream file("/proc/self/status");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind(field + ":", 0) != 0) continue;
    std::istringstream rest(line.substr(field.size() + 1));
    std::size_t kibibytes = 0;
    rest >> kibibytes;
    return 1024 * kibibytes;
  }
  return 0;
}

/// The peak that Linux keeps includes mapped files, which are subtracted. They hardly ever leave memory, so those that
/// are there now were there at the peak.
std::size_t PeakBytes() {
  const std::size_t peak = Status("VmHWM");
  return peak - std::min(peak, Status("RssFile"));
}

/// False where Linux refuses.
bool ForgetPeak() {
  ::malloc_trim(0);
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return file.good();
}

}  // namespace

ResidentMemory::ResidentMemory() : known_(ForgetPeak()) { base_ = Status("RssAnon"); }

void ResidentMemory::LeaveOut(std::size_t bytes) {
  base_ += bytes;
  known_ = ForgetPeak() && known_;
}

std::size_t ResidentMemory::Growth() const {
  const std::size_t peak = PeakBytes();
  return peak - std::min(peak, base_);
}

void ResidentMemory::EndFirstStep() {
  first_step_ = Growth();
  known_ = ForgetPeak() && known_;
}

std::optional<ResidentGrowth> ResidentMemory::growth() const {
  if (!known_ || base_ == 0) return std::nullopt;
  const std::size_t steps = Growth();
  return ResidentGrowth{.steps = steps, .process = std::max(steps, first_step_)};
}

}  // namespace mpc::tools
