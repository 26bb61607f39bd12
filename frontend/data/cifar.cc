#include "frontend/data/cifar.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "frontend/data/find_data.h"
#include "frontend/data/gzip_file.h"

namespace mpc::data {
namespace {

constexpr std::int64_t kExtent = 32;
constexpr std::int64_t kChannels = 3;
constexpr std::size_t kPlane = kExtent * kExtent;
constexpr std::size_t kPixels = kPlane * kChannels;

/// One of the published formats. A record is a byte for each label, then the planes of red, green and blue.
struct Format {
  std::vector<std::string> train_files;
  std::string test_file;
  ColumnNames labels;
  std::vector<int> classes;  ///< the classes of each label

  std::size_t record_bytes() const { return labels.size() + kPixels; }
};

struct Records {
  std::vector<std::uint8_t> bytes;
  std::size_t labels = 0;

  std::int64_t size() const { return static_cast<std::int64_t>(bytes.size() / (labels + kPixels)); }
  Row operator[](std::size_t index) const;
};

Row Records::operator[](std::size_t index) const {
  const absl::Span<const std::uint8_t> record =
      absl::MakeConstSpan(bytes).subspan(index * (labels + kPixels), labels + kPixels);
  const absl::Span<const std::uint8_t> planes = record.subspan(labels);
  std::vector<std::uint8_t> image(kPixels);
  for (std::size_t i = 0; i < kPixels; ++i) image[i] = planes[i % kChannels * kPlane + i / kChannels];
  Row row = {Tensor::From(image, {kExtent, kExtent, kChannels})};
  for (std::size_t label = 0; label < labels; ++label) row.push_back(Tensor::Scalar<std::int32_t>(record[label]));
  return row;
}

absl::Status CheckFile(const std::string& path, absl::Span<const std::uint8_t> content, const Format& format) {
  const std::size_t record = format.record_bytes();
  if (content.empty() || content.size() % record != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " has ", content.size(), " bytes: ", content.empty() ? "it is empty" : "it is truncated, or no such file",
        "; accepted are multiples of ", record, " bytes, one for each image"));
  }
  for (std::size_t row = 0; row < content.size() / record; ++row) {
    for (std::size_t label = 0; label < format.labels.size(); ++label) {
      const int given = content[row * record + label];
      if (given < format.classes[label]) continue;
      return absl::InvalidArgumentError(absl::StrCat(path, ": ", format.labels[label], " ", given, " in row ", row,
                                                     " is out of range 0..", format.classes[label] - 1));
    }
  }
  return absl::OkStatus();
}

Dataset ReadCifar(const std::string& folder, const UsageOptions& options, const Format& format) {
  std::vector<std::string> names;
  if (options.usage != Usage::kTest) names = format.train_files;
  if (options.usage != Usage::kTrain) names.push_back(format.test_file);
  Records records{.labels = format.labels.size()};
  for (const std::string& name : names) {
    absl::StatusOr<std::string> path = FindDataFile({name, name + ".gz"}, {folder});
    if (!path.ok()) return Dataset(path.status());
    absl::StatusOr<std::vector<std::uint8_t>> content = internal::ReadMaybeGzipped(*path);
    if (!content.ok()) return Dataset(content.status());
    if (absl::Status status = CheckFile(*path, *content, format); !status.ok()) return Dataset(std::move(status));
    records.bytes.insert(records.bytes.end(), content->begin(), content->end());
  }
  ColumnNames columns = {"image"};
  columns.insert(columns.end(), format.labels.begin(), format.labels.end());
  return GeneratorDataset(std::move(records), std::move(columns), options.sampling);
}

}  // namespace

Dataset Cifar10Dataset(const std::string& dataset_dir, const UsageOptions& options) {
  Format format{.test_file = "test_batch.bin", .labels = {"label"}, .classes = {10}};
  for (int i = 1; i <= 5; ++i) format.train_files.push_back(absl::StrCat("data_batch_", i, ".bin"));
  return ReadCifar(dataset_dir, options, format)
      .WithClassNames({"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"});
}

Dataset Cifar100Dataset(const std::string& dataset_dir, const UsageOptions& options) {
  return ReadCifar(dataset_dir, options,
                   {.train_files = {"train.bin"},
                    .test_file = "test.bin",
                    .labels = {"coarse_label", "fine_label"},
                    .classes = {20, 100}});
}

}  // namespace mpc::data
