#include "tools/support/picture_data.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/data/image_folder.h"
#include "frontend/data/sampler.h"
#include "frontend/data/vision/vision.h"

namespace mpc::tools {
namespace {

namespace vision = data::vision;

std::string FolderOf(const std::string& directory, data::Split split) {
  return absl::StrCat(directory, split == data::Split::kTrain ? "/train" : "/test");
}

/// The numbers of the rows of `files` whose pictures can be decoded. The others are counted in options.skipped. Errors:
/// a file that cannot be read or is empty.
absl::StatusOr<std::vector<std::int64_t>> IntactRows(const data::Dataset& files, const PictureDataOptions& options) {
  const absl::StatusOr<std::int64_t> count = files.size();
  if (!count.ok()) return count.status();
  const auto number = [](std::int64_t row) { return data::Row{Tensor::Scalar(static_cast<std::int32_t>(row))}; };
  const data::Dataset decoded =
      files.Zip({data::GeneratorDataset(number, *count, {"row"})})
          .Map(vision::Decode(), "image", {.num_parallel_workers = options.workers, .skipped_rows = options.skipped});
  absl::StatusOr<std::unique_ptr<data::DatasetIterator>> rows = decoded.NewIterator(/*epoch=*/0);
  if (!rows.ok()) return rows.status();
  std::vector<std::int64_t> intact;
  for (data::Row row;;) {
    const absl::StatusOr<bool> more = (*rows)->Next(&row);
    if (!more.ok() && options.skipped->count() == *count) return intact;  // an epoch without rows is an error of Map
    if (!more.ok()) return more.status();
    if (!*more) return intact;
    intact.push_back(row.back().Item<std::int32_t>());
  }
}

/// The files of one part, without damaged ones where they are to be left out.
data::Dataset FilesOf(const PictureDataOptions& options, data::Split split) {
  const std::string folder = FolderOf(options.directory, split);
  data::Dataset files = data::ImageFolderDataset(folder);
  if (!files.status().ok() || options.skipped == nullptr) return files;
  absl::StatusOr<std::vector<std::int64_t>> intact = IntactRows(files, options);
  if (!intact.ok()) return data::Dataset(intact.status());
  if (intact->empty()) {
    return data::Dataset(absl::InvalidArgumentError(absl::StrCat(
        "no picture of ", folder, " can be decoded; the first error: ", options.skipped->errors().front())));
  }
  return data::ImageFolderDataset(folder, {.sampling = {.sampler = data::SubsetSampler(*std::move(intact))}});
}

/// The files as what the network takes, of another part in every epoch where `augment` says so.
data::Dataset Prepared(const data::Dataset& files, const PictureDataOptions& options, bool augment) {
  const std::vector<std::int32_t> size = {static_cast<std::int32_t>(options.image[1]),
                                          static_cast<std::int32_t>(options.image[2])};
  const auto seed = static_cast<std::uint64_t>(options.seed);
  std::vector<data::MapOperation> operations;
  if (augment) {
    operations = {vision::RandomCropDecodeResize(size, {.antialias = true, .seed = seed}),
                  vision::RandomHorizontalFlip(0.5f, seed)};
  } else {
    operations = {vision::Decode(), vision::Resize(size, vision::Inter::kBilinear, {.antialias = true})};
  }
  operations.insert(operations.end(),
                    {vision::Rescale(1.0f / 255), vision::Normalize(options.mean, options.std), vision::HWC2CHW()});
  return files.Map(std::move(operations), "image", {.num_parallel_workers = options.workers});
}

}  // namespace

absl::StatusOr<std::vector<std::string>> PictureClasses(const std::string& directory) {
  const std::string train_folder = FolderOf(directory, data::Split::kTrain);
  const std::string test_folder = FolderOf(directory, data::Split::kTest);
  const data::Dataset train = data::ImageFolderDataset(train_folder);
  if (!train.status().ok()) return train.status();
  const data::Dataset test = data::ImageFolderDataset(test_folder);
  if (!test.status().ok()) return test.status();
  if (train.class_names() == test.class_names()) return train.class_names();
  return absl::InvalidArgumentError(absl::StrCat(train_folder, " has the classes ",
                                                 absl::StrJoin(train.class_names(), ", "), ", and ", test_folder,
                                                 " has ", absl::StrJoin(test.class_names(), ", ")));
}

absl::StatusOr<data::Dataset> LoadPictureRows(const PictureDataOptions& options, data::Split split) {
  data::Dataset rows = Prepared(FilesOf(options, split), options, /*augment=*/false);
  if (!rows.status().ok()) return rows.status();
  return rows;
}

absl::StatusOr<data::Dataset> LoadPictureBatches(const PictureDataOptions& options) {
  const data::Dataset files = FilesOf(options, data::Split::kTrain);
  const absl::StatusOr<std::int64_t> count = files.size();
  if (!count.ok()) return count.status();
  if (options.trains && options.batch_size > *count) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch size ", options.batch_size, " is larger than the training set (", *count, " pictures)"));
  }
  // The order is drawn before pictures are decoded, so that it holds none of them.
  data::Dataset batches = Prepared(files.Shuffle(static_cast<std::uint64_t>(options.seed)), options, options.augment)
                              .Batch(options.batch_size, options.drop_remainder && options.trains)
                              .Prefetch();
  if (!batches.status().ok()) return batches.status();
  return batches;
}

}  // namespace mpc::tools
