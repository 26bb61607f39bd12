#include "frontend/data/mnist.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "frontend/data/find_data.h"
#include "frontend/data/gzip_file.h"

namespace mpc::data {
namespace {

constexpr int kMnistClasses = 10;
/// The mean and deviation of all training pixels / 255.
constexpr float kMnistMean = 0.1307f;
constexpr float kMnistDeviation = 0.3081f;

constexpr char kTrainImages[] = "train-images-idx3-ubyte";
constexpr char kTestImages[] = "t10k-images-idx3-ubyte";

/// The extents that an IDX file of bytes declares; the data follow at `data`.
struct IdxFile {
  std::vector<std::uint32_t> extents;
  absl::Span<const std::uint8_t> data;
};

std::uint32_t BigEndian(absl::Span<const std::uint8_t> bytes) {
  return static_cast<std::uint32_t>(bytes[0]) << 24 | static_cast<std::uint32_t>(bytes[1]) << 16 |
         static_cast<std::uint32_t>(bytes[2]) << 8 | bytes[3];
}

/// An IDX file of unsigned bytes begins with 0x000008nn, nn being the number of dimensions, and an extent for each.
absl::StatusOr<IdxFile> ParseIdxFile(absl::Span<const std::uint8_t> content, std::uint32_t rank,
                                     const std::string& origin) {
  const std::size_t header_bytes = 4 + 4 * static_cast<std::size_t>(rank);
  if (content.size() >= 4) {
    const std::uint32_t magic = BigEndian(content.first(4));
    const std::uint32_t expected = 0x0800u + rank;
    if (magic != expected) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s is not an IDX file of unsigned bytes with %d dimension(s): its magic number is 0x%08x, expected 0x%08x",
          origin, rank, magic, expected));
    }
  }
  if (content.size() < header_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, " is truncated: ", content.size(), " bytes, its header takes ", header_bytes));
  }
  IdxFile file{.data = content.subspan(header_bytes)};
  // Extents have 32 bits and there are at most three: the product is kept below what a file can hold.
  std::uint64_t bytes = 1;
  std::string extents;
  bool too_large = false;
  for (std::uint32_t axis = 0; axis < rank; ++axis) {
    const std::uint32_t extent = BigEndian(content.subspan(4 + 4 * std::size_t{axis}, 4));
    file.extents.push_back(extent);
    absl::StrAppend(&extents, extents.empty() ? "" : "x", extent);
    too_large = too_large || (extent != 0 && bytes > (std::uint64_t{1} << 62) / extent);
    if (!too_large) bytes *= extent;
  }
  if (too_large || bytes != file.data.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": the header declares ", extents, " bytes, ", file.data.size(), " follow",
                     too_large || bytes > file.data.size() ? " (truncated, or the header is wrong)" : ""));
  }
  return file;
}

/// Borders of pixel 0 around an image of height x width, equal up to one pixel.
void Pad(absl::Span<const std::uint8_t> pixels, std::int64_t height, std::int64_t width, std::int64_t size, float scale,
         float shift, absl::Span<float> image) {
  std::fill(image.begin(), image.end(), shift);
  const std::int64_t top = (size - height) / 2;
  const std::int64_t left = (size - width) / 2;
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      image[static_cast<std::size_t>((top + y) * size + left + x)] =
          static_cast<float>(pixels[static_cast<std::size_t>(y * width + x)]) * scale + shift;
    }
  }
}

absl::StatusOr<std::string> FindIdx(const std::string& name, const std::vector<std::string>& folders) {
  const std::string names[] = {name + ".gz", name};
  return FindDataFile(names, folders);
}

/// Labels are taken from the folder of the images.
absl::StatusOr<internal::LabelledImages> ReadIdx(const std::string& images_path, const std::string& prefix) {
  const std::string folder = std::filesystem::path(images_path).parent_path().string();
  absl::StatusOr<std::string> labels_path = FindIdx(prefix + "-labels-idx1-ubyte", {folder});
  if (!labels_path.ok()) return labels_path.status();
  absl::StatusOr<std::vector<std::uint8_t>> images = internal::ReadMaybeGzipped(images_path);
  if (!images.ok()) return images.status();
  absl::StatusOr<std::vector<std::uint8_t>> labels = internal::ReadMaybeGzipped(*labels_path);
  if (!labels.ok()) return labels.status();
  return internal::ParseIdx(*images, images_path, *labels, *labels_path);
}

std::vector<std::string> SearchedFolders(const MnistOptions& options) {
  if (!options.directory.empty()) return {options.directory};
  std::vector<std::string> folders;
  for (const std::string& folder : DataFolders()) {
    folders.push_back(folder);
    folders.push_back((std::filesystem::path(folder) / "mnist").string());
  }
  return folders;
}

}  // namespace

