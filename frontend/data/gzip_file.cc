#include "frontend/data/gzip_file.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace mpc::data::internal {
namespace {

struct CloseGzip {
  void operator()(gzFile file) const { gzclose_r(file); }
};

/// OK unless the last read failed or the file ended inside its compressed stream.
absl::Status ReadStatus(gzFile file, const std::string& path) {
  int code = Z_OK;
  const char* message = gzerror(file, &code);
  switch (code) {
    case Z_OK:
    case Z_STREAM_END:
      return absl::OkStatus();
    case Z_ERRNO:
      return absl::UnavailableError(absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
    case Z_BUF_ERROR:
      return absl::InvalidArgumentError(absl::StrCat(path, " is truncated: it ends inside its gzip stream"));
    default:
      return absl::InvalidArgumentError(absl::StrCat(path, " is a damaged gzip file: ", message));
  }
}

}  // namespace

absl::StatusOr<std::vector<std::uint8_t>> ReadMaybeGzipped(const std::string& path, std::size_t max_bytes) {
  errno = 0;
  const std::unique_ptr<gzFile_s, CloseGzip> file(gzopen(path.c_str(), "rb"));
  if (file == nullptr) {
    const std::string message = absl::StrCat("cannot open ", path, ": ", std::strerror(errno));
    return errno == ENOENT ? absl::NotFoundError(message) : absl::UnavailableError(message);
  }
  std::vector<std::uint8_t> content;
  // Chunks grow: resize clears each of them, and most files are smaller than the largest chunk.
  const std::size_t largest_chunk = std::clamp<std::size_t>(max_bytes, 1, std::size_t{1} << 18);
  for (std::size_t chunk = std::min<std::size_t>(largest_chunk, 4096);; chunk = std::min(largest_chunk, 2 * chunk)) {
    const std::size_t filled = content.size();
    content.resize(filled + chunk);
    const int count = gzread(file.get(), content.data() + filled, static_cast<unsigned>(chunk));
    content.resize(filled + static_cast<std::size_t>(count > 0 ? count : 0));
    if (absl::Status status = ReadStatus(file.get(), path); !status.ok()) return status;
    if (content.size() > max_bytes) {
      return absl::InvalidArgumentError(absl::StrCat(path, " holds more than ", max_bytes, " bytes"));
    }
    // gzread gives less than was asked for at the end alone.
    if (count < static_cast<int>(chunk)) return content;
  }
}

}  // namespace mpc::data::internal
