#include "frontend/data/digits.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/data/find_data.h"
#include "frontend/data/gzip_file.h"
#include "frontend/data/permutation.h"

namespace mpc::data {
namespace {

constexpr std::int64_t kRows = 1797;
constexpr std::int64_t kSide = 8;
constexpr int kDigitPixels = kSide * kSide;
constexpr int kMaxPixel = 16;
constexpr int kClasses = 10;
/// The mean and deviation of all pixels / 16.
constexpr float kMean = 0.3053f;
constexpr float kDeviation = 0.3760f;

/// Where an enlarged row or column reads: source positions `first` and `second`, weighted 1 - `weight` and `weight`.
struct Tap {
  std::size_t first = 0;
  std::size_t second = 0;
  float weight = 0;
};

std::vector<Tap> MakeTaps(std::int64_t size, Resize resize) {
  std::vector<Tap> taps;
  for (std::int64_t i = 0; i < size; ++i) {
    const float centre = (static_cast<float>(i) + 0.5f) * static_cast<float>(kSide) / static_cast<float>(size);
    if (resize == Resize::kNearest) {
      const auto nearest = static_cast<std::size_t>(centre);
      taps.push_back({nearest, nearest, 0.0f});
      continue;
    }
    const float position = std::clamp(centre - 0.5f, 0.0f, static_cast<float>(kSide - 1));
    const float floor = std::floor(position);
    const auto first = static_cast<std::size_t>(floor);
    taps.push_back({first, std::min<std::size_t>(first + 1, kSide - 1), position - floor});
  }
  return taps;
}

void Enlarge(absl::Span<const std::uint8_t> pixels, const std::vector<Tap>& taps, float scale, float shift,
             absl::Span<float> image) {
  std::size_t index = 0;
  for (const Tap& row : taps) {
    for (const Tap& column : taps) {
      const auto across = [&](std::size_t y) {
        const float left = pixels[y * kSide + column.first];
        const float right = pixels[y * kSide + column.second];
        return left + (right - left) * column.weight;
      };
      const float top = across(row.first);
      const float value = top + (across(row.second) - top) * row.weight;
      image[index++] = value * scale + shift;
    }
  }
}

}  // namespace

absl::StatusOr<internal::LabelledImages> internal::ParseDigits(std::string_view text, const std::string& origin) {
  LabelledImages digits{.height = kSide, .width = kSide};
  int line = 1;
  for (std::size_t begin = 0; begin < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const char* position = text.data() + begin;
    const char* line_end = text.data() + end;
    if (line_end > position && line_end[-1] == '\r') --line_end;
    begin = end + 1;
    const std::string where = absl::StrCat(origin, ", line ", line, ": ");
    for (int field = 0; field <= kDigitPixels; ++field) {
      int value = 0;
      const std::from_chars_result parsed = std::from_chars(position, line_end, value);
      const bool last = field == kDigitPixels;
      const bool separated = parsed.ptr == line_end ? last : !last && *parsed.ptr == ',';
      if (parsed.ec != std::errc() || !separated) {
        return absl::InvalidArgumentError(
            absl::StrCat(where, "expected 64 pixels and a label, 65 integers between commas; value ", field + 1,
                         last && parsed.ec == std::errc() ? " is followed by more" : " is missing or not an integer",
                         begin > text.size() ? " (the last line: is the file truncated?)" : ""));
      }
      if (value < 0 || value > (last ? kClasses - 1 : kMaxPixel)) {
        return absl::InvalidArgumentError(last ? absl::StrCat(where, "label ", value, " is out of range 0..9")
                                               : absl::StrCat(where, "pixel ", value, " is out of range 0..16"));
      }
      (last ? digits.labels : digits.pixels).push_back(static_cast<std::uint8_t>(value));
      position = last ? parsed.ptr : parsed.ptr + 1;
    }
  }
  return digits;
}

Dataset Digits(Split split, const DigitsOptions& options) {
  if (options.image_size < kSide) {
    return Dataset(absl::InvalidArgumentError(
        absl::StrCat("image_size of the digits must be at least ", kSide, ", got ", options.image_size)));
  }
  absl::StatusOr<std::string> path = options.path;
  if (options.path.empty()) path = FindDataFile("digits.csv.gz");
  if (!path.ok()) return Dataset(path.status());
  absl::StatusOr<std::vector<std::uint8_t>> content = internal::ReadMaybeGzipped(*path);
  if (!content.ok()) return Dataset(content.status());
  const std::string_view text(reinterpret_cast<const char*>(content->data()), content->size());
  absl::StatusOr<internal::LabelledImages> digits = internal::ParseDigits(text, *path);
  if (!digits.ok()) return Dataset(digits.status());
  if (digits->size() != kRows) {
    return Dataset(absl::InvalidArgumentError(absl::StrCat(*path, " has ", digits->size(), " digits, expected ", kRows,
                                                           ": the file is truncated or another")));
  }
  const std::vector<Tap> taps = MakeTaps(options.image_size, options.resize);
  const float deviation = options.normalise ? kDeviation : 1.0f;
  const float mean = options.normalise ? kMean : 0.0f;
  const std::vector<std::int64_t> order = Permutation(kRows, /*seed=*/0, /*epoch=*/0);
  const auto draw = [&](absl::Span<const std::uint8_t> pixels, absl::Span<float> image) {
    Enlarge(pixels, taps, 1.0f / (kMaxPixel * deviation), -mean / deviation, image);
  };
  return internal::MakeDigitDataset(*digits, internal::SplitRows(order, split), options.image_size, options.one_hot,
                                    draw)
      .Sample(options.sampling);
}

}  // namespace mpc::data
