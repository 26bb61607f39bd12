#include "tests/support/counted_allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace mpc::testing {
namespace {

std::atomic<bool> g_counting{false};
std::atomic<std::size_t> g_calls{0};
std::atomic<std::size_t> g_bytes{0};

void* Allocate(std::size_t bytes, std::size_t alignment) {
  if (g_counting) {
    ++g_calls;
    g_bytes += bytes;
  }
  const std::size_t taken = bytes == 0 ? 1 : bytes;
  void* data = std::aligned_alloc(alignment, (taken + alignment - 1) / alignment * alignment);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

/// Not inlined: the compiler would see memory of a `new` that it did not inline go to std::free, and warn.
[[gnu::noinline]] void Free(void* data) { std::free(data); }

}  // namespace

void StartCounting() {
  g_calls = 0;
  g_bytes = 0;
  g_counting = true;
}

Allocations StopCounting() {
  g_counting = false;
  return {g_calls, g_bytes};
}

}  // namespace mpc::testing

void* operator new(std::size_t bytes) { return mpc::testing::Allocate(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return mpc::testing::Allocate(bytes, static_cast<std::size_t>(alignment));
}
// The library's own form calls the first one above, that of the address sanitizer does not.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* data) noexcept { mpc::testing::Free(data); }
void operator delete(void* data, const std::nothrow_t&) noexcept { mpc::testing::Free(data); }
void operator delete(void* data, std::size_t) noexcept { mpc::testing::Free(data); }
void operator delete(void* data, std::align_val_t) noexcept { mpc::testing::Free(data); }
void operator delete(void* data, std::size_t, std::align_val_t) noexcept { mpc::testing::Free(data); }
