#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "frontend/data/digits.h"
#include "frontend/data/gzip_file.h"
#include "tests/fuzz/readers.h"
#include "tests/fuzz/verdict.h"

namespace mpc::fuzz {
namespace {

/// Enough for many rows, little enough that a bomb of zeros is quick.
constexpr std::size_t kMaxContentBytes = std::size_t{1} << 13;

/// A file in memory, since the reader takes a path.
class MemoryFile {
 public:
  MemoryFile() : file_(::memfd_create("fuzzed-input", 0)) { Require(file_ >= 0, "there is no memory file"); }
  ~MemoryFile() { ::close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  void Write(absl::Span<const std::uint8_t> content) const {
    const auto size = static_cast<::ssize_t>(content.size());
    Require(::ftruncate(file_, 0) == 0 && ::pwrite(file_, content.data(), content.size(), 0) == size,
            "the memory file cannot be written");
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

void Parse(absl::Span<const std::uint8_t> content) {
  const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
  const absl::StatusOr<data::internal::LabelledImages> digits = data::internal::ParseDigits(text, kOrigin);
  if (!digits.ok()) return RequireRefusal(digits.status());
  Require(digits->pixels.size() == digits->labels.size() * 64, "a row has not 64 pixels");
}

}  // namespace

void ReadGzipRows(absl::Span<const std::uint8_t> input) {
  static const MemoryFile file;
  file.Write(input);
  const absl::StatusOr<std::vector<std::uint8_t>> content =
      data::internal::ReadMaybeGzipped(file.path(), kMaxContentBytes);
  if (!content.ok()) return RequireRefusal(content.status(), file.path());
  Parse(*content);
}

}  // namespace mpc::fuzz
