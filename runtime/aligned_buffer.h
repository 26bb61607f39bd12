// Zero-initialised memory aligned to a cache line and to the widest vector.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>

namespace mpc::runtime {

/// Errors: std::bad_alloc where the system does not give the memory.
///
/// A large buffer has pages that the system zeroes as they are first touched. What is never used takes no memory
/// and no time.
class AlignedBuffer {
 public:
  static constexpr std::size_t kAlignment = 64;

  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t bytes) : data_(Zeros(bytes)), bytes_(bytes) {}

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
  /// Frees what Zeros() allocated. A default member initializer would not be known where AlignedBuffer() needs it.
  struct Free {
    Free() : allocated(nullptr) {}
    explicit Free(void* memory) : allocated(memory) {}
    void operator()(std::byte* data) const;

    void* allocated;  ///< block of std::calloc that data lies in, or null where data is of operator new
  };
  using Block = std::unique_ptr<std::byte, Free>;

  static Block Zeros(std::size_t bytes);

  Block data_;
  std::size_t bytes_ = 0;
};

}  // namespace mpc::runtime
