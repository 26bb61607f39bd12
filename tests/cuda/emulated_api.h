// A GPU on the host behind the runtime's table of CUDA calls. Kernels run in the emulation; memory, streams, events and
// graphs are kept as CUDA keeps them, so that what would fail or corrupt there is found here:
//  * every call is counted, and the n-th of a kind can be made to fail;
//  * work runs as late as CUDA allows (kLate: when somebody waits for it) or as early (kAtOnce): what depends on luck
//    gives different bits;
//  * device and host addresses are told apart; overruns, double frees, leaks and the use of freed memory are reported;
//  * captures record copies of arguments; what must not happen during one is refused;
//  * a launch of a graph runs its nodes in an order that is drawn among those that the graph allows.
// Calls may come from several threads, as CUDA's may. One runs at a time, with the work that it makes the device do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/cuda_api.h"
#include "tests/cuda/emulated_graph.h"
#include "tests/cuda/emulated_memory.h"
#include "tests/cuda/emulated_streams.h"
#include "tests/cuda/emulated_threads.h"

namespace mpc::emulation {

enum class Schedule { kLate, kAtOnce };

struct EmulatedGpu {
  Schedule schedule = Schedule::kLate;
  int devices = 1;
  absl::Status count_error;  ///< what DeviceCount gives instead
  std::size_t memory_bytes = std::size_t{1} << 30;
  int compute_capability = 90;
  int driver_version = 13000;
  int runtime_version = 13000;
  std::string id = "GPU-0";
  /// EventDone lets the device go on, as time does: for hosts that poll and wait for nothing.
  bool polls_advance = false;
};

class EmulatedApi : public runtime::CudaApi {
 public:
  explicit EmulatedApi(EmulatedGpu gpu = {});

  /// How often `call` was made: "Malloc", "SynchronizeStream", "LaunchGraph", ...
  std::size_t calls(const std::string& call) const;
  /// Calls that allocated, created, captured or instantiated something.
  std::size_t creations() const;
  /// Calls with which the host waited for the device.
  std::size_t waits() const;
  /// Kernels that ran, those of graphs included.
  std::size_t kernels_run() const { return kernels_run_; }
  /// Nodes of the graph that was captured last.
  std::size_t last_graph_nodes() const { return last_graph_nodes_; }
  const std::vector<std::string>& ranges() const { return ranges_; }

  /// Makes the `n`-th call of `call` from now on (1: the next) fail once with `error`.
  void FailCall(const std::string& call, std::size_t n, absl::Status error) { failures_[call] = {n, std::move(error)}; }
  /// Makes the `n`-th kernel that runs from now on fail as an illegal address does: whoever waits learns of it, and
  /// every later call fails too.
  void FailKernel(std::size_t n) { kernels_to_failure_ = n; }
  /// A kernel that code blobs may name.
  void AddCode(const std::string& name, cuda::KernelFunction function) { code_[name] = function; }

  /// Puts work on a stream, or into what it captures as one node: what a library of the vendor does.
  absl::Status EnqueueWork(Stream stream, StreamWork work);
  /// Errors: a range that is not inside one allocation of the device.
  absl::Status CheckDeviceMemory(const void* memory, std::size_t bytes);

  /// Misuse so far. Empty is what tests want.
  std::vector<std::string> Problems() const;
  /// Whether the calling thread has called UseDevice.
  bool IsUsedByThisThread() const { return threads_.IsUsed(); }
  /// Calls that take the thread's current device, of threads that had not called UseDevice. Empty is what tests want.
  std::vector<std::string> StrayCalls() const { return threads_.strays(); }
  /// Memory, streams, events, graphs, code that nobody gave back.
  std::vector<std::string> Alive() const;
  std::size_t device_bytes_used() const { return memory_.device_bytes_used(); }

  absl::StatusOr<int> DeviceCount() override;
  absl::StatusOr<runtime::CudaDeviceProperties> Properties() override;
  absl::StatusOr<runtime::CudaMemoryInfo> MemoryInfo() override;
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
  absl::Status Copy(void* to, const void* from, std::size_t bytes, runtime::CudaCopy kind, Stream stream) override;
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
  std::string LibraryVersions() override { return "none"; }
  void PushRange(const char* name) override;
  void PopRange() override;

 private:
  /// Recursive: the calls below are made of each other.
  using Mutex = std::recursive_mutex;
  using Lock = std::lock_guard<Mutex>;
  struct Code {};
  /// Things that are known by their address.
  template <typename T>
  using Owned = std::map<void*, std::unique_ptr<T>>;

  /// Counts the call; gives the error that it was told to give, or the one that stays.
  absl::Status Enter(const std::string& call);
  /// Enter of a call that is forbidden while a stream captures.
  absl::Status EnterOutsideCapture(const std::string& call);
  absl::Status Misuse(const std::string& text);
  /// `status`, noted as misuse if it is an error.
  absl::Status Note(const absl::Status& status);
  template <typename T>
  absl::StatusOr<T*> Find(const Owned<T>& things, void* thing, const char* what);
  template <typename T>
  absl::StatusOr<void*> Make(const std::string& call, Owned<T>& things, T value);
  template <typename T>
  absl::Status Destroy(const std::string& call, Owned<T>& things, void* thing, const char* what);
  /// Puts work on a stream, or into what it captures.
  absl::Status Enqueue(Stream stream, StreamWork work);
  absl::Status Enqueue(Stream stream, Work work) { return Enqueue(stream, StreamWork{std::move(work)}); }
  /// Runs `work` on the device: its first error stays.
  absl::Status Finished(const absl::Status& status);
  absl::Status RunKernel(const cuda::KernelFunction& function, const cuda::LaunchShape& shape,
                         const std::vector<std::vector<std::byte>>& arguments);
  absl::Status CheckCopy(void* to, const void* from, std::size_t bytes, runtime::CudaCopy kind);

  Mutex mutex_;
  DeviceThreads threads_;
  EmulatedGpu gpu_;
  EmulatedMemory memory_;
  std::map<std::string, std::size_t> calls_;
  std::map<std::string, std::pair<std::size_t, absl::Status>> failures_;
  std::size_t kernels_to_failure_ = 0;
  std::size_t kernels_run_ = 0;
  std::size_t last_graph_nodes_ = 0;
  absl::Status sticky_;
  bool capturing_ = false;
  int open_ranges_ = 0;
  std::vector<std::string> problems_, ranges_;
  Owned<EmulatedStream> streams_;
  Owned<EmulatedEvent> events_;
  Owned<GraphWork> graphs_, graph_execs_;
  GraphWork captured_;
  std::uint64_t graph_launches_ = 0;
  Owned<Code> libraries_;
  std::map<std::string, cuda::KernelFunction> code_;
};

}  // namespace mpc::emulation
