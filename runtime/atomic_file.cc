#include "runtime/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"

namespace mpc::runtime {
namespace {

constexpr int kMaxAttempts = 1000;

absl::Status SystemError(absl::string_view action, const std::string& path) {
  const int error = errno;
  return absl::ErrnoToStatus(error, absl::StrCat("cannot ", action, " \"", path, "\""));
}

std::string FolderOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// Closes the descriptor when it leaves scope.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

absl::Status WriteAll(int descriptor, absl::Span<const std::uint8_t> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return SystemError("write", path);
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status WriteNewFile(const std::string& temporary, absl::Span<const absl::Span<const std::uint8_t>> chunks) {
  const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0) return SystemError("create", temporary);
  for (absl::Span<const std::uint8_t> chunk : chunks) {
    if (absl::Status status = WriteAll(file.get(), chunk, temporary); !status.ok()) return status;
  }
  if (::fsync(file.get()) != 0) return SystemError("flush", temporary);
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteFileAtomically(const std::string& path, absl::Span<const absl::Span<const std::uint8_t>> chunks) {
  static std::atomic<unsigned> counter{0};
  std::string temporary;
  absl::Status written;
  // A process that was killed may have left a file of this name: in containers the same process ids come again.
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    temporary = absl::StrCat(path, ".tmp-", ::getpid(), "-", counter.fetch_add(1));
    written = WriteNewFile(temporary, chunks);
    if (!absl::IsAlreadyExists(written)) break;
  }
  if (!written.ok()) {
    // Not ours to remove if another process's file of that name is why creating failed.
    if (!absl::IsAlreadyExists(written)) ::unlink(temporary.c_str());
    return written;
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    const absl::Status status = SystemError("replace", path);
    ::unlink(temporary.c_str());
    return status;
  }
  // The new name is durable only once its folder is; file systems without folder flushing answer EINVAL.
  const std::string folder = FolderOf(path);
  const Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0) return SystemError("open the folder", folder);
  if (::fsync(directory.get()) != 0 && errno != EINVAL) return SystemError("flush the folder", folder);
  return absl::OkStatus();
}

}  // namespace mpc::runtime
