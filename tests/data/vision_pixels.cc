// Writes what data::vision makes of pictures, for tools/parity/vision_parity.py: vision_pixels < JOBS
//
// A job is a line "PICTURE PIXELS.npy", or such a line with "nearest|bilinear|bicubic HEIGHT WIDTH opencv|pillow" or
// "TrivialAugmentWide|RandAugment OPERATION BIN BINS 1|-1" behind it. The picture is decoded, resized or changed by the
// operation where that is asked, and written as u8 [height, width, 3].
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "frontend/data/vision/augment_operations.h"
#include "frontend/data/vision/decode.h"
#include "frontend/data/vision/resize.h"

namespace mpc::data {
namespace {

using vision::Inter;

absl::StatusOr<Tensor> Decoded(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError("cannot be read");
  const std::string content(std::istreambuf_iterator<char>(file), {});
  const auto size = static_cast<std::int64_t>(content.size());
  return vision::Decode()(Tensor::FromBytes({DType::kU8, {size}}, content.data(), content.size()));
}

absl::StatusOr<Tensor> Augmented(const Tensor& picture, absl::Span<const vision::internal::AugmentOperation> operations,
                                 std::istream& job) {
  std::string name;
  std::int64_t bin = 0, bins = 0;
  double sign = 1;
  if (job >> name >> bin >> bins >> sign) {
    for (const vision::internal::AugmentOperation& operation : operations) {
      if (operation.name != name) continue;
      const double magnitude = sign * vision::internal::MagnitudeOf(operation, bin, bins, picture);
      return operation.apply(picture, magnitude, {.fill = std::vector<std::byte>(3)});
    }
  }
  return absl::InvalidArgumentError("the job is not TABLE OPERATION BIN BINS SIGN");
}

/// What `job` asks for, behind the two paths.
absl::StatusOr<Tensor> Changed(const Tensor& picture, std::istream& job) {
  static const auto* const kInterpolations = new std::map<std::string, Inter>{
      {"nearest", Inter::kNearest}, {"bilinear", Inter::kBilinear}, {"bicubic", Inter::kBicubic}};
  std::string interpolation, library;
  if (!(job >> interpolation)) return picture;
  if (interpolation == "TrivialAugmentWide") {
    return Augmented(picture, vision::internal::TrivialAugmentWideOperations(), job);
  }
  if (interpolation == "RandAugment") return Augmented(picture, vision::internal::RandAugmentOperations(), job);
  std::int32_t height = 0, width = 0;
  const auto found = kInterpolations->find(interpolation);
  if (!(job >> height >> width >> library) || found == kInterpolations->end()) {
    return absl::InvalidArgumentError("the job is not INTERPOLATION HEIGHT WIDTH LIBRARY");
  }
  return vision::Resize({height, width}, found->second, {.antialias = library == "pillow"})(picture);
}

absl::Status Run(std::istream& job) {
  std::string picture_path, pixels_path;
  job >> picture_path >> pixels_path;
  const absl::StatusOr<Tensor> picture = Decoded(picture_path);
  if (!picture.ok())
    return absl::Status(picture.status().code(), absl::StrCat(picture_path, ": ", picture.status().message()));
  const absl::StatusOr<Tensor> pixels = Changed(*picture, job);
  return pixels.ok() ? pixels->Save(pixels_path) : pixels.status();
}

int Main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream job(line);
    if (const absl::Status status = Run(job); !status.ok()) {
      std::cerr << line << ": " << status << "\n";
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace mpc::data

int main() { return mpc::data::Main(); }
