#include "frontend/data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace mpc::data::internal {

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  const auto error = [&path](const char* what) {
    const std::string message = absl::StrCat("cannot ", what, " ", path, ": ", std::strerror(errno));
    return errno == ENOENT ? absl::NotFoundError(message) : absl::UnavailableError(message);
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return error("open");
  struct stat status = {};
  absl::Status problem;
  void* pages = nullptr;
  if (::fstat(file, &status) != 0) {
    problem = error("read");
  } else if (!S_ISREG(status.st_mode)) {
    problem = absl::InvalidArgumentError(absl::StrCat(path, " is no regular file, so it cannot be mapped"));
  } else if (status.st_size > 0) {
    pages = ::mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_PRIVATE, file, 0);
    if (pages == MAP_FAILED) problem = error("map");
  }
  ::close(file);
  if (!problem.ok()) return problem;
  return std::shared_ptr<const MappedFile>(new MappedFile(pages, static_cast<std::size_t>(status.st_size)));
}

MappedFile::~MappedFile() {
  if (pages_ != nullptr) ::munmap(pages_, bytes_);
}

}  // namespace mpc::data::internal
