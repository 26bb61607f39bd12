#include "runtime/distributed/store_message.h"

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace mpc::runtime {
namespace {

constexpr char kMagic[] = {'M', 'P', 'C', 'S'};

void AppendNumber(std::string* out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> 8 * i & 0xff));
}

std::uint64_t NumberAt(absl::Span<const std::uint8_t> stream, std::size_t offset, int bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= std::uint64_t{stream[offset + i]} << 8 * i;
  return value;
}

struct Header {
  std::uint8_t kind = 0;
  std::uint8_t code = 0;
  std::size_t key_bytes = 0;
  std::size_t value_bytes = 0;
  std::int64_t number = 0;
};

std::string EncodeHeader(const Header& header) {
  std::string bytes(kMagic, sizeof(kMagic));
  AppendNumber(&bytes, kStoreVersion, 2);
  AppendNumber(&bytes, header.kind, 1);
  AppendNumber(&bytes, header.code, 1);
  AppendNumber(&bytes, header.key_bytes, 4);
  AppendNumber(&bytes, header.value_bytes, 4);
  AppendNumber(&bytes, static_cast<std::uint64_t>(header.number), 8);
  return bytes;
}

bool HasKey(MessageKind kind) {
  return kind != MessageKind::kHello && kind != MessageKind::kGoodbye && kind != MessageKind::kReply;
}

bool HasValue(MessageKind kind) {
  return kind == MessageKind::kSet || kind == MessageKind::kClaim || kind == MessageKind::kWill ||
         kind == MessageKind::kReply;
}

bool TakesNumber(MessageKind kind, std::int64_t number) {
  if (kind == MessageKind::kAdd || kind == MessageKind::kReply) return true;
  if (kind == MessageKind::kGet) return number >= 0 && number <= kLongestWait.count();
  return number == 0;
}

/// What is wrong with a header of our version, or an empty text.
std::string WrongHeader(const Header& header) {
  if (header.kind < static_cast<int>(MessageKind::kHello) || header.kind > static_cast<int>(MessageKind::kReply)) {
    return absl::StrCat("kind ", header.kind);
  }
  const auto kind = static_cast<MessageKind>(header.kind);
  const int highest_code = kind == MessageKind::kReply ? static_cast<int>(ReplyCode::kOtherVersion) : 0;
  if (header.code > highest_code) return absl::StrCat("code ", header.code, " of kind ", header.kind);
  if ((header.key_bytes > 0) != HasKey(kind) || header.key_bytes > kMostKeyBytes) {
    return absl::StrCat("a key of ", header.key_bytes, " bytes of kind ", header.kind);
  }
  if (header.value_bytes > (HasValue(kind) ? kMostValueBytes : 0)) {
    return absl::StrCat("a value of ", header.value_bytes, " bytes of kind ", header.kind);
  }
  if (!TakesNumber(kind, header.number)) return absl::StrCat("number ", header.number, " of kind ", header.kind);
  return "";
}

/// nullopt: more bytes are needed. A stream that cannot become a message is refused at its first wrong byte.
absl::StatusOr<std::optional<Header>> DecodeHeader(absl::Span<const std::uint8_t> stream, const std::string& origin) {
  if (stream.empty()) return std::nullopt;
  if (std::memcmp(stream.data(), kMagic, std::min(stream.size(), sizeof(kMagic))) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(origin, ": no message of the store, which begins with \"MPCS\""));
  }
  if (const std::optional<int> version = OtherVersion(stream)) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": a message of version ", *version, ", where version ", kStoreVersion, " is accepted"));
  }
  if (stream.size() < kMessageHeaderBytes) return std::nullopt;
  Header header;
  header.kind = stream[6];
  header.code = stream[7];
  header.key_bytes = NumberAt(stream, 8, 4);
  header.value_bytes = NumberAt(stream, 12, 4);
  header.number = static_cast<std::int64_t>(NumberAt(stream, 16, 8));
  const std::string wrong = WrongHeader(header);
  if (!wrong.empty()) return absl::InvalidArgumentError(absl::StrCat(origin, ": a message with ", wrong));
  return header;
}

}  // namespace

std::string EncodeMessage(const Message& message) {
  std::string bytes = EncodeHeader({static_cast<std::uint8_t>(message.kind), static_cast<std::uint8_t>(message.code),
                                    message.key.size(), message.value.size(), message.number});
  bytes.reserve(bytes.size() + message.key.size() + message.value.size());
  bytes.append(message.key).append(message.value);
  return bytes;
}

std::string EncodeReplyHeader(ReplyCode code, std::int64_t number, std::size_t value_bytes) {
  return EncodeHeader(
      {static_cast<std::uint8_t>(MessageKind::kReply), static_cast<std::uint8_t>(code), 0, value_bytes, number});
}

absl::StatusOr<std::optional<std::size_t>> AnnouncedBytes(absl::Span<const std::uint8_t> stream,
                                                          const std::string& origin) {
  const absl::StatusOr<std::optional<Header>> header = DecodeHeader(stream, origin);
  if (!header.ok()) return header.status();
  if (!header->has_value()) return std::nullopt;
  return kMessageHeaderBytes + (*header)->key_bytes + (*header)->value_bytes;
}

absl::StatusOr<std::optional<DecodedMessage>> DecodeMessage(absl::Span<const std::uint8_t> stream,
                                                            const std::string& origin) {
  const absl::StatusOr<std::optional<Header>> header = DecodeHeader(stream, origin);
  if (!header.ok()) return header.status();
  if (!header->has_value()) return std::nullopt;
  const Header& found = **header;
  DecodedMessage decoded;
  decoded.bytes = kMessageHeaderBytes + found.key_bytes + found.value_bytes;
  if (stream.size() < decoded.bytes) return std::nullopt;
  const char* text = reinterpret_cast<const char*>(stream.data()) + kMessageHeaderBytes;
  decoded.message = {static_cast<MessageKind>(found.kind), static_cast<ReplyCode>(found.code), found.number,
                     std::string(text, found.key_bytes), std::string(text + found.key_bytes, found.value_bytes)};
  return decoded;
}

std::optional<int> OtherVersion(absl::Span<const std::uint8_t> stream) {
  if (stream.size() < 6 || std::memcmp(stream.data(), kMagic, sizeof(kMagic)) != 0) return std::nullopt;
  const int version = static_cast<int>(NumberAt(stream, 4, 2));
  if (version == kStoreVersion) return std::nullopt;
  return version;
}

}  // namespace mpc::runtime
