// The checksum of checkpoints and Program files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace mpc::runtime {

/// CRC-32 (zlib's, as in gzip) of everything that was added, in order. Finds every burst of up to 32 damaged bits.
class Checksum {
 public:
  void Add(const void* bytes, std::size_t size);
  /// The zero at the end keeps ("ab", "c") and ("a", "bc") apart.
  void Add(const std::string& text) { Add(text.c_str(), text.size() + 1); }
  std::uint32_t value() const { return value_; }
  /// Eight hexadecimal digits.
  std::string Text() const;

 private:
  std::uint32_t value_ = 0;
};

}  // namespace mpc::runtime
