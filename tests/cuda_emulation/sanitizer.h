// What the emulation tells AddressSanitizer and ThreadSanitizer; nothing where they are not built in.
#pragma once

#include <cstddef>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace mpc::emulation {

#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kAddressSanitizer = true;
inline void Poison(const void* data, std::size_t bytes) { __asan_poison_memory_region(data, bytes); }
inline void Unpoison(const void* data, std::size_t bytes) { __asan_unpoison_memory_region(data, bytes); }
inline void StartSwitch(void** save, const void* bottom, std::size_t bytes) {
  __sanitizer_start_switch_fiber(save, bottom, bytes);
}
inline void FinishSwitch(void* saved, const void** old_bottom, std::size_t* old_bytes) {
  __sanitizer_finish_switch_fiber(saved, old_bottom, old_bytes);
}
#else
inline constexpr bool kAddressSanitizer = false;
inline void Poison(const void*, std::size_t) {}
inline void Unpoison(const void*, std::size_t) {}
inline void StartSwitch(void**, const void*, std::size_t) {}
inline void FinishSwitch(void*, const void**, std::size_t*) {}
#endif

// ThreadSanitizer keeps a call stack and a clock for each fiber. A switch orders what the two fibers do.
#ifdef __SANITIZE_THREAD__
inline constexpr bool kThreadSanitizer = true;
inline void* RunningFiberRecord() { return __tsan_get_current_fiber(); }
inline void* NewFiberRecord() { return __tsan_create_fiber(0); }
inline void DeleteFiberRecord(void* record) { __tsan_destroy_fiber(record); }
// Inlined always: a call would be entered on the record of one fiber and left on that of the other.
[[gnu::always_inline]] inline void SwitchFiberRecord(void* record) { __tsan_switch_to_fiber(record, 0); }
#else
inline constexpr bool kThreadSanitizer = false;
inline void* RunningFiberRecord() { return nullptr; }
inline void* NewFiberRecord() { return nullptr; }
inline void DeleteFiberRecord(void*) {}
inline void SwitchFiberRecord(void*) {}
#endif

}  // namespace mpc::emulation
