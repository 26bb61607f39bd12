// The one owner of what lives from step to step: parameters, statistics, optimizer slots, scaler state, counters.
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

namespace mpc::runtime {

/// One tensor of state in its canonical layout. Cells and optimizers hold the entries they declare; a StateStore holds
/// those of one Model. Not thread-safe: the host reads and writes between steps.
class StateEntry {
 public:
  StateEntry(std::string name, std::string role, TensorSpec spec);

  const std::string& name() const { return name_; }
  const std::string& role() const { return role_; }
  const TensorSpec& spec() const { return spec_; }
  void set_name(std::string name) { name_ = std::move(name); }

  /// False until the first write; a Program that reads such an entry refuses to bind.
  bool initialised() const { return initialised_; }
  /// Names the content: another one after every write, by the host or by a step, and never that of another entry. 0
  /// before the first write.
  std::uint64_t version() const { return version_; }

  /// Copies exactly spec().bytes() bytes. Errors (INVALID_ARGUMENT): another size.
  absl::Status Read(absl::Span<std::uint8_t> destination) const;
  absl::Status Write(absl::Span<const std::uint8_t> source);

  /// The storage, for executors on the host.
  void* data() { return buffer_.data(); }
  const void* data() const { return buffer_.data(); }
  /// A step has written the storage.
  void MarkWritten();

  /// For derived state: whether it was made from the present content of `source`, and that it now is.
  bool Follows(const StateEntry& source) const { return initialised_ && followed_ == source.version_; }
  void MarkFollowing(const StateEntry& source);

 private:
  std::string name_;
  std::string role_;
  TensorSpec spec_;
  AlignedBuffer buffer_;
  bool initialised_ = false;
  std::uint64_t version_ = 0;
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
