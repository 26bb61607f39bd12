// Every CUDA call that the runtime makes, behind one table of functions. The real table calls cudart, cuBLASLt, cuDNN
// and NVTX. Tests use a recording table on the host: it counts, fails on purpose, and runs kernels in the emulation.
// This file includes no CUDA header. Errors carry CUDA's own name and text, what was asked for, and for
// RESOURCE_EXHAUSTED the sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/cuda/kernel.h"

namespace mpc::runtime {

struct CudaDeviceProperties {
  std::string name;            ///< "NVIDIA H200"
  std::string id;              ///< another one for each GPU of the world: "GPU-" and 32 digits
  int compute_capability = 0;  ///< 90
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
  std::size_t l2_cache_bytes = 0;
  int driver_version = 0;   ///< 13000 for 13.0: the newest runtime that the driver serves
  int runtime_version = 0;  ///< version of the cudart in use
};

struct CudaMemoryInfo {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
};

enum class CudaCopy { kHostToDevice, kDeviceToHost, kDeviceToDevice };

class CudaApi {
 public:
  using Stream = void*;
  using Event = void*;
  using Graph = void*;
  using GraphExec = void*;
  using Library = void*;

  virtual ~CudaApi() = default;

  // The device. Everything below uses one device of CUDA_VISIBLE_DEVICES.
  virtual absl::StatusOr<int> DeviceCount() = 0;
  virtual absl::StatusOr<CudaDeviceProperties> Properties() = 0;
  virtual absl::StatusOr<CudaMemoryInfo> MemoryInfo() = 0;
  /// Makes the device the current one of the calling thread, which may have made no CUDA call before. Any thread may
  /// call it.
  virtual absl::Status UseDevice() = 0;

  // Memory. Device memory is 256-byte aligned; host memory is pinned.
  virtual absl::StatusOr<void*> Malloc(std::size_t bytes) = 0;
  virtual absl::Status Free(void* memory) = 0;
  virtual absl::StatusOr<void*> MallocHost(std::size_t bytes) = 0;
  virtual absl::Status FreeHost(void* memory) = 0;

  // Streams and events. Streams do not wait for the default stream.
  virtual absl::StatusOr<Stream> CreateStream() = 0;
  virtual absl::Status DestroyStream(Stream stream) = 0;
  virtual absl::Status SynchronizeStream(Stream stream) = 0;  ///< returns the error of asynchronous work
  virtual absl::StatusOr<Event> CreateEvent(bool timing) = 0;
  virtual absl::Status DestroyEvent(Event event) = 0;
  virtual absl::Status RecordEvent(Event event, Stream stream) = 0;
  virtual absl::Status WaitEvent(Stream stream, Event event) = 0;  ///< the stream waits, the host does not
  virtual absl::Status SynchronizeEvent(Event event) = 0;
  virtual absl::StatusOr<bool> EventDone(Event event) = 0;
  virtual absl::StatusOr<double> ElapsedMilliseconds(Event from, Event to) = 0;

  // Work on a stream.
  virtual absl::Status Copy(void* to, const void* from, std::size_t bytes, CudaCopy kind, Stream stream) = 0;
  virtual absl::Status Fill(void* to, std::uint8_t byte, std::size_t bytes, Stream stream) = 0;
  /// Where `function` awaits earlier work by itself, the device may begin the launch before that work has ended.
  virtual absl::Status Launch(const cuda::KernelFunction& function, const cuda::LaunchShape& shape,
                              absl::Span<const cuda::KernelArgument> arguments, Stream stream) = 0;

  // Graphs.
  virtual absl::Status BeginCapture(Stream stream) = 0;
  virtual absl::StatusOr<Graph> EndCapture(Stream stream) = 0;
  virtual absl::StatusOr<std::size_t> NodeCount(Graph graph) = 0;
  virtual absl::StatusOr<GraphExec> Instantiate(Graph graph) = 0;
  virtual absl::Status LaunchGraph(GraphExec graph, Stream stream) = 0;
  virtual absl::Status DestroyGraph(Graph graph) = 0;
  virtual absl::Status DestroyGraphExec(GraphExec graph) = 0;

  // Code blobs of a Program: cubin or PTX.
  virtual absl::StatusOr<Library> LoadCode(absl::Span<const std::uint8_t> code) = 0;
  virtual absl::StatusOr<cuda::KernelFunction> FindKernel(Library library, const std::string& name) = 0;
  virtual absl::Status UnloadCode(Library library) = 0;

  // The vendor's libraries.
  virtual absl::StatusOr<cuda::LibraryHandles> CreateLibraryHandles() = 0;
  virtual absl::Status DestroyLibraryHandles(const cuda::LibraryHandles& handles) = 0;
  /// "cublasLt 13.0.2, cudnn 9.19.0": part of the key of stored choices.
  virtual std::string LibraryVersions() = 0;

  // Named ranges for profilers (NVTX).
  virtual void PushRange(const char* name) = 0;
  virtual void PopRange() = 0;
};

}  // namespace mpc::runtime
