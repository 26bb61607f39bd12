#include <string>

#include "runtime/distributed/rank_info.h"
#include "runtime/distributed/store_message.h"
#include "tests/fuzz/readers.h"
#include "tests/fuzz/verdict.h"

namespace mpc::fuzz {
namespace {

/// What is accepted must be what is written.
template <typename T>
void RequireRecord(absl::StatusOr<T> (*decode)(const std::string&, const std::string&), const std::string& bytes) {
  const absl::StatusOr<T> record = decode(bytes, kOrigin);
  if (!record.ok()) return RequireRefusal(record.status());
  Require(runtime::Encode(*record) == bytes, "a record changes when it is read and written");
}

void ReadRecords(const std::string& bytes) {
  RequireRecord(&runtime::DecodeRankInfo, bytes);
  RequireRecord(&runtime::DecodeHashes, bytes);
  RequireRecord(&runtime::DecodePlace, bytes);
  RequireRecord(&runtime::DecodeLoss, bytes);
  RequireRecord(&runtime::DecodeVerdict, bytes);
}

}  // namespace

void ReadStore(absl::Span<const std::uint8_t> input) {
  ReadRecords(std::string(input.begin(), input.end()));
  while (true) {
    const absl::StatusOr<std::optional<runtime::DecodedMessage>> decoded = runtime::DecodeMessage(input, kOrigin);
    const absl::StatusOr<std::optional<std::size_t>> announced = runtime::AnnouncedBytes(input, kOrigin);
    Require(decoded.status() == announced.status(), "a message is refused where its header is not");
    if (!decoded.ok()) return RequireRefusal(decoded.status());
    if (!decoded->has_value()) {
      Require(!announced->has_value() || **announced > input.size(), "a whole message is not read");
      return;
    }
    const runtime::DecodedMessage& found = **decoded;
    Require(found.bytes == **announced && found.bytes <= input.size(), "a message is longer than its bytes");
    Require(
        found.message.key.size() <= runtime::kMostKeyBytes && found.message.value.size() <= runtime::kMostValueBytes,
        "a message is over its limits");
    const std::string bytes(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(found.bytes));
    Require(runtime::EncodeMessage(found.message) == bytes, "a message changes when it is read and written");
    ReadRecords(found.message.value);
    input.remove_prefix(found.bytes);
  }
}

}  // namespace mpc::fuzz
