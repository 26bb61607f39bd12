// The table of CUDA calls over another one, with what the host waits for counted: how a test on hardware learns that a
// step needs no host, as the emulated GPU tells it in continuous integration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "runtime/cuda/cuda_api.h"

namespace mpc::test {

struct CallCounts {
  std::size_t graph_launches = 0;
  /// Calls with which the host waits for work on a stream, or may: SynchronizeStream, SynchronizeEvent, copies from or
  /// to memory that is not pinned, giving memory back.
  std::size_t waits = 0;
  /// Those of them that leave a stream without work: the device stands still until the host comes back. Waiting for a
  /// launch while another one is queued behind it is none.
  std::size_t drains = 0;
  /// Memory, streams, events, graphs, handles and code: made, or given back.
  std::size_t creations = 0;

  CallCounts operator-(const CallCounts& before) const {
    return {graph_launches - before.graph_launches, waits - before.waits, drains - before.drains,
            creations - before.creations};
  }
};

class CountingApi : public runtime::CudaApi {
 public:
  /// `api` outlives this one.
  explicit CountingApi(runtime::CudaApi& api) : api_(api) {}

  CallCounts counts() const;

  absl::StatusOr<int> DeviceCount() override { return api_.DeviceCount(); }
  absl::StatusOr<runtime::CudaDeviceProperties> Properties() override { return api_.Properties(); }
  absl::StatusOr<runtime::CudaMemoryInfo> MemoryInfo() override { return api_.MemoryInfo(); }
  absl::Status UseDevice() override { return api_.UseDevice(); }
  absl::StatusOr<void*> Malloc(std::size_t bytes) override { return Counted(api_.Malloc(bytes)); }
  absl::Status Free(void* memory) override;
  absl::StatusOr<void*> MallocHost(std::size_t bytes) override;
  absl::Status FreeHost(void* memory) override;
  absl::StatusOr<Stream> CreateStream() override { return Counted(api_.CreateStream()); }
  absl::Status DestroyStream(Stream stream) override { return Counted(api_.DestroyStream(stream)); }
  absl::Status SynchronizeStream(Stream stream) override;
  absl::StatusOr<Event> CreateEvent(bool timing) override { return Counted(api_.CreateEvent(timing)); }
  absl::Status DestroyEvent(Event event) override { return Counted(api_.DestroyEvent(event)); }
  absl::Status RecordEvent(Event event, Stream stream) override;
  absl::Status WaitEvent(Stream stream, Event event) override { return api_.WaitEvent(stream, event); }
  absl::Status SynchronizeEvent(Event event) override;
  absl::StatusOr<bool> EventDone(Event event) override { return api_.EventDone(event); }
  absl::StatusOr<double> ElapsedMilliseconds(Event from, Event to) override {
    return api_.ElapsedMilliseconds(from, to);
  }
  absl::Status Copy(void* to, const void* from, std::size_t bytes, runtime::CudaCopy kind, Stream stream) override;
  absl::Status Fill(void* to, std::uint8_t byte, std::size_t bytes, Stream stream) override;
  absl::Status Launch(const cuda::KernelFunction& function, const cuda::LaunchShape& shape,
                      absl::Span<const cuda::KernelArgument> arguments, Stream stream) override;
  absl::Status BeginCapture(Stream stream) override { return Counted(api_.BeginCapture(stream)); }
  absl::StatusOr<Graph> EndCapture(Stream stream) override { return Counted(api_.EndCapture(stream)); }
  absl::StatusOr<std::size_t> NodeCount(Graph graph) override { return api_.NodeCount(graph); }
  absl::StatusOr<GraphExec> Instantiate(Graph graph) override { return Counted(api_.Instantiate(graph)); }
  absl::Status LaunchGraph(GraphExec graph, Stream stream) override;
  absl::Status DestroyGraph(Graph graph) override { return Counted(api_.DestroyGraph(graph)); }
  absl::Status DestroyGraphExec(GraphExec graph) override { return Counted(api_.DestroyGraphExec(graph)); }
  absl::StatusOr<Library> LoadCode(absl::Span<const std::uint8_t> code) override {
    return Counted(api_.LoadCode(code));
  }
  absl::StatusOr<cuda::KernelFunction> FindKernel(Library library, const std::string& name) override {
    return api_.FindKernel(library, name);
  }
  absl::Status UnloadCode(Library library) override { return Counted(api_.UnloadCode(library)); }
  absl::StatusOr<cuda::LibraryHandles> CreateLibraryHandles() override { return Counted(api_.CreateLibraryHandles()); }
  absl::Status DestroyLibraryHandles(const cuda::LibraryHandles& handles) override {
    return Counted(api_.DestroyLibraryHandles(handles));
  }
  std::string LibraryVersions() override { return api_.LibraryVersions(); }
  void PushRange(const char* name) override { api_.PushRange(name); }
  void PopRange() override { api_.PopRange(); }

 private:
  /// Where an event stands: behind this much work of its stream.
  struct Recorded {
    Stream stream = nullptr;
    std::size_t work = 0;
  };

  template <typename T>
  T Counted(T result) {
    Count(&CallCounts::creations);
    return result;
  }
  void Count(std::size_t CallCounts::*field);
  void CountWork(Stream stream);
  bool IsPinned(const void* memory) const;

  runtime::CudaApi& api_;
  mutable std::mutex mutex_;
  CallCounts counts_;
  std::map<Stream, std::size_t> work_;  ///< put on each stream so far
  std::map<Event, Recorded> recorded_;
  std::map<const std::byte*, std::size_t> pinned_;  ///< bytes by address
};

}  // namespace mpc::test
