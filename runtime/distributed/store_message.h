// The messages between the store of rank 0 and its clients: their form, and nothing of how they travel.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mpc::runtime {

inline constexpr std::size_t kMostKeyBytes = 256;
inline constexpr std::size_t kMostValueBytes = std::size_t{16} << 20;
/// The version of the form. Bytes 0 to 3 are "MPCS" and bytes 4 and 5 the version in every version.
inline constexpr std::uint16_t kStoreVersion = 1;
/// The longest that a message of kGet may wait: 30 days.
inline constexpr std::chrono::milliseconds kLongestWait = std::chrono::hours(24) * 30;

enum class MessageKind : std::uint8_t {
  kHello = 1,    ///< The first message of a connection. The reply says that a store of this version listens.
  kSet = 2,      ///< The key has the value from now on.
  kGet = 3,      ///< Asks for the value. The reply comes when there is one, or after `number` milliseconds.
  kAdd = 4,      ///< Adds `number` to the counter of the key; a missing one is 0. The reply has the sum.
  kClaim = 5,    ///< As kSet where the key has no value. The reply has the value that stands.
  kRemove = 6,   ///< The key has no value from now on. The reply has the number of keys removed: 0 or 1.
  kWill = 7,     ///< As kClaim, once this connection closes without kGoodbye. An empty value takes it back.
  kGoodbye = 8,  ///< The last message of a connection. It has no reply: the store closes.
  kReply = 9,    ///< The one answer to every other message.
};

enum class ReplyCode : std::uint8_t {
  kDone = 0,
  kTimedOut = 1,      ///< kGet: there was no value in time
  kNoCounter = 2,     ///< kAdd: the key's value is no counter, or the sum is out of range
  kFull = 3,          ///< the store's memory is used up
  kOtherVersion = 4,  ///< `number` is the version that the store speaks; it closes
};

/// Little-endian on the wire: "MPCS", version (2 bytes), kind, code, size of the key (4), size of the value (4),
/// number (8), key, value.
struct Message {
  MessageKind kind = MessageKind::kHello;
  ReplyCode code = ReplyCode::kDone;  ///< not kDone in replies alone
  std::int64_t number = 0;
  std::string key;
  std::string value;
};

inline constexpr std::size_t kMessageHeaderBytes = 24;

/// The bytes of a message. Its key and value are within their limits.
/// How much either end reads from its connection at once.
inline constexpr std::size_t kReadBytes = std::size_t{64} << 10;

/// What was read, as the functions below take it.
inline absl::Span<const std::uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string EncodeMessage(const Message& message);
/// The header of a message whose key is empty and whose value, of `value_bytes` bytes, follows.
std::string EncodeReplyHeader(ReplyCode code, std::int64_t number, std::size_t value_bytes);

/// The message at the front of a stream of bytes.
struct DecodedMessage {
  Message message;
  std::size_t bytes = 0;  ///< that it takes
};

/// The sizes that a header announces. nullopt: the header is not complete yet. Errors (INVALID_ARGUMENT) name `origin`.
/// They are other bytes than those of a message, another version, and an unknown kind or code. So are a key or value
/// over its limit or where the kind has none, and a number that the kind does not take.
absl::StatusOr<std::optional<std::size_t>> AnnouncedBytes(absl::Span<const std::uint8_t> stream,
                                                          const std::string& origin);
/// The first message of `stream`. nullopt: it is not complete yet. Errors as of AnnouncedBytes.
absl::StatusOr<std::optional<DecodedMessage>> DecodeMessage(absl::Span<const std::uint8_t> stream,
                                                            const std::string& origin);
/// The version of a message of this form where it is another one than ours.
std::optional<int> OtherVersion(absl::Span<const std::uint8_t> stream);

}  // namespace mpc::runtime
