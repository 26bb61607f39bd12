// When each kernel and copy of a program ran on the GPU, those of graphs too. The CUDA driver loads this library into a
// program where CUDA_INJECTION64_PATH names it. It writes the file of MPC_TIMELINE, which timeline.py reads. A line is
// an activity with tabs between its fields. They are begin and end in ns, graph (0: none), node, blocks, threads of a
// block, registers, bytes and name. Bytes are those of shared memory or of a copy. It uses CUPTI, the toolkit's
// profiling interface.
#include <cupti.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

namespace {

constexpr std::size_t kBufferBytes = std::size_t{8} << 20;
constexpr std::size_t kBufferAlignment = 64;

std::FILE* file = nullptr;
std::mutex mutex;

/// `activity` is one of CUPTI's records of kernels, copies or fills, which name these fields alike.
template <typename Activity>
void Write(const Activity& activity, const std::string& shape, std::uint64_t bytes, const char* name) {
  const std::string line = std::to_string(activity.start) + "\t" + std::to_string(activity.end) + "\t" +
                           std::to_string(activity.graphId) + "\t" + std::to_string(activity.graphNodeId) + "\t" +
                           shape + "\t" + std::to_string(bytes) + "\t" + name + "\n";
  std::fputs(line.c_str(), file);
}

void Write(const CUpti_Activity& record) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& kernel = reinterpret_cast<const CUpti_ActivityKernel10&>(record);
      const auto shared = static_cast<std::uint64_t>(kernel.staticSharedMemory) +
                          static_cast<std::uint64_t>(kernel.dynamicSharedMemory);
      const std::string blocks =
          std::to_string(kernel.gridX) + "," + std::to_string(kernel.gridY) + "," + std::to_string(kernel.gridZ);
      const std::string threads = std::to_string(kernel.blockX * kernel.blockY * kernel.blockZ);
      Write(kernel, blocks + "\t" + threads + "\t" + std::to_string(kernel.registersPerThread), shared, kernel.name);
      return;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& copy = reinterpret_cast<const CUpti_ActivityMemcpy6&>(record);
      Write(copy, "-\t0\t0", copy.bytes, "copy");
      return;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& fill = reinterpret_cast<const CUpti_ActivityMemset4&>(record);
      Write(fill, "-\t0\t0", fill.bytes, "fill");
      return;
    }
    default:
      return;
  }
}

void CUPTIAPI GiveBuffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kBufferAlignment, kBufferBytes));
  *bytes = *buffer == nullptr ? 0 : kBufferBytes;
  *most_records = 0;  // as many as fit
}

void CUPTIAPI TakeBuffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t used) {
  const std::lock_guard lock(mutex);
  CUpti_Activity* record = nullptr;
  while (used > 0 && cuptiActivityGetNextRecord(buffer, used, &record) == CUPTI_SUCCESS) Write(*record);
  std::free(buffer);
}

void Finish() {
  cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  const std::lock_guard lock(mutex);
  std::fclose(file);
}

bool Succeeds(CUptiResult result, const char* call) {
  if (result == CUPTI_SUCCESS) return true;
  const char* text = nullptr;
  cuptiGetResultString(result, &text);
  std::fprintf(stderr, "timeline: %s: %s\n", call, text);
  return false;
}

}  // namespace

/// Called by the driver when it starts. 0 means that nothing is recorded; why is on stderr.
extern "C" int InitializeInjection() {
  const char* path = std::getenv("MPC_TIMELINE");
  if (path == nullptr) {
    std::fputs("timeline: MPC_TIMELINE names no file\n", stderr);
    return 0;
  }
  file = std::fopen(path, "w");
  if (file == nullptr) {
    std::perror(path);
    return 0;
  }
  if (!Succeeds(cuptiActivityRegisterCallbacks(GiveBuffer, TakeBuffer), "cuptiActivityRegisterCallbacks")) return 0;
  for (const CUpti_ActivityKind kind :
       {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET}) {
    if (!Succeeds(cuptiActivityEnable(kind), "cuptiActivityEnable")) return 0;
  }
  std::atexit(Finish);
  return 1;
}
