#include "tests/cuda/emulated_api.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/cuda_emulation/emulator.h"

namespace mpc::emulation {

using runtime::CudaCopy;

EmulatedApi::EmulatedApi(EmulatedGpu gpu) : gpu_(std::move(gpu)), memory_(gpu_.memory_bytes) {}

std::size_t EmulatedApi::calls(const std::string& call) const {
  const auto found = calls_.find(call);
  return found == calls_.end() ? 0 : found->second;
}

std::size_t EmulatedApi::creations() const {
  std::size_t count = 0;
  for (const char* call : {"Malloc", "MallocHost", "CreateStream", "CreateEvent", "BeginCapture", "Instantiate",
                           "LoadCode", "CreateLibraryHandles"}) {
    count += calls(call);
  }
  return count;
}

std::size_t EmulatedApi::waits() const { return calls("SynchronizeStream") + calls("SynchronizeEvent"); }

std::vector<std::string> EmulatedApi::Problems() const {
  std::vector<std::string> problems = problems_;
  for (std::string& overrun : memory_.Overruns()) problems.push_back(std::move(overrun));
  if (open_ranges_ != 0) problems.push_back(absl::StrCat(open_ranges_, " profiler ranges were not closed"));
  return problems;
}

std::vector<std::string> EmulatedApi::Alive() const {
  std::vector<std::string> alive = memory_.Alive();
  const auto add = [&alive](std::size_t count, const char* what) {
    if (count > 0) alive.push_back(absl::StrCat(count, " ", what));
  };
  add(streams_.size(), "streams");
  add(events_.size(), "events");
  add(graphs_.size(), "graphs");
  add(graph_execs_.size(), "instantiated graphs");
  add(libraries_.size(), "code libraries");
  return alive;
}

absl::Status EmulatedApi::Misuse(const std::string& text) {
  problems_.push_back(text);
  return absl::InternalError(absl::StrCat("cudaErrorInvalidValue: ", text));
}

absl::Status EmulatedApi::Note(const absl::Status& status) {
  return status.ok() ? status : Misuse(std::string(status.message()));
}

absl::Status EmulatedApi::Enter(const std::string& call) {
  ++calls_[call];
  threads_.Note(call);
  if (const auto found = failures_.find(call); found != failures_.end() && --found->second.first == 0) {
    const absl::Status error = found->second.second;
    failures_.erase(found);
    return error;
  }
  return sticky_;
}

absl::Status EmulatedApi::EnterOutsideCapture(const std::string& call) {
  if (capturing_) return Misuse(absl::StrCat(call, " during a capture"));
  return Enter(call);
}

template <typename T>
absl::StatusOr<T*> EmulatedApi::Find(const Owned<T>& things, void* thing, const char* what) {
  const auto found = things.find(thing);
  if (found == things.end()) return Misuse(absl::StrCat("used what is no ", what, ", or one that was destroyed"));
  return found->second.get();
}

template <typename T>
absl::StatusOr<void*> EmulatedApi::Make(const std::string& call, Owned<T>& things, T value) {
  const Lock lock(mutex_);
  if (absl::Status status = EnterOutsideCapture(call); !status.ok()) return status;
  auto thing = std::make_unique<T>(std::move(value));
  void* const address = thing.get();
  things[address] = std::move(thing);
  return address;
}

template <typename T>
absl::Status EmulatedApi::Destroy(const std::string& call, Owned<T>& things, void* thing, const char* what) {
  const Lock lock(mutex_);
  const absl::Status status = Enter(call);
  if (absl::StatusOr<T*> found = Find(things, thing, what); !found.ok()) return found.status();
  things.erase(thing);
  return status;
}

absl::StatusOr<int> EmulatedApi::DeviceCount() {
  const Lock lock(mutex_);
  if (absl::Status status = Enter("DeviceCount"); !status.ok()) return status;
  if (!gpu_.count_error.ok()) return gpu_.count_error;
  return gpu_.devices;
}

absl::StatusOr<runtime::CudaDeviceProperties> EmulatedApi::Properties() {
  const Lock lock(mutex_);
  if (absl::Status status = Enter("Properties"); !status.ok()) return status;
  runtime::CudaDeviceProperties properties;
  properties.name = "Emulated GPU";
  properties.id = gpu_.id;
  properties.compute_capability = gpu_.compute_capability;
  properties.multiprocessors = 4;
  properties.memory_bytes = gpu_.memory_bytes;
  properties.driver_version = gpu_.driver_version;
  properties.runtime_version = gpu_.runtime_version;
  return properties;
}

absl::StatusOr<runtime::CudaMemoryInfo> EmulatedApi::MemoryInfo() {
  const Lock lock(mutex_);
  if (absl::Status status = Enter("MemoryInfo"); !status.ok()) return status;
  return runtime::CudaMemoryInfo{memory_.device_bytes() - memory_.device_bytes_used(), memory_.device_bytes()};
}

absl::Status EmulatedApi::UseDevice() {
  const Lock lock(mutex_);
  threads_.Use();
  ++calls_["UseDevice"];
  return absl::OkStatus();
}

absl::StatusOr<void*> EmulatedApi::Malloc(std::size_t bytes) {
  const Lock lock(mutex_);
  if (absl::Status status = EnterOutsideCapture("Malloc"); !status.ok()) return status;
  return memory_.Allocate(bytes, MemoryKind::kDevice);
}

absl::Status EmulatedApi::Free(void* memory) {
  const Lock lock(mutex_);
  const absl::Status status = EnterOutsideCapture("Free");
  // CUDA waits for all work before it frees device memory.
  for (const auto& [address, stream] : streams_) Finished(RunAll(*stream)).IgnoreError();
  if (absl::Status released = Note(memory_.Release(memory, MemoryKind::kDevice)); !released.ok()) return released;
  return status;
}

absl::StatusOr<void*> EmulatedApi::MallocHost(std::size_t bytes) {
  const Lock lock(mutex_);
  if (absl::Status status = EnterOutsideCapture("MallocHost"); !status.ok()) return status;
  return memory_.Allocate(bytes, MemoryKind::kPinned);
}

absl::Status EmulatedApi::FreeHost(void* memory) {
  const Lock lock(mutex_);
  const absl::Status status = EnterOutsideCapture("FreeHost");
  if (absl::Status released = Note(memory_.Release(memory, MemoryKind::kPinned)); !released.ok()) return released;
  return status;
}

absl::StatusOr<runtime::CudaApi::Stream> EmulatedApi::CreateStream() {
  return Make("CreateStream", streams_, EmulatedStream());
}

absl::Status EmulatedApi::DestroyStream(Stream stream) {
  const Lock lock(mutex_);
  if (absl::StatusOr<EmulatedStream*> found = Find(streams_, stream, "stream"); found.ok()) {
    Finished(RunAll(**found)).IgnoreError();
  }
  return Destroy("DestroyStream", streams_, stream, "stream");
}

absl::Status EmulatedApi::SynchronizeStream(Stream stream) {
  const Lock lock(mutex_);
  if (absl::Status status = EnterOutsideCapture("SynchronizeStream"); !status.ok()) return status;
  const absl::StatusOr<EmulatedStream*> found = Find(streams_, stream, "stream");
  return found.ok() ? Finished(RunAll(**found)) : found.status();
}

absl::StatusOr<runtime::CudaApi::Event> EmulatedApi::CreateEvent(bool timing) {
  EmulatedEvent event;
  event.timing = timing;
  return Make("CreateEvent", events_, event);
}

absl::Status EmulatedApi::DestroyEvent(Event event) {
  const Lock lock(mutex_);
  if (const auto found = events_.find(event); found != events_.end()) {
    Finished(RunUntil(*found->second)).IgnoreError();
    for (const auto& [address, stream] : streams_) {
      // A stream may still wait for the event.
      Finished(RunAll(*stream)).IgnoreError();
    }
  }
  return Destroy("DestroyEvent", events_, event, "event");
}

absl::Status EmulatedApi::RecordEvent(Event event, Stream stream) {
  const Lock lock(mutex_);
  if (absl::Status status = Enter("RecordEvent"); !status.ok()) return status;
  const absl::StatusOr<EmulatedEvent*> recorded = Find(events_, event, "event");
  if (!recorded.ok()) return recorded.status();
  const absl::StatusOr<EmulatedStream*> on = Find(streams_, stream, "stream");
  if (!on.ok()) return on.status();
  (*recorded)->in_capture = (*on)->capturing;
  if ((*on)->capturing) {
    (*recorded)->behind = (*on)->behind;
    return absl::OkStatus();
  }
  if (capturing_) return Misuse("RecordEvent during a capture, on a stream that takes no part in it");
  EmulatedStream::Operation operation;
  operation.record = *recorded;
  operation.number = ++(*recorded)->recorded;
  (*recorded)->stream = *on;
  (*on)->operations.push_back(std::move(operation));
  return gpu_.schedule == Schedule::kAtOnce ? Finished(RunAll(**on)) : absl::OkStatus();
}

absl::Status EmulatedApi::WaitEvent(Stream stream, Event event) {
  const Lock lock(mutex_);
  if (absl::Status status = Enter("WaitEvent"); !status.ok()) return status;
  const absl::StatusOr<EmulatedEvent*> awaited = Find(events_, event, "event");
  if (!awaited.ok()) return awaited.status();
  const absl::StatusOr<EmulatedStream*> on = Find(streams_, stream, "stream");
  if (!on.ok()) return on.status();
  if ((*awaited)->in_capture) {
    // The stream joins the capture.
    if (!(*on)->operations.empty()) return Misuse("a capture on a stream with work on it");
    (*on)->capturing = true;
    (*on)->behind.insert((*on)->behind.end(), (*awaited)->behind.begin(), (*awaited)->behind.end());
    return absl::OkStatus();
  }
  if (capturing_) return Misuse("WaitEvent during a capture, for an event that was recorded outside it");
  EmulatedStream::Operation operation;
  operation.wait = *awaited;
  operation.number = (*awaited)->recorded;
  (*on)->operations.push_back(std::move(operation));
  return absl::OkStatus();
}

absl::Status EmulatedApi::SynchronizeEvent(Event event) {
  const Lock lock(mutex_);
  if (absl::Status status = EnterOutsideCapture("SynchronizeEvent"); !status.ok()) return status;
  const absl::StatusOr<EmulatedEvent*> found = Find(events_, event, "event");
  return found.ok() ? Finished(RunUntil(**found)) : found.status();
}

absl::StatusOr<bool> EmulatedApi::EventDone(Event event) {
  const Lock lock(mutex_);
  if (absl::Status status = EnterOutsideCapture("EventDone"); !status.ok()) return status;
  const absl::StatusOr<EmulatedEvent*> found = Find(events_, event, "event");
  if (!found.ok()) return found.status();
  if (gpu_.polls_advance) {
    if (absl::Status status = Finished(Advance(**found)); !status.ok()) return status;
  }
  return (*found)->reached == (*found)->recorded;
}

absl::StatusOr<double> EmulatedApi::ElapsedMilliseconds(Event from, Event to) {
  const Lock lock(mutex_);
  if (absl::Status status = Enter("ElapsedMilliseconds"); !status.ok()) return status;
  const absl::StatusOr<EmulatedEvent*> first = Find(events_, from, "event"), last = Find(events_, to, "event");
  if (!first.ok()) return first.status();
  if (!last.ok()) return last.status();
  const auto is_timed = [](const EmulatedEvent& event) { return event.timing && event.reached == event.recorded; };
  if (!is_timed(**first) || !is_timed(**last)) return Misuse("elapsed time of an event without a time");
  return (*last)->time_ms - (*first)->time_ms;
}

absl::StatusOr<runtime::CudaApi::Library> EmulatedApi::LoadCode(absl::Span<const std::uint8_t> code) {
  if (code.empty()) return absl::InternalError("cudaErrorInvalidKernelImage: the code is empty");
  return Make("LoadCode", libraries_, Code());
}

absl::StatusOr<cuda::KernelFunction> EmulatedApi::FindKernel(Library library, const std::string& name) {
  const Lock lock(mutex_);
  if (absl::Status status = Enter("FindKernel"); !status.ok()) return status;
  if (absl::StatusOr<Code*> found = Find(libraries_, library, "code library"); !found.ok()) return found.status();
  const auto found = code_.find(name);
  if (found == code_.end()) return absl::InternalError(absl::StrCat("cudaErrorSymbolNotFound: \"", name, "\""));
  return found->second;
}

absl::Status EmulatedApi::UnloadCode(Library library) {
  return Destroy("UnloadCode", libraries_, library, "code library");
}

absl::StatusOr<cuda::LibraryHandles> EmulatedApi::CreateLibraryHandles() {
  return absl::UnimplementedError("an emulated GPU has no vendor libraries: open it with use_libraries = false");
}

absl::Status EmulatedApi::DestroyLibraryHandles(const cuda::LibraryHandles&) {
  return Misuse("destroyed library handles that were never made");
}

void EmulatedApi::PushRange(const char* name) {
  const Lock lock(mutex_);
  ++open_ranges_;
  ranges_.emplace_back(name);
}

void EmulatedApi::PopRange() {
  const Lock lock(mutex_);
  --open_ranges_;
}

// Work on a stream.

absl::Status EmulatedApi::Finished(const absl::Status& status) {
  if (!status.ok() && sticky_.ok()) sticky_ = status;
  return sticky_;
}

absl::Status EmulatedApi::EnqueueWork(Stream stream, StreamWork work) {
  const Lock lock(mutex_);
  if (absl::Status status = Enter("EnqueueWork"); !status.ok()) return status;
  return Enqueue(stream, std::move(work));
}

absl::Status EmulatedApi::CheckDeviceMemory(const void* memory, std::size_t bytes) {
  const Lock lock(mutex_);
  return Note(memory_.CheckDevice(memory, bytes));
}

absl::Status EmulatedApi::Enqueue(Stream stream, StreamWork work) {
  const absl::StatusOr<EmulatedStream*> on = Find(streams_, stream, "stream");
  if (!on.ok()) return on.status();
  if ((*on)->capturing) {
    captured_.push_back({std::move(work), std::move((*on)->behind)});
    (*on)->behind = {captured_.size() - 1};
    return absl::OkStatus();
  }
  EmulatedStream::Operation operation;
  operation.work = std::move(work);
  (*on)->operations.push_back(std::move(operation));
  return gpu_.schedule == Schedule::kAtOnce ? Finished(RunAll(**on)) : absl::OkStatus();
}

absl::Status EmulatedApi::CheckCopy(void* to, const void* from, std::size_t bytes, CudaCopy kind) {
  absl::Status status = kind == CudaCopy::kDeviceToHost ? memory_.CheckHost(to, bytes) : memory_.CheckDevice(to, bytes);
  if (status.ok()) {
    status = kind == CudaCopy::kHostToDevice ? memory_.CheckHost(from, bytes) : memory_.CheckDevice(from, bytes);
  }
  return Note(status);
}

absl::Status EmulatedApi::Copy(void* to, const void* from, std::size_t bytes, CudaCopy kind, Stream stream) {
  const Lock lock(mutex_);
  if (absl::Status status = Enter("Copy"); !status.ok()) return status;
  if (absl::Status status = CheckCopy(to, from, bytes, kind); !status.ok()) return status;
  const void* host = kind == CudaCopy::kHostToDevice ? from : to;
  const bool pageable = kind != CudaCopy::kDeviceToDevice && !memory_.IsPinned(host);
  if (pageable && capturing_) return Misuse("a capture copies pageable memory");
  if (pageable && kind == CudaCopy::kHostToDevice) {
    // CUDA reads pageable memory before the call returns.
    const auto* first = static_cast<const std::byte*>(from);
    return Enqueue(stream, [to, staged = std::vector<std::byte>(first, first + bytes)] {
      std::memcpy(to, staged.data(), staged.size());
      return absl::OkStatus();
    });
  }
  absl::Status status = Enqueue(stream, [this, to, from, bytes, kind] {
    absl::Status valid = CheckCopy(to, from, bytes, kind);
    if (valid.ok()) std::memcpy(to, from, bytes);
    return valid;
  });
  return status.ok() && pageable ? Finished(RunAll(*streams_[stream])) : status;
}

absl::Status EmulatedApi::Fill(void* to, std::uint8_t byte, std::size_t bytes, Stream stream) {
  const Lock lock(mutex_);
  if (absl::Status status = Enter("Fill"); !status.ok()) return status;
  if (absl::Status status = Note(memory_.CheckDevice(to, bytes)); !status.ok()) return status;
  return Enqueue(stream, [this, to, byte, bytes] {
    absl::Status valid = Note(memory_.CheckDevice(to, bytes));
    if (valid.ok()) std::memset(to, byte, bytes);
    return valid;
  });
}

absl::Status EmulatedApi::RunKernel(const cuda::KernelFunction& function, const cuda::LaunchShape& shape,
                                    const std::vector<std::vector<std::byte>>& arguments) {
  ++kernels_run_;
  const bool fails = kernels_to_failure_ == 1;
  if (kernels_to_failure_ > 0) --kernels_to_failure_;
  if (fails) {
    return absl::InternalError("cudaErrorIllegalAddress: an illegal memory access was encountered");
  }
  std::vector<cuda::KernelArgument> list;
  for (const std::vector<std::byte>& argument : arguments) list.push_back({argument.data(), argument.size()});
  return Run(function, shape, list);
}

absl::Status EmulatedApi::Launch(const cuda::KernelFunction& function, const cuda::LaunchShape& shape,
                                 absl::Span<const cuda::KernelArgument> arguments, Stream stream) {
  const Lock lock(mutex_);
  if (absl::Status status = Enter("Launch"); !status.ok()) return status;
  std::vector<std::vector<std::byte>> copies;
  for (const cuda::KernelArgument& argument : arguments) {
    const auto* first = static_cast<const std::byte*>(argument.data);
    copies.emplace_back(first, first + argument.bytes);
  }
  return Enqueue(stream,
                 [this, function, shape, copies = std::move(copies)] { return RunKernel(function, shape, copies); });
}

// Graphs.

absl::Status EmulatedApi::BeginCapture(Stream stream) {
  const Lock lock(mutex_);
  if (absl::Status status = EnterOutsideCapture("BeginCapture"); !status.ok()) return status;
  const absl::StatusOr<EmulatedStream*> found = Find(streams_, stream, "stream");
  if (!found.ok()) return found.status();
  if (!(*found)->operations.empty()) return Misuse("a capture on a stream with work on it");
  capturing_ = (*found)->capturing = true;
  return absl::OkStatus();
}

absl::StatusOr<runtime::CudaApi::Graph> EmulatedApi::EndCapture(Stream stream) {
  const Lock lock(mutex_);
  const absl::StatusOr<EmulatedStream*> found = Find(streams_, stream, "stream");
  if (!found.ok()) return found.status();
  if (!(*found)->capturing) return Misuse("the end of a capture that was not begun");
  const std::vector<bool> joined = NodesUpTo(captured_, (*found)->behind);
  capturing_ = false;
  for (auto& [_, stream_of_capture] : streams_) {
    stream_of_capture->capturing = false;
    stream_of_capture->behind.clear();
  }
  for (auto& [_, event] : events_) event->in_capture = false;
  GraphWork work = std::exchange(captured_, {});
  if (std::ranges::count(joined, false) > 0) {
    return absl::InternalError("cudaErrorStreamCaptureUnjoined: work of another stream was not joined to the capture");
  }
  last_graph_nodes_ = work.size();
  return Make("EndCapture", graphs_, std::move(work));
}

absl::StatusOr<std::size_t> EmulatedApi::NodeCount(Graph graph) {
  const Lock lock(mutex_);
  if (absl::Status status = Enter("NodeCount"); !status.ok()) return status;
  const absl::StatusOr<GraphWork*> found = Find(graphs_, graph, "graph");
  if (!found.ok()) return found.status();
  return (*found)->size();
}

absl::StatusOr<runtime::CudaApi::GraphExec> EmulatedApi::Instantiate(Graph graph) {
  const Lock lock(mutex_);
  const absl::StatusOr<GraphWork*> found = Find(graphs_, graph, "graph");
  if (!found.ok()) return found.status();
  return Make("Instantiate", graph_execs_, **found);
}

absl::Status EmulatedApi::LaunchGraph(GraphExec graph, Stream stream) {
  const Lock lock(mutex_);
  if (absl::Status status = EnterOutsideCapture("LaunchGraph"); !status.ok()) return status;
  const absl::StatusOr<GraphWork*> found = Find(graph_execs_, graph, "instantiated graph");
  if (!found.ok()) return found.status();
  const GraphWork& nodes = **found;
  if (std::ranges::none_of(nodes, [](const GraphNode& node) { return node.work.ready != nullptr; })) {
    return Enqueue(stream, [&nodes, order = DrawOrder(nodes, ++graph_launches_)] {
      for (const std::size_t node : order) {
        if (absl::Status status = nodes[node].work.work(); !status.ok()) return status;
      }
      return absl::OkStatus();
    });
  }
  // A device that waits for another one in the middle of a graph goes on there.
  absl::Status status;
  for (const auto& [work, _] : nodes) {
    if (status.ok()) status = Enqueue(stream, StreamWork{[&run = work.work] { return run(); }, work.ready});
  }
  return status;
}

absl::Status EmulatedApi::DestroyGraph(Graph graph) { return Destroy("DestroyGraph", graphs_, graph, "graph"); }

absl::Status EmulatedApi::DestroyGraphExec(GraphExec graph) {
  return Destroy("DestroyGraphExec", graph_execs_, graph, "instantiated graph");
}

}  // namespace mpc::emulation
