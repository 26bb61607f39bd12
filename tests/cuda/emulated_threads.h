// Which threads have said that they use an emulated GPU.
#pragma once

#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace mpc::emulation {

/// CUDA takes a thread's current device for calls that make something or put work on a GPU. A thread that has named
/// none is on the first GPU of its process. There even a wait makes a context first.
class DeviceThreads {
 public:
  /// The calling thread names the GPU.
  void Use() { UsedByThread().insert(number_); }
  bool IsUsed() const { return UsedByThread().count(number_) > 0; }

  /// Notes `call` where it needs a current device and the calling thread has named none.
  void Note(const std::string& call) {
    static const std::set<std::string> takes_device = {
        "MemoryInfo",  "Malloc",    "MallocHost",       "CreateStream",      "CreateEvent",
        "Copy",        "Fill",      "Launch",           "BeginCapture",      "Instantiate",
        "LaunchGraph", "LoadCode",  "FindKernel",       "EnqueueWork",       "EventDone",
        "RecordEvent", "WaitEvent", "SynchronizeEvent", "SynchronizeStream", "Free"};
    if (!IsUsed() && takes_device.count(call) > 0) strays_.insert(call);
  }
  std::vector<std::string> strays() const { return {strays_.begin(), strays_.end()}; }

 private:
  /// The numbers of GPUs. Unlike addresses, they are not used again.
  static std::set<std::uint64_t>& UsedByThread() {
    thread_local std::set<std::uint64_t> used;
    return used;
  }
  static std::uint64_t NextNumber() {
    static std::atomic<std::uint64_t> numbers{0};
    return ++numbers;
  }

  const std::uint64_t number_ = NextNumber();
  std::set<std::string> strays_;
};

}  // namespace mpc::emulation
