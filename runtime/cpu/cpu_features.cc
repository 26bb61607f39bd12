#include "runtime/cpu/cpu_features.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/cpu/loop_processors.h"

namespace mpc::runtime {

absl::Status CheckCpuBaseline() {
  // __builtin_cpu_supports takes literals only. On Linux it also asks whether the kernel saves the wide registers.
  const std::array<std::pair<const char*, bool>, 9> baseline = {{
      {"sse4.2", __builtin_cpu_supports("sse4.2") != 0},
      {"popcnt", __builtin_cpu_supports("popcnt") != 0},
      {"avx", __builtin_cpu_supports("avx") != 0},
      {"avx2", __builtin_cpu_supports("avx2") != 0},
      {"fma", __builtin_cpu_supports("fma") != 0},
      {"f16c", __builtin_cpu_supports("f16c") != 0},
      {"bmi", __builtin_cpu_supports("bmi") != 0},
      {"bmi2", __builtin_cpu_supports("bmi2") != 0},
      {"lzcnt", __builtin_cpu_supports("lzcnt") != 0},
  }};
  std::vector<std::string> missing;
  for (const auto& [name, present] : baseline) {
    if (!present) missing.emplace_back(name);
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "device \"cpu\" needs a processor of level x86-64-v3 (Intel Haswell, AMD Excavator or later); this one lacks ",
      absl::StrJoin(missing, ", ")));
}

bool HasAvx512Bf16() { return __builtin_cpu_supports("avx512bf16") != 0; }

bool HasCpuFeature(std::string_view name) {
  if (name == "avx2") return __builtin_cpu_supports("avx2") != 0;
  if (name == "fma") return __builtin_cpu_supports("fma") != 0;
  if (name == "f16c") return __builtin_cpu_supports("f16c") != 0;
  if (name == "avx512f") return __builtin_cpu_supports("avx512f") != 0;
  if (name == "avx512cd") return __builtin_cpu_supports("avx512cd") != 0;
  if (name == "avx512dq") return __builtin_cpu_supports("avx512dq") != 0;
  if (name == "avx512bw") return __builtin_cpu_supports("avx512bw") != 0;
  if (name == "avx512vl") return __builtin_cpu_supports("avx512vl") != 0;
  if (name == "avx512_bf16") return HasAvx512Bf16();
  return false;
}

namespace {

/// A cache of a processor as Linux lists it.
struct ListedCache {
  std::size_t bytes = 0;
  std::string processors;  ///< the processors that share it: "0-7"
};

/// The largest cache of a processor; one of 0 bytes where none is listed.
ListedCache LargestCacheOf(const std::string& folder, int processor) {
  ListedCache largest;
  for (int index = 0;; ++index) {
    const std::string listed = absl::StrCat(folder, "/cpu", processor, "/cache/index", index);
    std::ifstream size(listed + "/size"), sharing(listed + "/shared_cpu_list");
    std::size_t kibibytes = 0;  // "32768K"
    char unit = 0;
    ListedCache cache;
    if (!(size >> kibibytes >> unit) || unit != 'K' || !(sharing >> cache.processors)) return largest;
    cache.bytes = kibibytes << 10;
    if (cache.bytes >= largest.bytes) largest = cache;
  }
}

}  // namespace

std::size_t ListedCacheBytes(const std::string& folder, absl::Span<const int> processors) {
  std::map<std::string, std::size_t> caches;
  for (const int processor : processors) {
    const ListedCache cache = LargestCacheOf(folder, processor);
    caches[cache.processors] = cache.bytes;
  }
  std::size_t bytes = 0;
  for (const auto& [sharing, size] : caches) bytes += size;
  return bytes;
}

std::size_t LastLevelCacheBytes() {
  constexpr std::size_t kOtherwise = std::size_t{32} << 20;
  // The C library multiplies by what it takes for the number of caches in a package, wrongly in a virtual machine.
  static const std::size_t listed = ListedCacheBytes("/sys/devices/system/cpu", cpu::LoopProcessors());
  if (listed > 0) return listed;
  for (const int level : {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE}) {
    if (const long bytes = ::sysconf(level); bytes > 0) return static_cast<std::size_t>(bytes);
  }
  return kOtherwise;
}

}  // namespace mpc::runtime
