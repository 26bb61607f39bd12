// How many threads of a multiprocessor kernels keep resident, by CUDA's own rules. Needs no GPU and no driver.
//
//   gpu_occupancy < KERNELS
//
// A kernel is a line of four numbers: compute capability (80, 90), registers a thread, threads a block, bytes of shared
// memory a block. The answer to each is a line: resident threads, in percent of the most. Exit status 2: bad input.
#include <cuda_occupancy.h>

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <sstream>
#include <string>

namespace {

struct Kernel {
  int compute_capability = 0;
  int registers = 0;
  int threads = 0;
  std::size_t shared_bytes = 0;
};

constexpr int kMostThreads = 2048;

/// The properties of an A100 and an H100, from the CUDA programming guide's table of compute capabilities.
cudaOccDeviceProp PropertiesOf(int compute_capability) {
  cudaOccDeviceProp properties;
  properties.computeMajor = compute_capability / 10;
  properties.computeMinor = compute_capability % 10;
  properties.maxThreadsPerBlock = 1024;
  properties.maxThreadsPerMultiprocessor = kMostThreads;
  properties.regsPerBlock = 65536;
  properties.regsPerMultiprocessor = 65536;
  properties.warpSize = 32;
  properties.sharedMemPerBlock = 49152;
  properties.sharedMemPerMultiprocessor = (compute_capability == 80 ? 164 : 228) * 1024;
  properties.sharedMemPerBlockOptin = properties.sharedMemPerMultiprocessor - 1024;
  properties.reservedSharedMemPerBlock = 1024;
  properties.numSms = 1;  // what is asked is about one
  return properties;
}

/// Blocks of `kernel` that a multiprocessor holds at once; -1: CUDA's rules do not take such a kernel.
int BlocksAtOnce(const Kernel& kernel) {
  const cudaOccDeviceProp properties = PropertiesOf(kernel.compute_capability);
  cudaOccFuncAttributes attributes;
  attributes.maxThreadsPerBlock = std::max(kernel.threads, 1);
  attributes.numRegs = kernel.registers;
  attributes.sharedSizeBytes = kernel.shared_bytes;
  attributes.partitionedGCConfig = PARTITIONED_GC_OFF;
  attributes.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  attributes.maxDynamicSharedSizeBytes = 0;
  attributes.numBlockBarriers = 1;
  const cudaOccDeviceState state;
  cudaOccResult result;
  const cudaOccError error =
      cudaOccMaxActiveBlocksPerMultiprocessor(&result, &properties, &attributes, &state, kernel.threads, 0);
  return error == CUDA_OCC_SUCCESS ? result.activeBlocksPerMultiprocessor : -1;
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    Kernel kernel;
    words >> kernel.compute_capability >> kernel.registers >> kernel.threads >> kernel.shared_bytes;
    const bool is_known = kernel.compute_capability == 80 || kernel.compute_capability == 90;
    const int blocks = words.fail() || !is_known ? -1 : BlocksAtOnce(kernel);
    if (blocks < 0) {
      std::cerr << "gpu_occupancy: a line is \"80|90 REGISTERS THREADS SHARED_BYTES\"; got \"" << line << "\"\n";
      return 2;
    }
    std::cout << 100 * blocks * kernel.threads / kMostThreads << "\n";
  }
  return 0;
}