absl::StatusOr<internal::LabelledImages> internal::ParseIdx(absl::Span<const std::uint8_t> images,
                                                            const std::string& images_origin,
                                                            absl::Span<const std::uint8_t> labels,
                                                            const std::string& labels_origin) {
  absl::StatusOr<IdxFile> image_file = ParseIdxFile(images, 3, images_origin);
  if (!image_file.ok()) return image_file.status();
  absl::StatusOr<IdxFile> label_file = ParseIdxFile(labels, 1, labels_origin);
  if (!label_file.ok()) return label_file.status();
  if (image_file->extents[0] != label_file->extents[0]) {
    return absl::InvalidArgumentError(absl::StrCat(images_origin, " has ", image_file->extents[0], " images, but ",
                                                   labels_origin, " has ", label_file->extents[0], " labels"));
  }
  for (std::size_t row = 0; row < label_file->data.size(); ++row) {
    if (label_file->data[row] >= kMnistClasses) {
      return absl::InvalidArgumentError(absl::StrCat(labels_origin, ": label ", int{label_file->data[row]}, " in row ",
                                                     row, " is out of range 0..9"));
    }
  }
  LabelledImages result{.height = image_file->extents[1], .width = image_file->extents[2]};
  result.pixels.assign(image_file->data.begin(), image_file->data.end());
  result.labels.assign(label_file->data.begin(), label_file->data.end());
  return result;
}

bool MnistDividesTestSet(const MnistOptions& options) {
  const std::vector<std::string> folders = SearchedFolders(options);
  return !FindIdx(kTrainImages, folders).ok() && FindIdx(kTestImages, folders).ok();
}

Dataset Mnist(Split split, const MnistOptions& options) {
  const std::vector<std::string> folders = SearchedFolders(options);
  // With train-* files each split is a pair of files; without them both come from t10k-*.
  absl::StatusOr<std::string> train_path = FindIdx(kTrainImages, folders);
  const std::string prefix = split == Split::kTrain && train_path.ok() ? "train" : "t10k";
  absl::StatusOr<std::string> path = prefix == "train" ? train_path : FindIdx(kTestImages, folders);
  if (!path.ok()) return Dataset(path.status());
  absl::StatusOr<internal::LabelledImages> images = ReadIdx(*path, prefix);
  if (!images.ok()) return Dataset(images.status());
  if (options.image_size < images->height || options.image_size < images->width) {
    return Dataset(absl::InvalidArgumentError(absl::StrCat("image_size ", options.image_size, " is smaller than the ",
                                                           images->height, "x", images->width, " images of ", *path)));
  }
  std::vector<std::int64_t> order(static_cast<std::size_t>(images->size()));
  std::iota(order.begin(), order.end(), 0);
  const absl::Span<const std::int64_t> rows =
      train_path.ok() ? absl::MakeConstSpan(order) : internal::SplitRows(order, split);
  const float deviation = options.normalise ? kMnistDeviation : 1.0f;
  const float mean = options.normalise ? kMnistMean : 0.0f;
  const auto draw = [&](absl::Span<const std::uint8_t> pixels, absl::Span<float> image) {
    Pad(pixels, images->height, images->width, options.image_size, 1.0f / (255.0f * deviation), -mean / deviation,
        image);
  };
  return internal::MakeDigitDataset(*images, rows, options.image_size, options.one_hot, draw).Sample(options.sampling);
}

Dataset MnistDataset(const std::string& dataset_dir, const UsageOptions& options) {
  std::vector<std::string> prefixes;
  if (options.usage != Usage::kTest) prefixes.emplace_back("train");
  if (options.usage != Usage::kTrain) prefixes.emplace_back("t10k");
  internal::LabelledImages all;
  for (const std::string& prefix : prefixes) {
    absl::StatusOr<std::string> path = FindIdx(prefix + "-images-idx3-ubyte", {dataset_dir});
    if (!path.ok()) return Dataset(path.status());
    absl::StatusOr<internal::LabelledImages> images = ReadIdx(*path, prefix);
    if (!images.ok()) return Dataset(images.status());
    if (images->size() == 0) return Dataset(absl::InvalidArgumentError(absl::StrCat(*path, " has no images")));
    if (all.size() > 0 && (images->height != all.height || images->width != all.width)) {
      return Dataset(
          absl::InvalidArgumentError(absl::StrCat(*path, " has images of ", images->height, "x", images->width,
                                                  ", but those for training are ", all.height, "x", all.width)));
    }
    all.height = images->height;
    all.width = images->width;
    all.pixels.insert(all.pixels.end(), images->pixels.begin(), images->pixels.end());
    all.labels.insert(all.labels.end(), images->labels.begin(), images->labels.end());
  }
  const std::int64_t rows = all.size();
  auto get = [all = std::move(all)](std::int64_t row) -> Row {
    const auto bytes = static_cast<std::size_t>(all.height * all.width);
    const auto index = static_cast<std::size_t>(row);
    return {Tensor::FromBytes({DType::kU8, {all.height, all.width, 1}}, all.pixels.data() + index * bytes, bytes),
            Tensor::Scalar<std::int32_t>(all.labels[index])};
  };
  return GeneratorDataset(std::move(get), rows, {"image", "label"}, options.sampling)
      .WithClassNames(internal::DigitNames());
}

}  // namespace mpc::data
