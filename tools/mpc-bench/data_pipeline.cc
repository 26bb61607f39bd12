#include "tools/mpc-bench/data_pipeline.h"

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "frontend/data/image_folder.h"
#include "frontend/data/vision/random_part.h"
#include "frontend/data/vision/vision.h"
#include "frontend/state/safetensors.h"
#include "tools/mpc-bench/made_pictures.h"

namespace mpc::tools {
namespace {

namespace vision = data::vision;

constexpr std::uint64_t kSeed = 1;

vision::RandomResizedCropOptions PartOptions() { return {.antialias = true, .seed = kSeed}; }

/// Takes a row from `rows`, which has one.
absl::StatusOr<data::Row> NextRow(data::DatasetIterator& rows) {
  data::Row row;
  const absl::StatusOr<bool> more = rows.Next(&row);
  if (!more.ok()) return more.status();
  if (!*more) return absl::InternalError("the pictures ended early");
  return row;
}

}  // namespace

data::Dataset ReadPictures(const ReadPlan& plan) {
  constexpr auto kSide = static_cast<std::int32_t>(kReadSide);
  data::Dataset files = data::ImageFolderDataset(plan.folder);
  if (plan.shuffled) files = files.Shuffle(kSeed).Repeat(plan.repetitions);
  // Pixels stay u8 up to the last operation, which takes the mean and the deviation in levels.
  return files.Map(
      {vision::RandomCropDecodeResize({kSide, kSide}, PartOptions()),
       vision::RandomHorizontalFlip(plan.mirrored, kSeed), vision::HWC2CHW(),
       vision::Normalize({255 * 0.485f, 255 * 0.456f, 255 * 0.406f}, {255 * 0.229f, 255 * 0.224f, 255 * 0.225f},
                         /*is_hwc=*/false)},
      "image", {.num_parallel_workers = plan.workers});
}

absl::StatusOr<double> MeasureReading(const DataOptions& options, const std::string& folder, std::int64_t pictures) {
  using Clock = std::chrono::steady_clock;
  const std::int64_t read = (options.warmup + options.steps) * options.batch;
  const data::Dataset batches =
      ReadPictures({.folder = folder, .workers = options.threads, .repetitions = (read + pictures - 1) / pictures})
          .Batch(options.batch);
  const absl::StatusOr<std::unique_ptr<data::DatasetIterator>> rows = batches.NewIterator(0);
  if (!rows.ok()) return rows.status();
  Clock::time_point begin = Clock::now();
  for (std::int64_t step = -options.warmup; step < options.steps; ++step) {
    if (step == 0) begin = Clock::now();
    if (absl::StatusOr<data::Row> batch = NextRow(**rows); !batch.ok()) return batch.status();
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return static_cast<double>(options.steps * options.batch) / seconds;
}

absl::Status WritePixels(const std::string& folder, std::int64_t count, const std::string& path) {
  std::vector<std::unique_ptr<data::DatasetIterator>> rows;
  for (const float mirrored : {0.0f, 1.0f}) {
    auto iterator =
        ReadPictures({.folder = folder, .workers = 0, .mirrored = mirrored, .shuffled = false}).NewIterator(0);
    if (!iterator.ok()) return iterator.status();
    rows.push_back(*std::move(iterator));
  }
  std::vector<float> pixels;
  std::vector<std::int64_t> parts;
  for (std::int64_t row = 0; row < count; ++row) {
    const absl::StatusOr<data::Row> plain = NextRow(*rows[0]);
    if (!plain.ok()) return plain.status();
    const absl::StatusOr<data::Row> mirrored = NextRow(*rows[1]);
    if (!mirrored.ok()) return mirrored.status();
    const absl::StatusOr<vision::internal::Box> part =
        vision::internal::RandomPart({.height = kMadePictureHeight, .width = kMadePictureWidth, .channels = 3},
                                     PartOptions(), {.epoch = 0, .row = row});
    if (!part.ok()) return part.status();
    const absl::Span<const float> values = (row % 2 == 1 ? *mirrored : *plain)[0].data<float>();
    pixels.insert(pixels.end(), values.begin(), values.end());
    parts.insert(parts.end(), {part->top, part->left, part->height, part->width, row % 2});
  }
  Safetensors content;
  content.tensors.emplace_back("pixels", Tensor::From(pixels, {count, 3, kReadSide, kReadSide}));
  content.tensors.emplace_back("parts", Tensor::From(parts, {count, 5}));
  return SaveSafetensors(path, content);
}

}  // namespace mpc::tools
