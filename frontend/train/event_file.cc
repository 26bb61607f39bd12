#include "frontend/train/event_file.h"

#include <array>
#include <bit>

namespace mpc::internal {
namespace {

constexpr std::array<std::uint32_t, 256> MakeTable() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0u);
    table[byte] = crc;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> kTable = MakeTable();

template <typename Integer>
void AppendLittleEndian(Integer value, std::string& out) {
  for (std::size_t byte = 0; byte < sizeof(value); ++byte) out.push_back(static_cast<char>(value >> (8 * byte)));
}

// Protobuf's wire format: a field is its key, the number and the kind of what follows, and the value.
enum class Wire : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void AppendVarint(std::uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void AppendKey(unsigned field, Wire wire, std::string& out) {
  AppendVarint((field << 3) | static_cast<unsigned>(wire), out);
}

void AppendBytes(unsigned field, std::string_view bytes, std::string& out) {
  AppendKey(field, Wire::kBytes, out);
  AppendVarint(bytes.size(), out);
  out.append(bytes);
}

// Fields of Event, Summary and Summary.Value.
constexpr unsigned kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5;
constexpr unsigned kValue = 1;
constexpr unsigned kTag = 1, kSimpleValue = 2;

std::string EventAt(double wall_time) {
  std::string event;
  AppendKey(kWallTime, Wire::kFixed64, event);
  AppendLittleEndian(std::bit_cast<std::uint64_t>(wall_time), event);
  return event;
}

}  // namespace

std::uint32_t Crc32c(std::string_view data) {
  std::uint32_t crc = ~0u;
  for (const char byte : data) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

std::uint32_t MaskedCrc32c(std::string_view data) { return std::rotr(Crc32c(data), 15) + 0xa282ead8u; }

std::string EventRecord(std::string_view data) {
  std::string record;
  AppendLittleEndian(static_cast<std::uint64_t>(data.size()), record);
  AppendLittleEndian(MaskedCrc32c(record), record);
  record.append(data);
  AppendLittleEndian(MaskedCrc32c(data), record);
  return record;
}

std::string VersionEvent(double wall_time) {
  std::string event = EventAt(wall_time);
  AppendBytes(kFileVersion, "brain.Event:2", event);
  return event;
}

std::string ScalarsEvent(double wall_time, std::int64_t step,
                         const std::vector<std::pair<std::string, double>>& scalars) {
  std::string summary;
  for (const auto& [tag, scalar] : scalars) {
    std::string value;
    AppendBytes(kTag, tag, value);
    AppendKey(kSimpleValue, Wire::kFixed32, value);
    AppendLittleEndian(std::bit_cast<std::uint32_t>(static_cast<float>(scalar)), value);
    AppendBytes(kValue, value, summary);
  }
  std::string event = EventAt(wall_time);
  AppendKey(kStep, Wire::kVarint, event);
  AppendVarint(static_cast<std::uint64_t>(step), event);
  AppendBytes(kSummary, summary, event);
  return event;
}

}  // namespace mpc::internal
