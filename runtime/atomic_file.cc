#include "runtime/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/descriptor.h"

namespace mpc::runtime {
namespace {

constexpr int kMaxAttempts = 1000;
constexpr int kMostLinks = 40;  // as Linux
constexpr std::size_t kMostNameBytes = NAME_MAX;
constexpr std::string_view kUnfinished = ".tmp-";
constexpr mode_t kNewFile = 0666;  // before the umask

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

/// Whether this process, with its effective user, may write to a file or a folder.
bool MayWrite(const std::string& path) { return ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0; }

/// The permissions of the file at `path`; none where there is no file. Errors: it may not be written.
absl::StatusOr<std::optional<mode_t>> PermissionsOf(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return std::optional<mode_t>();
  if (!MayWrite(path)) return SystemError("write", path);
  return std::optional<mode_t>(found.st_mode & 0777);
}

/// Gives an open file its permissions. On a file system without permissions all files have the same, and none are set.
absl::Status SetPermissions(int descriptor, mode_t permissions, const std::string& path) {
  struct stat found {};
  if (::fstat(descriptor, &found) == 0 && (found.st_mode & 07777) == permissions) return absl::OkStatus();
  return ::fchmod(descriptor, permissions) == 0 ? absl::OkStatus() : SystemError("set the permissions of", path);
}

/// Makes `temporary`, with `kept` permissions if there are any. Others read nothing before it is complete. The open
/// file has a lock, by which others see that it is being written, where the file system has locks.
absl::StatusOr<Descriptor> WriteNewFile(const std::string& temporary,
                                        absl::Span<const absl::Span<const std::uint8_t>> chunks,
                                        const FileWriting& writing, std::optional<mode_t> kept) {
  const mode_t first = kept.has_value() ? *kept & 0700 : writing.permissions.value_or(kNewFile);
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, first));
  if (file.get() < 0) return SystemError("create", temporary);
  struct stat made {};
  // Who removes what nobody writes may have come before the lock.
  if (::flock(file.get(), LOCK_EX) == 0 && ::fstat(file.get(), &made) == 0 && made.st_nlink == 0) {
    return absl::AlreadyExistsError(absl::StrCat(temporary, " was removed while it was made"));
  }
  if (absl::Status status = WriteChunks(file.get(), chunks, temporary); !status.ok()) return status;
  if (kept.has_value()) {
    if (absl::Status status = SetPermissions(file.get(), *kept, temporary); !status.ok()) return status;
  }
  if (writing.sync && ::fsync(file.get()) != 0) return SystemError("flush", temporary);
  return file;
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
  if (path.empty()) return absl::InvalidArgumentError("the path of the file to write is empty");
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

/// Opens the folder of `path` to flush it: a new name is durable only once its folder is. A folder that may not be read
/// cannot be opened, and its names are then not flushed.
absl::StatusOr<std::optional<Descriptor>> OpenFolderOf(const std::string& path) {
  Descriptor directory(::open(FolderOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0) return std::optional<Descriptor>(std::move(directory));
  if (errno == EACCES) return std::optional<Descriptor>();
  return SystemError("open the folder of", path);
}

/// `name` without its end where it and `suffix` are more than a file system takes.
std::string_view Shortened(std::string_view name, std::string_view suffix) {
  return name.substr(0, kMostNameBytes - std::min(kMostNameBytes, suffix.size()));
}

/// The name of what `path` will be, while it is written.
std::string TemporaryName(const std::string& path, unsigned number) {
  const std::size_t slash = path.rfind('/');
  const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
  const std::string suffix = absl::StrCat(std::string(kUnfinished), ::getpid(), "-", number);
  const std::string name(Shortened(std::string_view(path).substr(begin), suffix));
  return absl::StrCat(path.substr(0, begin), name, suffix);
}

absl::Status Replace(const std::string& temporary, const std::string& path) {
  if (std::rename(temporary.c_str(), path.c_str()) == 0) return absl::OkStatus();
  absl::Status status = SystemError("replace", path);
  ::unlink(temporary.c_str());
  return status;
}

absl::Status WriteBeside(const std::string& path, absl::Span<const absl::Span<const std::uint8_t>> chunks,
                         const FileWriting& writing) {
  static std::atomic<unsigned> counter{0};
  absl::StatusOr<std::optional<mode_t>> kept = PermissionsOf(path);
  if (!kept.ok()) return kept.status();
  if (writing.permissions.has_value()) kept = std::nullopt;
  std::optional<Descriptor> folder;
  if (writing.sync) {
    absl::StatusOr<std::optional<Descriptor>> opened = OpenFolderOf(path);
    if (!opened.ok()) return opened.status();
    folder = *std::move(opened);
  }
  std::string temporary;
  absl::StatusOr<Descriptor> written = absl::UnknownError("not written");  // open, and locked, until it has its name
  // A process that was killed may have left a file of this name: in containers the same process ids come again.
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    temporary = TemporaryName(path, counter.fetch_add(1));
    written = WriteNewFile(temporary, chunks, writing, *kept);
    if (!absl::IsAlreadyExists(written.status())) break;
  }
  if (!written.ok()) {
    // Not ours to remove if another process's file of that name is why creating failed.
    if (!absl::IsAlreadyExists(written.status())) ::unlink(temporary.c_str());
    return written.status();
  }
  if (absl::Status status = Replace(temporary, path); !status.ok() || !folder.has_value()) return status;
  // File systems without folder flushing answer EINVAL.
  if (::fsync(folder->get()) != 0 && errno != EINVAL) return SystemError("flush the folder", FolderOf(path));
  return absl::OkStatus();
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
  if (!MayWrite(place)) return SystemError("write", place);
  return new_file ? PermissionsOf(destination->path).status() : absl::OkStatus();
}

absl::Status WriteFileAtomically(const std::string& path, absl::Span<const absl::Span<const std::uint8_t>> chunks,
                                 const FileWriting& writing) {
  const absl::StatusOr<Destination> destination = DestinationOf(path);
  if (!destination.ok()) return destination.status();
  if (destination->kind != Destination::Kind::kFile) return WriteStraight(*destination, chunks);
  return WriteBeside(destination->path, chunks, writing);
}

std::optional<std::string_view> UnfinishedName(std::string_view file) {
  const std::size_t dot = file.rfind(kUnfinished);
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view numbers = file.substr(dot + kUnfinished.size());
  const std::size_t hyphen = numbers.find('-');
  if (hyphen == std::string_view::npos) return std::nullopt;
  const auto is_number = [](std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
  };
  if (!is_number(numbers.substr(0, hyphen)) || !is_number(numbers.substr(hyphen + 1))) return std::nullopt;
  return file.substr(0, dot);
}

bool IsUnfinished(std::string_view file, std::string_view name) {
  const std::optional<std::string_view> begin = UnfinishedName(file);
  return begin.has_value() && *begin == Shortened(name, file.substr(begin->size()));
}

absl::Status WriteTextFile(const std::string& path, std::string_view text, const FileWriting& writing) {
  const absl::Span<const std::uint8_t> bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  return WriteFileAtomically(path, {bytes}, writing);
}

}  // namespace mpc::runtime
