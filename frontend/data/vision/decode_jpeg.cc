// libjpeg reports errors by a function that must not return. Each function with a setjmp has no object to destroy.
#include <algorithm>
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

  /// From here on rows have the columns from `*left`, `*width` of them: whole blocks, which hold those asked for.
  bool KeepColumns(JDIMENSION* left, JDIMENSION* width) {
    if (setjmp(error_.jump) != 0) return false;
    jpeg_crop_scanline(&info_, left, width);
    return true;
  }

  /// Reads the codes of rows and computes no pixels of them.
  bool SkipRows(JDIMENSION rows) {
    if (setjmp(error_.jump) != 0) return false;
    return rows == 0 || jpeg_skip_scanlines(&info_, rows) == rows;
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
  /// Columns that share blocks.
  std::int64_t block_columns() const { return static_cast<std::int64_t>(info_.max_h_samp_factor) * DCTSIZE; }
  /// Whether codes become pixels as they are read.
  bool has_one_scan() const { return jpeg_has_multiple_scans(const_cast<jpeg_decompress_struct*>(&info_)) == FALSE; }
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

bool ReadWhole(JpegReader& reader, DecodedPicture& picture) {
  auto* row = reinterpret_cast<std::uint8_t*>(picture.rgb.data());
  std::vector<std::uint8_t> inks(reader.has_four_channels() ? static_cast<std::size_t>(picture.width) * 4 : 0);
  for (std::int64_t y = 0; y < picture.height; ++y, row += picture.width * 3) {
    if (!reader.ReadRow(inks.empty() ? row : inks.data())) return false;
    if (!inks.empty()) InksToRgb(inks, reader.inverted(), row);
  }
  return true;
}

/// Reads the rows of `part` into `rgb`. Chroma is interpolated between neighbours, and libjpeg takes the edge of kept
/// columns for the picture's. So a block more is kept on either side, where there is one.
bool ReadPart(JpegReader& reader, const Box& part, std::byte* rgb) {
  const std::int64_t margin = reader.block_columns();
  auto left = static_cast<JDIMENSION>(std::max(part.left - margin, std::int64_t{0}));
  auto width = static_cast<JDIMENSION>(std::min(part.left + part.width + margin, reader.width()) - left);
  if (!reader.KeepColumns(&left, &width)) return false;
  std::vector<std::uint8_t> row(static_cast<std::size_t>(width) * 3);
  if (!reader.SkipRows(static_cast<JDIMENSION>(part.top))) return false;
  const std::size_t before = (static_cast<std::size_t>(part.left) - left) * 3;
  const std::size_t bytes = static_cast<std::size_t>(part.width) * 3;
  for (std::int64_t y = 0; y < part.height; ++y, rgb += bytes) {
    if (!reader.ReadRow(row.data())) return false;
    std::memcpy(rgb, row.data() + before, bytes);
  }
  // Skipping to the end would leave the codes there unread, and damage in them unseen.
  const std::int64_t below = reader.height() - part.top - part.height;
  return below == 0 || (reader.SkipRows(static_cast<JDIMENSION>(below - 1)) && reader.ReadRow(row.data()));
}

}  // namespace

absl::StatusOr<DecodedPicture> DecodeJpeg(EncodedBytes encoded, std::int64_t max_pixels, const ChoosePart& choose) {
  JpegReader reader;
  if (!reader.ReadHeader(encoded)) return reader.Damage();
  DecodedPicture picture{.height = reader.height(), .width = reader.width(), .orientation = reader.Orientation()};
  if (absl::Status status = CheckPixelCount(picture.height, picture.width, max_pixels); !status.ok()) return status;
  picture.is_part =
      choose != nullptr && picture.orientation == 1 && !reader.has_four_channels() && reader.has_one_scan();
  Box part{.height = picture.height, .width = picture.width};
  if (picture.is_part) {
    const absl::StatusOr<Box> chosen = choose({.height = picture.height, .width = picture.width, .channels = 3});
    if (!chosen.ok()) return chosen.status();
    part = *chosen;
    picture.height = part.height;
    picture.width = part.width;
  }
  if (!reader.Start()) return reader.Damage();
  const std::size_t row_bytes = static_cast<std::size_t>(picture.width) * 3;
  picture.rgb = runtime::AlignedBuffer(static_cast<std::size_t>(picture.height) * row_bytes);
  const bool read = picture.is_part ? ReadPart(reader, part, picture.rgb.data()) : ReadWhole(reader, picture);
  if (!read || !reader.Finish()) return reader.Damage();
  return picture;
}

}  // namespace mpc::data::vision::internal
