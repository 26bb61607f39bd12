// Zero-initialised memory aligned to a cache line and to the widest vector.
#pragma once

#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <utility>

namespace mpc::runtime {

class AlignedBuffer {
 public:
  static constexpr std::size_t kAlignment = 64;

  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t bytes)
      : data_(static_cast<std::byte*>(::operator new (Padded(bytes), std::align_val_t{kAlignment}))), bytes_(bytes) {
    std::memset(data_.get(), 0, Padded(bytes));
  }

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  std::size_t size() const { return bytes_; }

  /// `bytes` rounded up to the alignment, at least one line. Of more than an object can have it is the most that one
  /// can have, which no memory holds.
  static constexpr std::size_t Padded(std::size_t bytes) {
    constexpr std::size_t kMost = std::numeric_limits<std::ptrdiff_t>::max() / kAlignment * kAlignment;
    if (bytes > kMost) return kMost;
    return bytes == 0 ? kAlignment : (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

 private:
  struct Free {
    void operator()(std::byte* data) const { ::operator delete (data, std::align_val_t{kAlignment}); }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t bytes_ = 0;
};

}  // namespace mpc::runtime
