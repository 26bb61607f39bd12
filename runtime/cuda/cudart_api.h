// The table of CUDA calls over cudart, cuBLASLt, cuDNN and NVTX. cudart loads the driver. Without a driver every call
// here gives an error, but nothing fails to load.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "runtime/cuda/cuda_api.h"

namespace mpc::runtime {

class CudartApi : public CudaApi {
 public:
  /// Everything from now on uses this device of CUDA_VISIBLE_DEVICES. The default is 0.
  void set_device(int device) { device_ = device; }

  absl::StatusOr<int> DeviceCount() override;
  absl::StatusOr<CudaDeviceProperties> Properties() override;
  absl::StatusOr<CudaMemoryInfo> MemoryInfo() override;
  absl::Status UseDevice() override;

  absl::StatusOr<void*> Malloc(std::size_t bytes) override;
  absl::Status Free(void* memory) override;
  absl::StatusOr<void*> MallocHost(std::size_t bytes) override;
  absl::Status FreeHost(void* memory) override;

  absl::StatusOr<Stream> CreateStream() override;
  absl::Status DestroyStream(Stream stream) override;
  absl::Status SynchronizeStream(Stream stream) override;
  absl::StatusOr<Event> CreateEvent(bool timing) override;
  absl::Status DestroyEvent(Event event) override;
  absl::Status RecordEvent(Event event, Stream stream) override;
  absl::Status WaitEvent(Stream stream, Event event) override;
  absl::Status SynchronizeEvent(Event event) override;
  absl::StatusOr<bool> EventDone(Event event) override;
  absl::StatusOr<double> ElapsedMilliseconds(Event from, Event to) override;

  absl::Status Copy(void* to, const void* from, std::size_t bytes, CudaCopy kind, Stream stream) override;
  absl::Status Fill(void* to, std::uint8_t byte, std::size_t bytes, Stream stream) override;
  absl::Status Launch(const cuda::KernelFunction& function, const cuda::LaunchShape& shape,
                      absl::Span<const cuda::KernelArgument> arguments, Stream stream) override;

  absl::Status BeginCapture(Stream stream) override;
  absl::StatusOr<Graph> EndCapture(Stream stream) override;
  absl::StatusOr<std::size_t> NodeCount(Graph graph) override;
  absl::StatusOr<GraphExec> Instantiate(Graph graph) override;
  absl::Status LaunchGraph(GraphExec graph, Stream stream) override;
  absl::Status DestroyGraph(Graph graph) override;
  absl::Status DestroyGraphExec(GraphExec graph) override;

  absl::StatusOr<Library> LoadCode(absl::Span<const std::uint8_t> code) override;
  absl::StatusOr<cuda::KernelFunction> FindKernel(Library library, const std::string& name) override;
  absl::Status UnloadCode(Library library) override;

  absl::StatusOr<cuda::LibraryHandles> CreateLibraryHandles() override;
  absl::Status DestroyLibraryHandles(const cuda::LibraryHandles& handles) override;
  std::string LibraryVersions() override;

  void PushRange(const char* name) override;
  void PopRange() override;

 private:
  int device_ = 0;
  bool starts_early_ = false;  ///< set by Properties: compute capability 9.0 or later
};

/// OK, or an error with `call` and with CUDA's name and text of `error`. The code is RESOURCE_EXHAUSTED for memory,
/// UNAVAILABLE for a missing device or driver, and INTERNAL for the rest.
absl::Status CudaStatus(cudaError_t error, const std::string& call);

}  // namespace mpc::runtime
