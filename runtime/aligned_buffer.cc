#include "runtime/aligned_buffer.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace mpc::runtime {
namespace {

constexpr std::size_t kMegabyte = std::size_t{1} << 20;

}  // namespace

AlignedBuffer::Block AlignedBuffer::Zeros(std::size_t bytes) {
  const std::size_t padded = Padded(bytes);
  if (padded < bytes) throw std::bad_alloc();  // no object is so large
  if (padded < kMegabyte) {
    void* const data = ::operator new (padded, std::align_val_t{kAlignment});
    std::memset(data, 0, padded);
    return Block(static_cast<std::byte*>(data));
  }
  // The C library writes no zeros to pages that are fresh from the system. It has no such call with an alignment.
  void* memory = std::calloc(padded + kAlignment, 1);
  if (memory == nullptr) throw std::bad_alloc();
  std::size_t space = padded + kAlignment;
  void* data = memory;
  std::align(kAlignment, padded, data, space);
  return Block(static_cast<std::byte*>(data), Free(memory));
}

void AlignedBuffer::Free::operator()(std::byte* data) const {
  if (allocated == nullptr) {
    ::operator delete (data, std::align_val_t{kAlignment});
  } else {
    std::free(allocated);
  }
}

}  // namespace mpc::runtime
