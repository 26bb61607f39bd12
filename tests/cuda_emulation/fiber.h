// Threads that the program itself switches between: each has a stack, one runs at a time.
#pragma once

#include <cstddef>

namespace mpc::emulation {

/// A stack with what is needed to go on where it was left. Sanitizers are told of every switch.
class Fiber {
 public:
  /// The caller's own stack: where `SwitchTo` leaves when the first fiber starts.
  Fiber();
  /// A fiber that calls `body(context)`, which never returns, when it is first switched to. `number` spreads the
  /// stacks' starts over cache lines.
  Fiber(void (*body)(void* context), void* context, std::size_t number);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Goes on where `to` was left, and returns when somebody switches back to this fiber, which is the running one.
  void SwitchTo(Fiber& to);

 private:
  struct Machine;
  static void Start();

  void (*body_)(void* context) = nullptr;
  void* context_ = nullptr;
  std::byte* mapping_ = nullptr;
  const void* stack_bottom_ = nullptr;
  std::size_t stack_bytes_ = 0;
  void* fake_stack_ = nullptr;     ///< AddressSanitizer's
  void* record_ = nullptr;         ///< ThreadSanitizer's
  void* stack_pointer_ = nullptr;  ///< x86-64
  Machine* machine_ = nullptr;     ///< other processors
};

}  // namespace mpc::emulation
