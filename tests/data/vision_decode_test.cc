#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "frontend/data/vision/codecs.h"
#include "frontend/data/vision/decode.h"
#include "frontend/data/vision/image.h"
#include "tests/data/vision_goldens.h"

namespace mpc::data {
namespace {

using ::mpc::testing::ReadAll;
using ::std::string_literals::operator""s;
using ::testing::HasSubstr;
using vision::Decode;

std::string ErrorOf(const std::string& content, const vision::DecodeOptions& options = {}) {
  const absl::Status status = Decode(options)(Bytes(content)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

Difference DecodedDifference(const std::string& name, const std::string& extension) {
  const absl::StatusOr<Tensor> decoded = Decode()(Bytes(ReadAll(GoldenPath(name + extension))));
  EXPECT_TRUE(decoded.ok()) << name << ": " << decoded.status();
  return decoded.ok() ? DifferenceOf(*decoded, Golden(name)) : Difference{256, 256};
}

TEST(Decode, PngIsExact) {
  for (const char* name :
       {"png_rgb", "png_grey", "png_bits", "png_alpha", "png_palette", "png_transparent", "png_16"}) {
    EXPECT_EQ(DecodedDifference(name, ".png").largest, 0) << name;
  }
}

TEST(Decode, JpegIsPillowsWithinTwoLevels) {
  for (const char* name : {"jpeg_420", "jpeg_444", "jpeg_progressive", "jpeg_grey", "jpeg_cmyk", "jpeg_exif"}) {
    const Difference difference = DecodedDifference(name, ".jpg");
    EXPECT_LE(difference.largest, 2) << name;
    EXPECT_LE(difference.mean, 0.1) << name;
  }
}

TEST(Decode, LosslessWebpIsExactAndLossyIsPillowsWithinTwoLevels) {
  EXPECT_EQ(DecodedDifference("webp_lossless", ".webp").largest, 0);
  EXPECT_EQ(DecodedDifference("webp_exif", ".webp").largest, 0);
  EXPECT_LE(DecodedDifference("webp_lossy", ".webp").largest, 2);
}

TEST(Decode, TurnsRowsAsEachExifOrientationSays) {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    EXPECT_EQ(DecodedDifference(absl::StrCat("exif_", orientation), ".png").largest, 0) << orientation;
  }
}

TEST(Decode, OrientationIsReadInBothByteOrdersAndDamageIsUpright) {
  const auto orientation = [](std::string_view exif) {
    return vision::internal::ExifOrientation({reinterpret_cast<const std::uint8_t*>(exif.data()), exif.size()});
  };
  using std::string_view_literals::operator""sv;
  constexpr std::string_view kLittle = "II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"sv;
  constexpr std::string_view kBig = "MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0"sv;
  EXPECT_EQ(orientation(kLittle), 6);
  EXPECT_EQ(orientation(kBig), 6);
  for (std::size_t size = 0; size < 19; ++size) EXPECT_EQ(orientation(kLittle.substr(0, size)), 1) << size;
  for (std::size_t size = 0; size < 20; ++size) EXPECT_EQ(orientation(kBig.substr(0, size)), 1) << size;
  EXPECT_EQ(orientation("II*\0\xff\xff\xff\xff\x01\0"sv), 1);
}

/// A PNG with a chunk of four bytes of content before its pixels; `sound`: its CRC is right.
std::string WithChunk(const std::string& png, const std::string& type, bool sound) {
  const std::string body = type + "a\0b\0"s;
  const uLong crc = ::crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  std::string chunk = "\0\0\0\4"s + body;
  for (int shift = 24; shift >= 0; shift -= 8) chunk += static_cast<char>(crc >> shift ^ (sound ? 0 : 1));
  std::string changed = png;
  return changed.insert(png.find("IDAT") - 4, chunk);
}

TEST(Decode, ChunksOfPngsThatPixelsDoNotNeedAreLeftOutWhereTheirCrcIsWrong) {
  const std::string turned = ReadAll(GoldenPath("exif_6.png"));
  const std::size_t exif = turned.find("eXIf");
  ASSERT_NE(exif, std::string::npos);
  // Length, type, content, CRC.
  const std::size_t length = static_cast<unsigned char>(turned[exif - 1]);
  std::string without = turned;
  without.erase(exif - 4, 12 + length);
  const Tensor as_stored = *Decode()(Bytes(without));
  for (const std::size_t at : {exif + 4 + 2, exif + 4 + length}) {
    std::string damaged = turned;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    const absl::StatusOr<Tensor> decoded = Decode()(Bytes(damaged));
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(DifferenceOf(*decoded, as_stored).largest, 0) << "as if there were no such chunk";
  }
  EXPECT_NE(Decode()(Bytes(turned))->shape(), as_stored.shape());

  const std::string plain = ReadAll(GoldenPath("png_rgb.png"));
  const Tensor pixels = *Decode()(Bytes(plain));
  for (const bool sound : {true, false}) {
    const absl::StatusOr<Tensor> decoded = Decode()(Bytes(WithChunk(plain, "tEXt", sound)));
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(DifferenceOf(*decoded, pixels).largest, 0) << sound;
  }
  EXPECT_THAT(ErrorOf(WithChunk(plain, "PLTE", /*sound=*/false)), HasSubstr("the PNG is truncated or damaged: "));
}

/// DecodePart of a part that does not depend on the picture.
absl::StatusOr<Tensor> PartOf(const std::string& content, const vision::internal::Box& part) {
  return vision::internal::DecodePart(Bytes(content), {}, [&part](const vision::internal::Extents&) {
    return absl::StatusOr<vision::internal::Box>(part);
  });
}

TEST(DecodePart, HasTheBitsOfTheWholePictureWhereverThePartIs) {
  for (const char* name : {"jpeg_420.jpg", "jpeg_444.jpg", "jpeg_progressive.jpg", "jpeg_grey.jpg", "jpeg_cmyk.jpg",
                           "jpeg_exif.jpg", "png_rgb.png", "webp_lossy.webp"}) {
    const std::string content = ReadAll(GoldenPath(name));
    const Tensor whole = *Decode()(Bytes(content));
    const std::int64_t height = whole.dim(0), width = whole.dim(1);
    for (std::int64_t top = 0; top < height; top += 3) {
      for (std::int64_t left = 0; left < width; left += 3) {
        for (const std::int64_t size : {std::int64_t{1}, std::int64_t{9}, height}) {
          const vision::internal::Box part{top, left, std::min(size, height - top), std::min(size, width - left)};
          const absl::StatusOr<Tensor> decoded = PartOf(content, part);
          ASSERT_TRUE(decoded.ok()) << decoded.status();
          ASSERT_EQ(DifferenceOf(*decoded, vision::internal::CutOut(whole, part)).largest, 0)
              << name << ", " << part.height << " x " << part.width << " at " << top << ", " << left;
        }
      }
    }
  }
}

TEST(DecodePart, DamageOutsideThePartIsAnError) {
  const std::string whole = ReadAll(GoldenPath("jpeg_420.jpg"));
  const vision::internal::Box corner{0, 0, 2, 2};
  EXPECT_TRUE(PartOf(whole, corner).ok());
  EXPECT_THAT(std::string(PartOf(whole.substr(0, whole.size() * 9 / 10), corner).status().message()),
              HasSubstr("the JPEG is truncated or damaged: "));
}

TEST(Decode, TruncatedPicturesAreErrors) {
  for (const char* name : {"jpeg_420.jpg", "jpeg_progressive.jpg", "png_rgb.png", "png_palette.png",
                           "webp_lossless.webp", "webp_lossy.webp"}) {
    const std::string whole = ReadAll(GoldenPath(name));
    ASSERT_GT(whole.size(), 100u);
    for (const std::size_t size : {whole.size() - 3, whole.size() / 2, std::size_t{20}}) {
      EXPECT_THAT(ErrorOf(whole.substr(0, size)), HasSubstr("is truncated or damaged")) << name << " " << size;
    }
  }
}

TEST(Decode, DamagedPicturesAreErrors) {
  std::string png = ReadAll(GoldenPath("png_rgb.png"));
  png[png.size() / 2] = static_cast<char>(~png[png.size() / 2]);
  EXPECT_THAT(ErrorOf(png), HasSubstr("the PNG is truncated or damaged: "));
  std::string jpeg = ReadAll(GoldenPath("jpeg_420.jpg"));
  jpeg.replace(jpeg.size() * 3 / 4, 8, "\xff\xd9\xff\xd9\xff\xd9\xff\xd9");
  EXPECT_THAT(ErrorOf(jpeg), HasSubstr("the JPEG is truncated or damaged: "));
}

TEST(Decode, EveryDamagedByteIsAnErrorOrAPicture) {
  for (const char* name : {"exif_6.png", "jpeg_exif.jpg", "webp_exif.webp"}) {
    const std::string whole = ReadAll(GoldenPath(name));
    for (std::size_t i = 0; i < whole.size(); ++i) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(~damaged[i]);
      const absl::StatusOr<Tensor> decoded = Decode({.max_pixels = 1'000'000})(Bytes(damaged));
      if (decoded.ok()) {
        EXPECT_EQ(decoded->rank(), 3);
      } else {
        EXPECT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument) << name << " " << i;
      }
    }
  }
}

TEST(Decode, RefusesAHeaderThatAnnouncesTooManyPixels) {
  // 45 x 31 pixels.
  for (const char* name : {"png_rgb.png", "jpeg_420.jpg", "webp_lossy.webp"}) {
    const std::string whole = ReadAll(GoldenPath(name));
    EXPECT_TRUE(Decode({.max_pixels = 1395})(Bytes(whole)).ok());
    EXPECT_THAT(ErrorOf(whole, {.max_pixels = 1394}),
                HasSubstr("the picture announces 45 x 31 pixels, more than max_pixels = 1394"));
  }
  // A JPEG of 65,500 x 65,500 pixels by its header would take 12 GiB.
  std::string jpeg = ReadAll(GoldenPath("jpeg_420.jpg"));
  const std::size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, "\xff\xdc\xff\xdc");
  EXPECT_THAT(ErrorOf(jpeg), HasSubstr("the picture announces 65500 x 65500 pixels, more than max_pixels = 178956970"));
}

TEST(Decode, RefusesAPngOfNothingButAHeader) {
  // A PNG of 60,000 x 60,000 pixels by its header would take 10 GiB. Its checksum is right.
  using std::string_view_literals::operator""sv;
  constexpr std::string_view kBomb =
      "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\xea\x60\0\0\xea\x60\x08\x02\0\0\0\x0f\xb0\xe2\x15\0\0\0\0IDAT\x35\xaf\x06\x1e"sv;
  EXPECT_EQ(ErrorOf(std::string(kBomb)),
            "the picture announces 60000 x 60000 pixels, more than max_pixels = 178956970");
}

TEST(Decode, WhatIsNoPictureIsAnError) {
  EXPECT_THAT(ErrorOf("GIF89a, which is another format"), HasSubstr("no JPEG, PNG or WebP picture"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("the picture is empty"));
  const absl::Status status = Decode()(Tensor::Zeros({4, 4, 3}, DType::kU8)).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("Decode takes the bytes of a picture, u8 [bytes], got tensor<4x4x3xu8>"));
}

}  // namespace
}  // namespace mpc::data
