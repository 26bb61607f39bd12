// The one owner of the state that lives from step to step: parameters, statistics, optimizer slots, scaler state,
// counters.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/tensor_spec.h"
#include "runtime/aligned_buffer.h"
#include "runtime/role.h"

namespace mpc::runtime {

/// A device's copy of a state entry. It belongs to the entry; every Program on the device uses the one copy.
class DeviceCopy {
 public:
  virtual ~DeviceCopy() = default;
  /// Device address.
  virtual void* data() = 0;
  /// Waits for steps that write the copy, then copies it out. Errors: what the device failed with.
  virtual absl::Status Download(void* host) = 0;
};

/// One tensor of state in its canonical layout. Cells and optimizers hold the entries they declare; a StateStore holds
/// those of one Model. Not thread-safe: the host reads and writes between steps.
class StateEntry {
 public:
  StateEntry(std::string name, Role role, TensorSpec spec);
  virtual ~StateEntry() = default;

  const std::string& name() const { return name_; }
  Role role() const { return role_; }
  const TensorSpec& spec() const { return spec_; }
  void set_name(std::string name) { name_ = std::move(name); }

  /// False until the first write; a Program that reads such an entry refuses to bind.
  bool initialised() const { return initialised_; }
  /// Identifies the content. It changes with every write, by the host or by a step, and no two entries have the same
  /// one. 0 before the first write.
  std::uint64_t version() const { return version_; }

  /// Copies exactly spec().bytes() bytes. Errors: INVALID_ARGUMENT for another size; those of a device that has the
  /// content and cannot give it back.
  absl::Status Read(absl::Span<std::uint8_t> destination) const;
  absl::Status Write(absl::Span<const std::uint8_t> source);

  /// Lets the storage on the host lie in `memory`, which other entries share, from `offset` on. The content is kept.
  /// Returns false, and does nothing, once the storage stays where it is.
  bool MoveTo(std::shared_ptr<AlignedBuffer> memory, std::size_t offset);
  /// Makes the storage stay where it is from now on, since a Program uses its address.
  void KeepInPlace() { stays_ = true; }
  bool stays() const { return stays_; }

  /// The storage on the host. It is stale while a device has a newer content: FetchToHost() first.
  void* data() { return data_; }
  const void* data() const { return data_; }
  /// Brings the newest content to the host. Errors: those of DeviceCopy::Download.
  absl::Status FetchToHost() const;

  // The functions that a device library calls are virtual. So the code that made the entry counts the versions, not the
  // library's copy of it.

  /// Notes that a step has written the storage on the host.
  virtual void MarkWritten();
  /// Notes that a step that was started writes the device's copy. The host's content is then stale.
  virtual void MarkWrittenOnDevice();
  /// The device's copy, null before a device made one.
  DeviceCopy* device_copy() const { return device_copy_.get(); }
  void set_device_copy(std::unique_ptr<DeviceCopy> copy);
  /// Whether the device's copy has the newest content; and notes that it now has.
  bool device_is_current() const { return device_copy_ != nullptr && device_version_ == version_; }
  void MarkUploaded() { device_version_ = version_; }

  /// For derived state: whether it was made from the present content of `source`; and notes that it now is.
  bool Follows(const StateEntry& source) const { return initialised_ && followed_ == source.version_; }
  void MarkFollowing(const StateEntry& source) { followed_ = source.version_; }

 private:
  std::string name_;
  Role role_;
  TensorSpec spec_;
  std::shared_ptr<AlignedBuffer> memory_;  ///< memory of this entry alone, or memory that it shares with others
  std::byte* data_;
  bool stays_ = false;
  std::unique_ptr<DeviceCopy> device_copy_;
  bool initialised_ = false;
  std::uint64_t version_ = 0;
  mutable std::uint64_t host_version_ = 0;  ///< version of the content at data_
  std::uint64_t device_version_ = 0;        ///< version of the content in device_copy_
  std::uint64_t followed_ = 0;
};

/// Entries in the order they were added; names are unique.
class StateStore {
 public:
  /// Errors (ALREADY_EXISTS): another entry has this name. Adding the same entry again is allowed.
  absl::Status Add(std::shared_ptr<StateEntry> entry);
  std::shared_ptr<StateEntry> Find(std::string_view name) const;
  const std::vector<std::shared_ptr<StateEntry>>& entries() const { return entries_; }
  std::size_t bytes() const;

 private:
  std::vector<std::shared_ptr<StateEntry>> entries_;
};

}  // namespace mpc::runtime
