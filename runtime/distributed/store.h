// A process's connection to the store of rank 0.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/distributed/socket.h"
#include "runtime/distributed/store_message.h"

namespace mpc::runtime {

struct StoreOptions {
  std::string address = "127.0.0.1";
  int port = 0;
  Milliseconds connect_limit{60000};  ///< the store may start later than its clients
  Milliseconds answer_limit{30000};   ///< beside what a call waits for
};

/// Keys are 1 to 256 bytes and values at most 16 MiB (INVALID_ARGUMENT). One thread calls a store at a time, save
/// Interrupt.
///
/// Errors of every call: the store has closed the connection or does not answer (UNAVAILABLE), and Interrupt was called
/// (CANCELLED). After these, every call returns the first one. Another one is that the store's memory is used
/// up (RESOURCE_EXHAUSTED).
class Store {
 public:
  /// Connects, with pauses of 10 ms to 1 s between tries, until the limit. Errors: no store was reached in time
  /// (DEADLINE_EXCEEDED, with the last reason); a store of another version, or something else that answers
  /// (FAILED_PRECONDITION).
  static absl::StatusOr<std::unique_ptr<Store>> Connect(const StoreOptions& options);
  /// Closes the connection; without Goodbye, the store does the will.
  ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  absl::Status Set(const std::string& key, std::string_view value);
  /// The key's value, as soon as it has one. Error: it has none within `wait` (DEADLINE_EXCEEDED). 30 days
  /// are waited at most.
  absl::StatusOr<std::string> Get(const std::string& key, Milliseconds wait);
  /// Adds to a counter, which begins at 0, and returns the sum. Error: the key's value was not made by Add, or the sum
  /// is out of range (INVALID_ARGUMENT).
  absl::StatusOr<std::int64_t> Add(const std::string& key, std::int64_t number);
  /// Sets the value where the key has none. Returns the value that stands.
  absl::StatusOr<std::string> Claim(const std::string& key, std::string_view value);
  /// Whether the key had a value.
  absl::StatusOr<bool> Remove(const std::string& key);

  /// Returns when all keys have values. Error: as of Get, for the first key that has none.
  absl::Status Wait(absl::Span<const std::string> keys, Milliseconds wait);
  /// Returns when `size` clients have called it with this name. The same clients may call it again. Error: some have
  /// not come within `wait` (DEADLINE_EXCEEDED, with the number of those who have); the name then stays unusable. Names
  /// are at most 200 bytes.
  absl::Status Barrier(const std::string& name, int size, Milliseconds wait);

  /// What the store is to claim for this client if the connection closes without Goodbye. An earlier will is replaced;
  /// an empty value takes it back.
  absl::Status SetWill(const std::string& key, std::string_view value);
  /// Ends the connection in order, also after Interrupt. Nothing else may be called behind it.
  void Goodbye();
  /// Ends a call that waits, and all later ones but Goodbye. Any thread may call it.
  void Interrupt() { interrupt_.Raise(); }

  const StoreOptions& options() const { return options_; }

 private:
  explicit Store(const StoreOptions& options) : options_(options) {}
  absl::StatusOr<Message> Call(const Message& request, Milliseconds wait = Milliseconds(0));
  absl::StatusOr<Message> Exchange(const Message& request, Milliseconds limit);
  absl::Status Send(std::string_view bytes, const Deadline& deadline);
  absl::StatusOr<Message> Receive(const Deadline& deadline, Milliseconds limit);
  absl::Status Hello(Milliseconds limit);
  absl::Status Gone(const std::string& why) const;
  std::string Place() const;

  StoreOptions options_;
  Signal interrupt_;
  Descriptor socket_;
  bool in_order_ = true;  ///< no message was sent in part
  absl::Status failed_;   ///< the first error after which nothing more is possible
};

}  // namespace mpc::runtime
