// libjpeg reports errors by a function that must not return. Each function with a setjmp has no object to destroy.
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

// <jpeglib.h> needs <cstdio>.
#include <jerror.h>
#include <jpeglib.h>

#include "absl/strings/str_cat.h"
#include "frontend/data/vision/codecs.h"

namespace mpc::data::vision::internal {
namespace {

// NOLINTBEGIN(modernize-avoid-setjmp-longjmp): C code would not pass an exception on.

constexpr char kExifPrefix[] = "Exif\0";  // and the zero that ends it
constexpr std::size_t kExifPrefixBytes = sizeof(kExifPrefix);

struct ErrorState {
  jpeg_error_mgr manager;  ///< first, so that libjpeg's pointer to it is one to this
  std::jmp_buf jump;
  bool damaged;
  char message[JMSG_LENGTH_MAX];
};

ErrorState* StateOf(j_common_ptr info) { return reinterpret_cast<ErrorState*>(info->err); }

[[noreturn]] void JumpOut(j_common_ptr info) {
  (*info->err->format_message)(info, StateOf(info)->message);
  std::longjmp(StateOf(info)->jump, 1);
}

/// Warnings of which the pixels are whole all the same.
bool IsHarmless(int code) {
  return code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR ||
         code == JWRN_TOO_MUCH_DATA;
}

void KeepDamage(j_common_ptr info, int level) {
  ErrorState* state = StateOf(info);
  if (level >= 0 || state->damaged || IsHarmless(info->err->msg_code)) return;
  state->damaged = true;
  (*info->err->format_message)(info, state->message);
}

void KeepQuiet(j_common_ptr) {}

class JpegReader {
 public:
  JpegReader() {
    info_.err = jpeg_std_error(&error_.manager);
    error_.manager.error_exit = JumpOut;
    error_.manager.emit_message = KeepDamage;
    error_.manager.output_message = KeepQuiet;
  }
  ~JpegReader() { jpeg_destroy_decompress(&info_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  bool ReadHeader(EncodedBytes encoded) {
    if (setjmp(error_.jump) != 0) return false;
    jpeg_create_decompress(&info_);
    jpeg_mem_src(&info_, encoded.data(), static_cast<unsigned long>(encoded.size()));
    jpeg_save_markers(&info_, JPEG_APP0 + 1, 0xffff);
    jpeg_read_header(&info_, TRUE);
    info_.out_color_space = has_four_channels() ? JCS_CMYK : JCS_RGB;
    return true;
  }

  bool Start() {
    if (setjmp(error_.jump) != 0) return false;
    jpeg_start_decompress(&info_);
    return true;
  }

  bool ReadRow(std::uint8_t* row) {
    if (setjmp(error_.jump) != 0) return false;
    return jpeg_read_scanlines(&info_, &row, 1) == 1;
  }

  bool Finish() {
    if (setjmp(error_.jump) != 0) return false;
    jpeg_finish_decompress(&info_);
    return !error_.damaged;
  }

  int Orientation() const {
    for (const jpeg_marker_struct* marker = info_.marker_list; marker != nullptr; marker = marker->next) {
      const EncodedBytes data(marker->data, marker->data_length);
      if (data.size() >= kExifPrefixBytes && std::memcmp(data.data(), kExifPrefix, kExifPrefixBytes) == 0) {
        return ExifOrientation(data.subspan(kExifPrefixBytes));
      }
    }
    return 1;
  }

  std::int64_t height() const { return static_cast<std::int64_t>(info_.image_height); }
  std::int64_t width() const { return static_cast<std::int64_t>(info_.image_width); }
  bool has_four_channels() const { return info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK; }
  /// Adobe's programs store the inks inverted.
  bool inverted() const { return info_.saw_Adobe_marker != 0; }
  absl::Status Damage() const {
    return absl::InvalidArgumentError(absl::StrCat("the JPEG is truncated or damaged: ", error_.message));
  }

 private:
  jpeg_decompress_struct info_{};
  ErrorState error_{};
};

void InksToRgb(const std::vector<std::uint8_t>& inks, bool inverted, std::uint8_t* rgb) {
  for (std::size_t x = 0; x < inks.size() / 4; ++x) {
    const auto light = [&](std::size_t ink) { return inverted ? inks[4 * x + ink] : 255 - inks[4 * x + ink]; };
    for (std::size_t c = 0; c < 3; ++c) rgb[3 * x + c] = static_cast<std::uint8_t>((light(c) * light(3) + 127) / 255);
  }
}

// NOLINTEND(modernize-avoid-setjmp-longjmp)

}  // namespace

absl::StatusOr<DecodedPicture> DecodeJpeg(EncodedBytes encoded, std::int64_t max_pixels) {
  JpegReader reader;
  if (!reader.ReadHeader(encoded)) return reader.Damage();
  DecodedPicture picture{.height = reader.height(), .width = reader.width(), .orientation = reader.Orientation()};
  if (absl::Status status = CheckPixelCount(picture.height, picture.width, max_pixels); !status.ok()) return status;
  if (!reader.Start()) return reader.Damage();
  const std::size_t row_bytes = static_cast<std::size_t>(picture.width) * 3;
  picture.rgb = runtime::AlignedBuffer(static_cast<std::size_t>(picture.height) * row_bytes);
  auto* row = reinterpret_cast<std::uint8_t*>(picture.rgb.data());
  std::vector<std::uint8_t> inks(reader.has_four_channels() ? static_cast<std::size_t>(picture.width) * 4 : 0);
  for (std::int64_t y = 0; y < picture.height; ++y, row += row_bytes) {
    if (!reader.ReadRow(inks.empty() ? row : inks.data())) return reader.Damage();
    if (!inks.empty()) InksToRgb(inks, reader.inverted(), row);
  }
  if (!reader.Finish()) return reader.Damage();
  return picture;
}

}  // namespace mpc::data::vision::internal
