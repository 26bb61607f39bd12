// What the emulation tells AddressSanitizer; nothing where it is not built in.
#pragma once

#include <cstddef>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
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

}  // namespace mpc::emulation
