#include "runtime/file_content.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace mpc::runtime {

absl::StatusOr<std::vector<std::uint8_t>> ReadFileContent(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (file == nullptr) {
    const std::string message = absl::StrCat("cannot open ", path, ": ", std::strerror(errno));
    return errno == ENOENT ? absl::NotFoundError(message) : absl::UnavailableError(message);
  }
  // A terminal or /dev/zero never ends.
  if (struct stat status; ::fstat(::fileno(file.get()), &status) == 0 && S_ISCHR(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is a device, not a file"));
  }
  std::vector<std::uint8_t> content;
  constexpr std::size_t kChunk = std::size_t{1} << 20;
  for (;;) {
    const std::size_t filled = content.size();
    content.resize(filled + kChunk);
    const std::size_t count = std::fread(content.data() + filled, 1, kChunk, file.get());
    content.resize(filled + count);
    if (count < kChunk) break;
  }
  if (std::ferror(file.get()) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  }
  return content;
}

}  // namespace mpc::runtime
