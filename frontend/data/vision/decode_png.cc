// libpng reports errors by a function that must not return. Each function with a setjmp has no object to destroy.
#include <png.h>

#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontend/data/vision/codecs.h"

namespace mpc::data::vision::internal {
namespace {

// NOLINTBEGIN(modernize-avoid-setjmp-longjmp): C code would not pass an exception on.

class PngReader {
 public:
  explicit PngReader(EncodedBytes encoded) : unread_(encoded) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, JumpOut, KeepQuiet);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  bool ReadHeader() {
    if (info_ == nullptr) return false;
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_read_fn(png_, this, Read);
    png_read_info(png_, info_);
    return true;
  }

  /// Every kind of PNG is made RGB of eight bits. Alpha is dropped.
  bool Start() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    const int color = png_get_color_type(png_, info_);
    if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
    if (color == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png_);
    png_set_strip_16(png_);
    if ((color & PNG_COLOR_MASK_COLOR) == 0) png_set_gray_to_rgb(png_);
    png_set_strip_alpha(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return png_get_rowbytes(png_, info_) == static_cast<std::size_t>(width()) * 3;
  }

  bool ReadRows(png_bytepp rows) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_image(png_, rows);
    png_read_end(png_, info_);
    return true;
  }

  int Orientation() {
    png_bytep exif = nullptr;
    png_uint_32 bytes = 0;
    if (png_get_eXIf_1(png_, info_, &bytes, &exif) == 0) return 1;
    return ExifOrientation({exif, bytes});
  }

  std::int64_t height() const { return png_get_image_height(png_, info_); }
  std::int64_t width() const { return png_get_image_width(png_, info_); }
  absl::Status Damage() const {
    return absl::InvalidArgumentError(absl::StrCat("the PNG is truncated or damaged: ", message_));
  }

 private:
  [[noreturn]] static void JumpOut(png_structp png, png_const_charp message) {
    auto* reader = static_cast<PngReader*>(png_get_error_ptr(png));
    std::snprintf(reader->message_, sizeof(reader->message_), "%s", message);
    png_longjmp(png, 1);
  }
  static void KeepQuiet(png_structp, png_const_charp) {}
  static void Read(png_structp png, png_bytep target, std::size_t count) {
    auto* reader = static_cast<PngReader*>(png_get_io_ptr(png));
    if (count > reader->unread_.size()) png_error(png, "it ends too early");
    std::memcpy(target, reader->unread_.data(), count);
    reader->unread_.remove_prefix(count);
  }

  EncodedBytes unread_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  char message_[160] = "libpng could not start";
};

// NOLINTEND(modernize-avoid-setjmp-longjmp)

}  // namespace

absl::StatusOr<DecodedPicture> DecodePng(EncodedBytes encoded, std::int64_t max_pixels) {
  PngReader reader(encoded);
  if (!reader.ReadHeader()) return reader.Damage();
  DecodedPicture picture{.height = reader.height(), .width = reader.width()};
  if (absl::Status status = CheckPixelCount(picture.height, picture.width, max_pixels); !status.ok()) return status;
  if (!reader.Start()) return reader.Damage();
  const std::size_t row_bytes = static_cast<std::size_t>(picture.width) * 3;
  picture.rgb = runtime::AlignedBuffer(static_cast<std::size_t>(picture.height) * row_bytes);
  std::vector<png_bytep> rows(static_cast<std::size_t>(picture.height));
  for (std::size_t y = 0; y < rows.size(); ++y) {
    rows[y] = reinterpret_cast<png_bytep>(picture.rgb.data()) + y * row_bytes;
  }
  if (!reader.ReadRows(rows.data())) return reader.Damage();
  picture.orientation = reader.Orientation();
  return picture;
}

}  // namespace mpc::data::vision::internal
