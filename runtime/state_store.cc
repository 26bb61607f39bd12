#include "runtime/state_store.h"

#include <atomic>
#include <cassert>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mpc::runtime {
namespace {

// One count for all entries: equal versions mean equal content, even where an entry took the place of another.
std::uint64_t NextVersion() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

StateEntry::StateEntry(std::string name, Role role, TensorSpec spec)
    : name_(std::move(name)),
      role_(role),
      spec_(std::move(spec)),
      memory_(std::make_shared<AlignedBuffer>(spec_.bytes())),
      data_(memory_->data()) {}

bool StateEntry::MoveTo(std::shared_ptr<AlignedBuffer> memory, std::size_t offset) {
  if (stays_) return false;
  assert(memory != nullptr && offset + spec_.bytes() <= memory->size() && "the entry fits the memory");
  std::byte* const target = memory->data() + offset;
  // An entry that was never written is zero, as new memory is.
  if (initialised_) std::memcpy(target, data_, spec_.bytes());
  memory_ = std::move(memory);
  data_ = target;
  return true;
}

absl::Status StateEntry::Read(absl::Span<std::uint8_t> destination) const {
  if (destination.size() != spec_.bytes()) {
    return absl::InvalidArgumentError(absl::StrCat("reading state \"", name_, "\" (", spec_.ToString(), ") takes ",
                                                   spec_.bytes(), " bytes, got room for ", destination.size()));
  }
  if (absl::Status status = FetchToHost(); !status.ok()) return status;
  if (!destination.empty()) std::memcpy(destination.data(), data_, destination.size());
  return absl::OkStatus();
}

absl::Status StateEntry::Write(absl::Span<const std::uint8_t> source) {
  if (source.size() != spec_.bytes()) {
    return absl::InvalidArgumentError(absl::StrCat("writing state \"", name_, "\" (", spec_.ToString(), ") takes ",
                                                   spec_.bytes(), " bytes, got ", source.size()));
  }
  if (!source.empty()) std::memcpy(data_, source.data(), source.size());
  MarkWritten();
  return absl::OkStatus();
}

absl::Status StateEntry::FetchToHost() const {
  if (host_version_ == version_ || device_copy_ == nullptr) return absl::OkStatus();
  if (absl::Status status = device_copy_->Download(data_); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat("reading state \"", name_, "\": ", status.message()));
  }
  host_version_ = version_;
  return absl::OkStatus();
}

void StateEntry::MarkWritten() {
  initialised_ = true;
  version_ = NextVersion();
  host_version_ = version_;
}

void StateEntry::MarkWrittenOnDevice() {
  initialised_ = true;
  version_ = NextVersion();
  device_version_ = version_;
}

void StateEntry::set_device_copy(std::unique_ptr<DeviceCopy> copy) {
  device_copy_ = std::move(copy);
  device_version_ = 0;
}

absl::Status StateStore::Add(std::shared_ptr<StateEntry> entry) {
  assert(entry != nullptr);
  const std::shared_ptr<StateEntry> existing = Find(entry->name());
  if (existing == entry) return absl::OkStatus();
  if (existing != nullptr) {
    return absl::AlreadyExistsError(absl::StrCat(
        "two state entries are named \"", entry->name(), "\": ", std::string(RoleName(existing->role())), " ",
        existing->spec().ToString(), " and ", std::string(RoleName(entry->role())), " ", entry->spec().ToString()));
  }
  entries_.push_back(std::move(entry));
  return absl::OkStatus();
}

std::shared_ptr<StateEntry> StateStore::Find(std::string_view name) const {
  for (const std::shared_ptr<StateEntry>& entry : entries_) {
    if (entry->name() == name) return entry;
  }
  return nullptr;
}

std::size_t StateStore::bytes() const {
  std::size_t bytes = 0;
  for (const std::shared_ptr<StateEntry>& entry : entries_) bytes += entry->spec().bytes();
  return bytes;
}

}  // namespace mpc::runtime
