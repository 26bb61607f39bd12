#include "frontend/train/request_exit.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>

namespace mpc {
namespace {

constexpr std::array<int, 2> kSignals = {SIGINT, SIGTERM};

/// The first signal since the handlers were set; 0: none. A handler may touch nothing but lock-free atomics.
std::atomic<int> requested{0};
static_assert(std::atomic<int>::is_always_lock_free);

void HandleRequest(int signal) {
  int none = 0;
  if (requested.compare_exchange_strong(none, signal)) return;
  // The second one: it is blocked while this handler runs, so the default action follows on return.
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

/// A stack for the handlers of the thread that makes it, as long as the thread lives. Where the library multiplies f32
/// matrices without AVX-512, its code has its own stack in memory of the heap, which a handler would write past.
class HandlerStack {
 public:
  HandlerStack() {
    stack_t before{};
    if (::sigaltstack(nullptr, &before) != 0 || (before.ss_flags & SS_DISABLE) == 0) return;
    // The frame holds all registers, which the system knows the size of.
    const auto size = static_cast<std::size_t>(std::max<long>(::sysconf(_SC_SIGSTKSZ), 64 << 10));  // NOLINT: sysconf's
    memory_ = std::make_unique<char[]>(size);
    stack_t own{};
    own.ss_sp = memory_.get();
    own.ss_size = size;
    ::sigaltstack(&own, nullptr);
  }
  ~HandlerStack() {
    if (memory_ == nullptr) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    ::sigaltstack(&none, nullptr);
  }
  HandlerStack(const HandlerStack&) = delete;
  HandlerStack& operator=(const HandlerStack&) = delete;

 private:
  std::unique_ptr<char[]> memory_;  ///< null: the thread had a stack of its own
};

/// Sets the handlers for as long as an object of it lives. Runs that overlap share them.
class RequestHandlers {
 public:
  RequestHandlers() {
    thread_local const HandlerStack stack;
    const std::lock_guard<std::mutex> lock(Shared().mutex);
    if (Shared().users++ > 0) return;
    requested = 0;
    for (std::size_t i = 0; i < kSignals.size(); ++i) Set(kSignals[i], Shared().before[i]);
  }
  ~RequestHandlers() {
    const std::lock_guard<std::mutex> lock(Shared().mutex);
    if (--Shared().users > 0) return;
    for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &Shared().before[i], nullptr);
  }
  RequestHandlers(const RequestHandlers&) = delete;
  RequestHandlers& operator=(const RequestHandlers&) = delete;

 private:
  struct State {
    std::mutex mutex;
    int users = 0;
    std::array<struct sigaction, kSignals.size()> before{};
  };
  static State& Shared() {
    static State* state = new State;
    return *state;
  }
  static void Set(int signal, struct sigaction& before) {
    ::sigaction(signal, nullptr, &before);
    // As under nohup, or in a shell's background.
    if ((before.sa_flags & SA_SIGINFO) == 0 && before.sa_handler == SIG_IGN) return;
    struct sigaction action {};
    action.sa_handler = HandleRequest;
    ::sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART | SA_ONSTACK;  // reading data goes on
    ::sigaction(signal, &action, nullptr);
  }
};

}  // namespace

OnRequestExit::OnRequestExit(OnRequestExitOptions options) : options_(std::move(options)) {}

bool OnRequestExit::NeedsState(const RunContext& context) const { return requested != 0; }

void OnRequestExit::OnTrainBegin(RunContext& context) {
  signal_ = 0;
  context.KeepUntilEnd(std::make_shared<RequestHandlers>());
}

void OnRequestExit::OnStepEnd(RunContext& context) { Check(context); }

void OnRequestExit::OnEpochEnd(RunContext& context) { Check(context); }

void OnRequestExit::Check(RunContext& context) {
  if (signal_ != 0 || requested == 0) return;
  signal_ = requested;
  context.Interrupt(signal_);
}

void OnRequestExit::OnTrainEnd(RunContext& context) {
  if (context.signal() != 0) signal_ = context.signal();  // another process may have got it
  if (signal_ != 0 && !options_.save_path.empty()) context.Fail(context.SaveCheckpoint(options_.save_path));
}

}  // namespace mpc
