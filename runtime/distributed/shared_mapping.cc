#include "runtime/distributed/shared_mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <new>
#include <thread>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "runtime/descriptor.h"
#include "runtime/distributed/reduction_message.h"

namespace mpc::distributed {
namespace {

constexpr std::uint64_t kMagic = 0x31646572616873ull;  // "shared1"
constexpr std::uint32_t kVersion = 1;
constexpr std::chrono::milliseconds kGatherPoll{1};
/// Between two questions to SharedGroup::on_wait.
constexpr std::chrono::milliseconds kAskEvery{100};
constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kLongestName = 200;
constexpr int kMostRanks = 1024;
constexpr std::size_t kMostSlotBytes = std::size_t{1} << 30;

static_assert(std::is_trivially_destructible_v<RankRecord>);

std::size_t SlotsBegin(int size) {
  const std::size_t bytes = sizeof(MappingHeader) + static_cast<std::size_t>(size) * sizeof(RankRecord);
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

std::size_t MappingBytes(const SharedGroup& group) {
  return SlotsBegin(group.size) + static_cast<std::size_t>(group.size) * kSlotsPerRank * group.slot_bytes;
}

/// The object's name as the system takes it: one slash, in front.
std::string SystemName(const std::string& name) { return name[0] == '/' ? name : absl::StrCat("/", name); }

std::string Named(const SharedGroup& group) { return absl::StrCat("the shared mapping '", group.name, "'"); }

absl::Status CheckGroup(const SharedGroup& group) {
  const std::string bare = group.name.substr(group.name.rfind('/', 0) == 0 ? 1 : 0);
  if (bare.empty() || bare.size() > kLongestName || bare.find('/') != std::string::npos ||
      bare.find('\0') != std::string::npos || bare == "." || bare == "..") {
    return absl::InvalidArgumentError(absl::StrCat("'", group.name,
                                                   "' is no name of a shared mapping: it is a file "
                                                   "name without a folder, of at most ",
                                                   kLongestName, " characters"));
  }
  if (group.size < 1 || group.size > kMostRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat("a shared group has 1 to ", kMostRanks, " ranks: this one has ", group.size));
  }
  if (group.rank < 0 || group.rank >= group.size) {
    return absl::InvalidArgumentError(absl::StrCat("rank ", group.rank, " is none of ", group.size));
  }
  if (group.slot_bytes % kPartAlignment != 0 || group.slot_bytes > kMostSlotBytes ||
      group.slot_bytes < kPartAlignment * static_cast<std::size_t>(group.size)) {
    return absl::InvalidArgumentError(absl::StrCat("a slot has a multiple of ", kPartAlignment, " bytes, at least ",
                                                   kPartAlignment, " a rank and at most ", kMostSlotBytes, ": ",
                                                   group.slot_bytes, " bytes for ", group.size, " ranks"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::byte*> Map(int descriptor, const SharedGroup& group) {
  void* memory = ::mmap(nullptr, MappingBytes(group), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) return absl::ErrnoToStatus(errno, absl::StrCat("cannot map ", Named(group)));
  return static_cast<std::byte*>(memory);
}

/// Gives the new object its size. Memory is reserved: a page that cannot be had later would kill the process.
absl::Status Reserve(int descriptor, const SharedGroup& group) {
  const auto bytes = static_cast<off_t>(MappingBytes(group));
  if (::ftruncate(descriptor, bytes) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot size ", Named(group)));
  int error = 0;
  do {
    error = ::posix_fallocate(descriptor, 0, bytes);
  } while (error == EINTR);
  if (error == 0) return absl::OkStatus();
  if (error == ENOSPC) {
    return absl::ResourceExhaustedError(
        absl::StrCat("shared memory has no room for the ", bytes, " bytes of ", Named(group)));
  }
  return absl::ErrnoToStatus(error, absl::StrCat("cannot reserve ", Named(group)));
}

enum class Found { kYes, kNotYet };

/// Whether the open object is one of this group, as far as it shows before it is mapped.
absl::StatusOr<Found> CheckObject(int descriptor, const SharedGroup& group) {
  struct stat object {};
  if (::fstat(descriptor, &object) != 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", Named(group)));
  if (object.st_uid != ::geteuid()) {
    return absl::PermissionDeniedError(
        absl::StrCat(Named(group), " belongs to user ", object.st_uid, ", and this process to user ", ::geteuid()));
  }
  if ((object.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(Named(group), " may be opened by other users"));
  }
  if (object.st_size == 0) return Found::kNotYet;
  if (object.st_size != static_cast<off_t>(MappingBytes(group))) {
    return absl::FailedPreconditionError(
        absl::StrCat(Named(group), " has ", object.st_size, " bytes, and one of ", group.size, " ranks with slots of ",
                     group.slot_bytes, " bytes has ", MappingBytes(group), ": its ranks have other options"));
  }
  return Found::kYes;
}

absl::StatusOr<Found> CheckHeader(const MappingHeader& header, const SharedGroup& group) {
  const std::uint64_t magic = header.magic.load(std::memory_order_acquire);
  if (magic == 0) return Found::kNotYet;
  if (magic != kMagic) return absl::FailedPreconditionError(absl::StrCat(Named(group), " is none of mpc's"));
  if (header.version != kVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat(Named(group), " has version ", header.version, ", and this process version ", kVersion));
  }
  if (header.size != static_cast<std::uint32_t>(group.size) || header.slot_bytes != group.slot_bytes) {
    return absl::FailedPreconditionError(absl::StrCat(Named(group), " is of ", header.size, " ranks with slots of ",
                                                      header.slot_bytes, " bytes: this process asks for ", group.size,
                                                      " ranks with slots of ", group.slot_bytes));
  }
  return Found::kYes;
}

}  // namespace

SharedMapping::SharedMapping(std::byte* memory, std::size_t bytes, const SharedGroup& group)
    : memory_(memory),
      bytes_(bytes),
      slots_begin_(SlotsBegin(group.size)),
      slot_bytes_(group.slot_bytes),
      name_(SystemName(group.name)) {}

SharedMapping::~SharedMapping() { ::munmap(memory_, bytes_); }

void SharedMapping::RemoveName() {
  if (!name_.empty()) ::shm_unlink(name_.c_str());
  name_.clear();
}

absl::StatusOr<std::unique_ptr<SharedMapping>> SharedMapping::Open(const SharedGroup& group) {
  if (absl::Status status = CheckGroup(group); !status.ok()) return status;
  return group.rank == 0 ? Create(group) : Find(group);
}

absl::StatusOr<std::unique_ptr<SharedMapping>> SharedMapping::Create(const SharedGroup& group) {
  const std::string name = SystemName(group.name);
  const runtime::Descriptor object(::shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, S_IRUSR | S_IWUSR));
  if (object.get() < 0 && errno == EEXIST) {
    return absl::AlreadyExistsError(absl::StrCat(Named(group),
                                                 " exists: another group has this name, or a run left it "
                                                 "that was killed before its ranks had met"));
  }
  if (object.get() < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot create ", Named(group)));
  absl::Status reserved = Reserve(object.get(), group);
  absl::StatusOr<std::byte*> memory = reserved.ok() ? Map(object.get(), group) : reserved;
  if (!memory.ok()) {
    ::shm_unlink(name.c_str());
    return memory.status();
  }
  auto mapping = std::unique_ptr<SharedMapping>(new SharedMapping(*memory, MappingBytes(group), group));
  // The system gives zeros, which objects of these types may hold: only the header has other values.
  MappingHeader& header = mapping->header();
  header.version = kVersion;
  header.size = static_cast<std::uint32_t>(group.size);
  header.slot_bytes = group.slot_bytes;
  header.magic.store(kMagic, std::memory_order_release);
  return mapping;
}

absl::StatusOr<std::unique_ptr<SharedMapping>> SharedMapping::Find(const SharedGroup& group) {
  const auto end = std::chrono::steady_clock::now() + group.timeout;
  auto next_question = std::chrono::steady_clock::now() + kAskEvery;
  std::unique_ptr<SharedMapping> mapping;
  for (; std::chrono::steady_clock::now() < end; std::this_thread::sleep_for(kGatherPoll)) {
    if (group.on_wait && std::chrono::steady_clock::now() >= next_question) {
      if (absl::Status status = group.on_wait(kJoining); !status.ok()) return status;
      next_question = std::chrono::steady_clock::now() + kAskEvery;
    }
    if (mapping == nullptr) {
      const runtime::Descriptor object(::shm_open(SystemName(group.name).c_str(), O_RDWR, 0));
      if (object.get() < 0 && errno == ENOENT) continue;
      if (object.get() < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", Named(group)));
      const absl::StatusOr<Found> found = CheckObject(object.get(), group);
      if (!found.ok()) return found.status();
      if (*found == Found::kNotYet) continue;
      absl::StatusOr<std::byte*> memory = Map(object.get(), group);
      if (!memory.ok()) return memory.status();
      mapping = std::unique_ptr<SharedMapping>(new SharedMapping(*memory, MappingBytes(group), group));
    }
    const absl::StatusOr<Found> found = CheckHeader(mapping->header(), group);
    if (!found.ok()) return found.status();
    if (*found == Found::kYes) return mapping;
  }
  return absl::DeadlineExceededError(absl::StrCat("rank ", group.rank, " has waited ", group.timeout.count(),
                                                  " ms for rank 0, which has not created ", Named(group)));
}

}  // namespace mpc::distributed
