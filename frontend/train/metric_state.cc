#include "frontend/train/metric_state.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/checksum.h"

namespace mpc::internal {
namespace {

constexpr std::string_view kMark = "mpc metric state";
constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kMostCounted = std::int64_t{1} << 53;

std::uint32_t ChecksumOf(std::string_view bytes) {
  runtime::Checksum checksum;
  checksum.Add(bytes.data(), bytes.size());
  return checksum.value();
}

}  // namespace

MetricStateWriter::MetricStateWriter(std::string_view description) : bytes_(kMark) {
  AddInteger(kVersion);
  AddText(description);
}

void MetricStateWriter::AddBytes(const void* bytes, std::size_t size) {
  bytes_.append(static_cast<const char*>(bytes), size);
}

void MetricStateWriter::AddInteger(std::int64_t number) { AddBytes(&number, sizeof number); }

void MetricStateWriter::AddNumber(double number) { AddBytes(&number, sizeof number); }

void MetricStateWriter::AddText(std::string_view text) {
  AddInteger(static_cast<std::int64_t>(text.size()));
  AddBytes(text.data(), text.size());
}

void MetricStateWriter::AddIntegers(const std::vector<std::int64_t>& numbers) {
  AddInteger(static_cast<std::int64_t>(numbers.size()));
  AddBytes(numbers.data(), numbers.size() * sizeof numbers[0]);
}

void MetricStateWriter::AddFloats(const std::vector<float>& numbers) {
  AddInteger(static_cast<std::int64_t>(numbers.size()));
  AddBytes(numbers.data(), numbers.size() * sizeof numbers[0]);
}

std::string MetricStateWriter::Finish() {
  const std::uint32_t checksum = ChecksumOf(bytes_);
  AddBytes(&checksum, sizeof checksum);
  return std::move(bytes_);
}

MetricStateReader::MetricStateReader(std::string description, std::string_view bytes)
    : description_(std::move(description)) {
  CheckFrame(bytes);
}

void MetricStateReader::CheckFrame(std::string_view bytes) {
  std::uint32_t checksum = 0;
  if (bytes.substr(0, kMark.size()) != kMark) return Refuse("these bytes are no state of a metric");
  if (bytes.size() < kMark.size() + sizeof kVersion + sizeof checksum) return Refuse("the state is truncated");
  std::int64_t version = 0;
  std::memcpy(&version, bytes.data() + kMark.size(), sizeof version);
  if (version != kVersion) {
    return Refuse(absl::StrCat("the state has version ", version, ", and version ", kVersion, " is accepted"));
  }
  const std::string_view content = bytes.substr(0, bytes.size() - sizeof checksum);
  std::memcpy(&checksum, bytes.data() + content.size(), sizeof checksum);
  if (checksum != ChecksumOf(content)) return Refuse("the state is truncated or damaged");
  left_ = content.substr(kMark.size() + sizeof version);
  if (const std::string_view other = Text(); other != description_) {
    Refuse(absl::StrCat("the state is that of ", std::string(other)));
  }
}

void MetricStateReader::Refuse(std::string_view what) {
  status_.Update(absl::InvalidArgumentError(absl::StrCat(description_, ": ", std::string(what))));
  left_ = {};
}

void MetricStateReader::Read(void* bytes, std::size_t size) {
  if (left_.size() < size) Refuse("the state is too short");
  if (!status_.ok()) {
    std::memset(bytes, 0, size);
    return;
  }
  std::memcpy(bytes, left_.data(), size);
  left_.remove_prefix(size);
}

double MetricStateReader::Number() {
  double number = 0;
  Read(&number, sizeof number);
  return number;
}

double MetricStateReader::WholeNumber() {
  const double number = Number();
  if (number >= 0 && number <= static_cast<double>(kMostCounted) && number == std::floor(number)) return number;
  Refuse(absl::StrCat("the state has a count of ", number));
  return 0;
}

std::int64_t MetricStateReader::Count() {
  std::int64_t count = 0;
  Read(&count, sizeof count);
  if (count >= 0 && count <= kMostCounted) return count;
  Refuse(absl::StrCat("the state has a count of ", count));
  return 0;
}

std::size_t MetricStateReader::ListSize(std::size_t element_bytes) {
  const auto size = static_cast<std::size_t>(Count());
  if (size <= left_.size() / element_bytes) return size;
  Refuse("the state is too short");
  return 0;
}

std::string_view MetricStateReader::Text() {
  const std::size_t size = ListSize(1);
  const std::string_view text = left_.substr(0, size);
  left_.remove_prefix(size);
  return text;
}

std::vector<std::int64_t> MetricStateReader::Counts() {
  std::vector<std::int64_t> counts(ListSize(sizeof(std::int64_t)));
  for (std::int64_t& count : counts) count = Count();
  return counts;
}

std::vector<float> MetricStateReader::Floats() {
  std::vector<float> numbers(ListSize(sizeof(float)));
  if (!numbers.empty()) Read(numbers.data(), numbers.size() * sizeof numbers[0]);
  return numbers;
}

absl::Status MetricStateReader::Finish() {
  if (!left_.empty()) Refuse("the state is too long");
  return status_;
}

}  // namespace mpc::internal
