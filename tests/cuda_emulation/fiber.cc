#include "tests/cuda_emulation/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/cuda_emulation/sanitizer.h"

#ifndef __x86_64__
#include <ucontext.h>
#endif

#ifdef __x86_64__
// Saves what a call must preserve on the running stack, and takes it from the other. swapcontext would do the same,
// with two system calls for the signal mask.
extern "C" void mpc_emulation_switch(void** save, void* to);
asm(R"(
.text
.globl mpc_emulation_switch
.hidden mpc_emulation_switch
.type mpc_emulation_switch, @function
mpc_emulation_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size mpc_emulation_switch, .-mpc_emulation_switch
)");
#endif

namespace mpc::emulation {
namespace {

// Room for a kernel's largest arguments and local arrays; sanitizers enlarge frames.
constexpr std::size_t kStackBytes = kAddressSanitizer || kThreadSanitizer ? 512 * 1024 : 128 * 1024;

// The fiber that is being left, and the one that is being entered: read on the other side of a switch.
Fiber* leaving = nullptr;
Fiber* entering = nullptr;

}  // namespace

#ifndef __x86_64__
struct Fiber::Machine {
  ucontext_t context;
};
#endif

Fiber::Fiber() : record_(RunningFiberRecord()) {}

Fiber::Fiber(void (*body)(void* context), void* context, [[maybe_unused]] std::size_t number)
    : body_(body), context_(context), stack_bytes_(kStackBytes), record_(NewFiberRecord()) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  // A page below the stack catches one that grows too large.
  void* mapping = mmap(nullptr, kStackBytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED || mprotect(mapping, page, PROT_NONE) != 0) {
    std::perror("the CUDA emulation cannot map the stack of a thread");
    std::abort();
  }
  mapping_ = static_cast<std::byte*>(mapping);
  std::byte* bottom = mapping_ + page;
  stack_bottom_ = bottom;
#ifdef __x86_64__
  // Stacks that all start at the same place in a page would share few cache lines.
  constexpr std::size_t kLines = 24;
  auto* top = reinterpret_cast<std::uint64_t*>(bottom + kStackBytes - 64 - number % kLines * 128);
  *--top = 0;  // the return address of a function that never returns
  *--top = reinterpret_cast<std::uint64_t>(&Fiber::Start);
  for (int saved = 0; saved < 6; ++saved) *--top = 0;
  stack_pointer_ = top;
#else
  machine_ = new Machine;
  getcontext(&machine_->context);
  machine_->context.uc_stack.ss_sp = bottom;
  machine_->context.uc_stack.ss_size = kStackBytes;
  makecontext(&machine_->context, &Fiber::Start, 0);
#endif
}

Fiber::~Fiber() {
#ifndef __x86_64__
  delete machine_;
#endif
  if (mapping_ == nullptr) return;
  DeleteFiberRecord(record_);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  Unpoison(mapping_ + page, kStackBytes);
  munmap(mapping_, kStackBytes + page);
}

void Fiber::SwitchTo(Fiber& to) {
  leaving = this;
  entering = &to;
  StartSwitch(&fake_stack_, to.stack_bottom_, to.stack_bytes_);
#ifdef __x86_64__
  void* const to_pointer = to.stack_pointer_;
  SwitchFiberRecord(to.record_);
  mpc_emulation_switch(&stack_pointer_, to_pointer);
#else
  if (machine_ == nullptr) machine_ = new Machine;
  Machine* const to_machine = to.machine_;
  SwitchFiberRecord(to.record_);
  swapcontext(&machine_->context, &to_machine->context);
#endif
  FinishSwitch(fake_stack_, &leaving->stack_bottom_, &leaving->stack_bytes_);
}

void Fiber::Start() {
  Fiber& self = *entering;
  FinishSwitch(nullptr, &leaving->stack_bottom_, &leaving->stack_bytes_);
  self.body_(self.context_);
  std::abort();
}

}  // namespace mpc::emulation
