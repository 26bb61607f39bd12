#include "tools/mpc-train/picture_options.h"

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "models/registry.h"

namespace mpc::tools {
namespace {

constexpr std::int64_t kMostWorkers = 256;
constexpr std::size_t kChannels = 3;

void SetNormalization(const models::PixelNormalization& normalization, TrainOptions& options) {
  options.mean = normalization.mean;
  options.std = normalization.std;
}

/// "imagenet", "half", or a mean and a deviation for all channels or for each.
absl::Status ParseNormalization(const std::string& value, TrainOptions& options) {
  if (value == "imagenet") {
    SetNormalization(models::ImageNetNormalization(), options);
    return absl::OkStatus();
  }
  if (value == "half") {
    SetNormalization(models::HalfNormalization(), options);
    return absl::OkStatus();
  }
  std::vector<float> numbers;
  bool valid = true;
  for (const absl::string_view text : absl::StrSplit(value, ',')) {
    float number = 0;
    valid = valid && absl::SimpleAtof(text, &number) && std::isfinite(number);
    numbers.push_back(number);
  }
  if (numbers.size() == 2) numbers = {numbers[0], numbers[0], numbers[0], numbers[1], numbers[1], numbers[1]};
  if (valid && numbers.size() == 2 * kChannels) {
    options.mean.assign(numbers.begin(), numbers.begin() + kChannels);
    options.std.assign(numbers.begin() + kChannels, numbers.end());
    valid = options.std[0] > 0 && options.std[1] > 0 && options.std[2] > 0;
    if (valid) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", value, "'; choose imagenet, half, or numbers for pixels from 0 to 1: a mean and a deviation ",
                   "above 0 (0.5,0.5), or three means and three deviations"));
}

}  // namespace

std::string PicturesHelp() {
  std::string help = "pictures: JPEG, PNG and WebP in the folders\ntrain/CLASS and test/CLASS of --data-dir, for ";
  const std::vector<std::string> names = models::PictureNetworkNames();
  for (std::size_t i = 0; i < names.size(); ++i) {
    absl::StrAppend(&help, i == 0 ? "" : i % 4 == 0 ? ",\n" : ", ", names[i]);
  }
  return help;
}

void AddPictureFlags(FlagSet& flags, TrainOptions& options) {
  flags.Custom("normalize", "imagenet|half|MEAN,DEVIATION",
               "Pictures: the network takes (pixel - mean) / deviation, of pixels from 0 to 1. imagenet: the mean and\n"
               "the deviation of ImageNet's channels; half: 0.5 and 0.5; two numbers for all channels, or three means\n"
               "and three deviations. Default: half for vision transformers, as timm's, else imagenet.",
               /*is_switch=*/false,
               [&options](const std::string& value) { return ParseNormalization(value, options); });
  flags.Switch("augment",
               "Pictures: each epoch trains on another part of each picture, mirrored half of the time. Off where it\n"
               "is not given: mirrored digits and letters are others.",
               &options.augment);
  flags.Switch("skip-damaged",
               "Pictures: leaves those out that cannot be decoded, and says how many. Without it one is an error.",
               &options.skip_damaged);
  flags.Integer("workers", 0, kMostWorkers,
                "Pictures: threads that read them beside training. The results are the same for any number.",
                &options.workers);
}

absl::Status ResolvePictures(TrainOptions& options) {
  const std::optional<models::PixelNormalization> normalization = models::NormalizationOf(options.model);
  if (!normalization.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--data=pictures has images of three channels in the classes of their folders, which ",
                     options.model, " does not take; these do: ", absl::StrJoin(models::PictureNetworkNames(), ", ")));
  }
  if (!options.emit_path.empty()) {
    return absl::InvalidArgumentError(
        "--emit trains nothing and takes no --data=pictures; --image-size and --classes say the shapes");
  }
  if (options.data_directory.empty()) {
    return absl::InvalidArgumentError(
        "--data=pictures needs --data-dir=FOLDER, which has train/CLASS and test/CLASS with pictures");
  }
  if (options.mean.empty()) SetNormalization(*normalization, options);
  return absl::OkStatus();
}

}  // namespace mpc::tools
