#include "runtime/code_loader.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/program_binding.h"

namespace mpc::runtime {
namespace {

/// Checks that the segments lie inside the file, which the dynamic linker does not. Reading memory behind the end of
/// the file would end the process.
absl::Status CheckSharedObject(const std::vector<std::uint8_t>& bytes) {
  Elf64_Ehdr header;
  if (bytes.size() < sizeof(header) || std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("its ", bytes.size(), " bytes are no ELF file"));
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64 || header.e_type != ET_DYN) {
    return absl::InvalidArgumentError(
        absl::StrCat("it is no shared object for x86-64: ELF type ", header.e_type, ", machine ", header.e_machine));
  }
  const std::size_t size = bytes.size();
  const auto inside = [size](std::uint64_t begin, std::uint64_t length) {
    return begin <= size && length <= size - begin;
  };
  if (header.e_phentsize != sizeof(Elf64_Phdr) || !inside(header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr))) {
    return absl::InvalidArgumentError("its table of segments is malformed or truncated");
  }
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes.data() + header.e_phoff + i * sizeof(segment), sizeof(segment));
    if (!inside(segment.p_offset, segment.p_filesz) || segment.p_filesz > segment.p_memsz) {
      return absl::InvalidArgumentError(absl::StrCat("segment ", i, " of ", segment.p_filesz, " bytes at ",
                                                     segment.p_offset, " ends outside the ", size, " bytes"));
    }
  }
  return absl::OkStatus();
}

/// A shared object that lies in memory. The descriptor stays open: the dynamic linker takes a file of the same name,
/// here "/proc/self/fd/<number>", for one that it has loaded before.
class SharedObject : public LoadedCode {
 public:
  SharedObject() = default;
  ~SharedObject() override {
    if (handle_ != nullptr) ::dlclose(handle_);
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;

  absl::Status Open(const CodeBlob& blob) {
    if (absl::Status status = CheckSharedObject(blob.bytes); !status.ok()) return status;
    descriptor_ = ::memfd_create("mpc-code", MFD_CLOEXEC);
    if (descriptor_ < 0) return absl::ErrnoToStatus(errno, "cannot create a file in memory");
    for (std::size_t written = 0; written < blob.bytes.size();) {
      const ssize_t count = ::write(descriptor_, blob.bytes.data() + written, blob.bytes.size() - written);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return absl::ErrnoToStatus(errno, "cannot write a file in memory");
      written += static_cast<std::size_t>(count);
    }
    handle_ = ::dlopen(absl::StrCat("/proc/self/fd/", descriptor_).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) return absl::FailedPreconditionError(::dlerror());
    return absl::OkStatus();
  }

  absl::StatusOr<void*> Find(const std::string& function) const override {
    void* const address = ::dlsym(handle_, function.c_str());
    if (address == nullptr) return absl::NotFoundError(absl::StrCat("there is no function \"", function, "\""));
    return address;
  }

 private:
  int descriptor_ = -1;
  void* handle_ = nullptr;
};

absl::StatusOr<std::unique_ptr<LoadedCode>> LoadSharedObject(const CodeBlob& blob) {
  auto object = std::make_unique<SharedObject>();
  if (absl::Status status = object->Open(blob); !status.ok()) return status;
  return std::unique_ptr<LoadedCode>(std::move(object));
}

struct Loaders {
  std::mutex mutex;
  std::map<std::string, CodeLoader> by_format = {{"elf", LoadSharedObject}};
};

Loaders& TheLoaders() {
  static auto* const loaders = new Loaders;
  return *loaders;
}

CodeLoader FindLoader(const std::string& format) {
  Loaders& loaders = TheLoaders();
  const std::lock_guard<std::mutex> lock(loaders.mutex);
  const auto found = loaders.by_format.find(format);
  return found == loaders.by_format.end() ? nullptr : found->second;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LoadedCode>> LoadCode(const CodeBlob& blob) {
  const std::string where = absl::StrCat("code \"", blob.name, "\"");
  const CodeLoader loader = FindLoader(blob.format);
  if (loader == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(where, " is in format \"", blob.format, "\"; this process loads \"elf\" for the CPU",
                     blob.format == "object" ? ", \"object\" only where a compiler made it" : ""));
  }
  absl::StatusOr<std::unique_ptr<LoadedCode>> code = loader(blob);
  if (!code.ok()) return WithPlace(where, code.status());
  return code;
}

void RegisterCodeLoader(const std::string& format, CodeLoader loader) {
  Loaders& loaders = TheLoaders();
  const std::lock_guard<std::mutex> lock(loaders.mutex);
  loaders.by_format[format] = std::move(loader);
}

}  // namespace mpc::runtime
