#include "tools/mpc-bench/made_pictures.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string_view>
#include <system_error>
#include <vector>

// <jpeglib.h> needs <cstdio>.
#include <jpeglib.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/atomic_file.h"

namespace mpc::tools {
namespace {

constexpr std::size_t kHeight = kMadePictureHeight;
constexpr std::size_t kWidth = kMadePictureWidth;
constexpr std::size_t kColours = 3;
constexpr int kQuality = 95;

/// Cells along an edge, and the deviation of a channel in levels: finer structure is weaker.
struct Scale {
  std::size_t cells;
  float levels;
};
constexpr std::array<Scale, 6> kScales = {{{4, 70}, {8, 50}, {16, 35}, {32, 25}, {64, 16}, {128, 10}}};
constexpr float kGrain = 8;

/// Uniform from -1 to 1. The engine gives the same numbers everywhere, which distributions of the library do not.
float Draw(std::mt19937& engine) { return static_cast<float>(engine()) * 0x1p-31f - 1; }

/// Adds noise that is linear between random values at the corners of cells. Channels share most of it.
void AddNoise(const Scale& scale, std::mt19937& engine, std::vector<float>& pixels) {
  const std::size_t corners = scale.cells + 1;
  std::vector<float> values(corners * corners * kColours);
  for (std::size_t i = 0; i < values.size(); i += kColours) {
    const float shared = Draw(engine);
    for (std::size_t c = 0; c < kColours; ++c) values[i + c] = scale.levels * (0.8f * shared + 0.4f * Draw(engine));
  }
  for (std::size_t y = 0; y < kHeight; ++y) {
    const float row = static_cast<float>(y * scale.cells) / kHeight;
    const auto top = static_cast<std::size_t>(row);
    const float down = row - static_cast<float>(top);
    for (std::size_t x = 0; x < kWidth; ++x) {
      const float column = static_cast<float>(x * scale.cells) / kWidth;
      const auto left = static_cast<std::size_t>(column);
      const float right = column - static_cast<float>(left);
      const float* corner = values.data() + (top * corners + left) * kColours;
      const float* below = corner + corners * kColours;
      for (std::size_t c = 0; c < kColours; ++c) {
        const float upper = corner[c] + right * (corner[c + kColours] - corner[c]);
        const float lower = below[c] + right * (below[c + kColours] - below[c]);
        pixels[(y * kWidth + x) * kColours + c] += upper + down * (lower - upper);
      }
    }
  }
}

std::vector<std::uint8_t> MakePicture(std::int64_t number) {
  std::mt19937 engine(static_cast<std::mt19937::result_type>(number));
  std::vector<float> pixels(kHeight * kWidth * kColours, 128.0f);
  for (const Scale& scale : kScales) AddNoise(scale, engine, pixels);
  std::vector<std::uint8_t> bytes(pixels.size());
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(std::clamp(pixels[i] + kGrain * Draw(engine), 0.0f, 255.0f));
  }
  return bytes;
}

/// What libjpeg makes of `pixels`. Its settings are fixed, so that it has no errors but a lack of memory.
std::string EncodeJpeg(std::vector<std::uint8_t>& pixels) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* encoded = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &encoded, &size);
  info.image_width = kWidth;
  info.image_height = kHeight;
  info.input_components = kColours;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, kQuality, TRUE);
  jpeg_start_compress(&info, TRUE);
  for (std::uint8_t* row = pixels.data(); info.next_scanline < info.image_height; row += kWidth * kColours) {
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string result(reinterpret_cast<const char*>(encoded), size);
  std::free(encoded);
  return result;
}

}  // namespace

absl::StatusOr<double> WriteMadePictures(const std::string& folder, std::int64_t count) {
  double bytes = 0;
  for (std::int64_t number = 0; number < count; ++number) {
    const std::filesystem::path classes = std::filesystem::path(folder) / (number % 2 == 0 ? "even" : "odd");
    std::error_code error;
    std::filesystem::create_directories(classes, error);
    if (error) return absl::UnavailableError(absl::StrCat("no folder ", classes.string(), ": ", error.message()));
    std::vector<std::uint8_t> pixels = MakePicture(number);
    const std::string jpeg = EncodeJpeg(pixels);
    const std::string path = (classes / absl::StrFormat("%04d.jpg", number)).string();
    if (absl::Status status = runtime::WriteTextFile(path, jpeg); !status.ok()) return status;
    bytes += static_cast<double>(jpeg.size());
  }
  return bytes / static_cast<double>(count);
}

}  // namespace mpc::tools
