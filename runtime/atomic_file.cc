#include "runtime/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/descriptor.h"

namespace mpc::runtime {
namespace {

constexpr int kMaxAttempts = 1000;
constexpr int kMostLinks = 40;  // as Linux

absl::Status SystemError(absl::string_view action, const std::string& path) {
  const int error = errno;
  return absl::ErrnoToStatus(error, absl::StrCat("cannot ", action, " \"", path, "\""));
}

std::string FolderOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

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

absl::Status WriteChunks(int descriptor, absl::Span<const absl::Span<const std::uint8_t>> chunks,
                         const std::string& path) {
  for (absl::Span<const std::uint8_t> chunk : chunks) {
    if (absl::Status status = WriteAll(descriptor, chunk, path); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status WriteNewFile(const std::string& temporary, absl::Span<const absl::Span<const std::uint8_t>> chunks,
                          const FileWriting& writing) {
  const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, writing.permissions));
  if (file.get() < 0) return SystemError("create", temporary);
  if (absl::Status status = WriteChunks(file.get(), chunks, temporary); !status.ok()) return status;
  if (writing.sync && ::fsync(file.get()) != 0) return SystemError("flush", temporary);
  return absl::OkStatus();
}

/// The descriptor of this process that `path` names: 1 of "/proc/self/fd/1".
std::optional<int> NamedDescriptor(absl::string_view path) {
  int descriptor = 0;
  const bool named = absl::ConsumePrefix(&path, "/proc/self/fd/") || absl::ConsumePrefix(&path, "/dev/fd/");
  if (!named || !absl::SimpleAtoi(path, &descriptor) || descriptor < 0) return std::nullopt;
  return descriptor;
}

/// The destination of a path's content.
struct Destination {
  enum class Kind { kFile, kStraight, kDescriptor };
  Kind kind = Kind::kFile;
  std::string path;  ///< behind all links
  int descriptor = -1;
};

absl::StatusOr<Destination> DestinationOf(const std::string& path) {
  absl::StatusOr<std::string> target = FollowLinks(path);
  if (!target.ok()) return target.status();
  if (const std::optional<int> descriptor = NamedDescriptor(*target)) {
    return Destination{Destination::Kind::kDescriptor, path, *descriptor};
  }
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0 || S_ISREG(found.st_mode)) {
    return Destination{Destination::Kind::kFile, *std::move(target)};
  }
  if (S_ISDIR(found.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is a folder, not a file"));
  }
  return Destination{Destination::Kind::kStraight, path};
}

absl::Status WriteStraight(const Destination& destination, absl::Span<const absl::Span<const std::uint8_t>> chunks) {
  const bool is_open = destination.kind == Destination::Kind::kDescriptor;
  const Descriptor file(is_open ? ::dup(destination.descriptor)
                                : ::open(destination.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (file.get() < 0) return SystemError("open", destination.path);
  return WriteChunks(file.get(), chunks, destination.path);
}

/// The new name is durable only once its folder is.
absl::Status FlushFolder(const std::string& folder) {
  const Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0) return SystemError("open the folder", folder);
  // File systems without folder flushing answer EINVAL.
  if (::fsync(directory.get()) != 0 && errno != EINVAL) return SystemError("flush the folder", folder);
  return absl::OkStatus();
}

absl::Status WriteBeside(const std::string& path, absl::Span<const absl::Span<const std::uint8_t>> chunks,
                         const FileWriting& writing) {
  static std::atomic<unsigned> counter{0};
  std::string temporary;
  absl::Status written;
  // A process that was killed may have left a file of this name: in containers the same process ids come again.
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    temporary = absl::StrCat(path, ".tmp-", ::getpid(), "-", counter.fetch_add(1));
    written = WriteNewFile(temporary, chunks, writing);
    if (!absl::IsAlreadyExists(written)) break;
  }
  if (!written.ok()) {
    // Not ours to remove if another process's file of that name is why creating failed.
    if (!absl::IsAlreadyExists(written)) ::unlink(temporary.c_str());
    return written;
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    absl::Status status = SystemError("replace", path);
    ::unlink(temporary.c_str());
    return status;
  }
  return writing.sync ? FlushFolder(FolderOf(path)) : absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> FollowLinks(const std::string& path) {
  std::filesystem::path at = path;
  for (int link = 0; link < kMostLinks; ++link) {
    if (NamedDescriptor(at.native()).has_value()) return at.string();
    std::error_code no_link;
    const std::filesystem::path target = std::filesystem::read_symlink(at, no_link);
    if (no_link) return at.string();
    at = at.parent_path() / target;
  }
  return absl::FailedPreconditionError(absl::StrCat("'", path, "' leads through more than ", kMostLinks, " links"));
}

absl::Status CheckWritable(const std::string& path) {
  const absl::StatusOr<Destination> destination = DestinationOf(path);
  if (!destination.ok()) return destination.status();
  const bool new_file = destination->kind == Destination::Kind::kFile;
  const std::string place = new_file ? FolderOf(destination->path) : destination->path;
  std::error_code error;
  if (new_file && !std::filesystem::is_directory(place, error)) {
    return absl::NotFoundError(absl::StrCat("'", path, "' cannot be written: there is no folder '", place, "'"));
  }
  return ::access(place.c_str(), W_OK) == 0 ? absl::OkStatus() : SystemError("write", place);
}

absl::Status WriteFileAtomically(const std::string& path, absl::Span<const absl::Span<const std::uint8_t>> chunks,
                                 const FileWriting& writing) {
  const absl::StatusOr<Destination> destination = DestinationOf(path);
  if (!destination.ok()) return destination.status();
  if (destination->kind != Destination::Kind::kFile) return WriteStraight(*destination, chunks);
  return WriteBeside(destination->path, chunks, writing);
}

absl::Status WriteTextFile(const std::string& path, std::string_view text, const FileWriting& writing) {
  const absl::Span<const std::uint8_t> bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  return WriteFileAtomically(path, {bytes}, writing);
}

}  // namespace mpc::runtime
