// A file in memory, for readers that take a path.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "absl/types/span.h"
#include "tests/fuzz/verdict.h"

namespace mpc::fuzz {

class MemoryFile {
 public:
  MemoryFile() : file_(::memfd_create("fuzzed-input", 0)) { Require(file_ >= 0, "there is no memory file"); }
  ~MemoryFile() { ::close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  /// Replaces the content. Who writes to path() next begins at the first byte.
  void Write(absl::Span<const std::uint8_t> content) const {
    const auto size = static_cast<::ssize_t>(content.size());
    Require(::ftruncate(file_, 0) == 0 && ::pwrite(file_, content.data(), content.size(), 0) == size &&
                ::lseek(file_, 0, SEEK_SET) == 0,
            "the memory file cannot be written");
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

}  // namespace mpc::fuzz
