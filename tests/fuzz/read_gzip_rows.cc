#include <string_view>

#include "frontend/data/digits.h"
#include "frontend/data/gzip_file.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/readers.h"
#include "tests/fuzz/verdict.h"

namespace mpc::fuzz {
namespace {

/// Enough for many rows, little enough that a bomb of zeros is quick.
constexpr std::size_t kMaxContentBytes = std::size_t{1} << 13;

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
