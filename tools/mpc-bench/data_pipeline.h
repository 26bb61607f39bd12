// mpc's side of --data: pictures from files to batches.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "frontend/data/dataset.h"
#include "tools/mpc-bench/options.h"

namespace mpc::tools {

/// Side of the pictures of a batch.
constexpr std::int64_t kReadSide = 224;

struct ReadPlan {
  std::string folder;  ///< has a folder for each class
  std::int64_t workers = 2;
  std::int64_t repetitions = 1;  ///< orders of the pictures in an epoch, where `shuffled` is true
  float mirrored = 0.5f;         ///< probability
  bool shuffled = true;          ///< false: the pictures once, in their own order
};

/// Pictures in f32 [3, kReadSide, kReadSide] beside their labels. A picture is a random part of the file's, resized
/// with antialias, mirrored at random and normalised with the mean and the deviation of ImageNet.
data::Dataset ReadPictures(const ReadPlan& plan);

/// Pictures a second, in batches of `options.batch`: those of `options.steps` batches after `options.warmup`. The
/// folder has `pictures` of them. Errors: those of reading.
absl::StatusOr<double> MeasureReading(const DataOptions& options, const std::string& folder, std::int64_t pictures);

/// Writes what a peer compares its pixels with, as safetensors. "pixels" are the first `count` pictures of the folder
/// in their order. "parts", i64 [count, 5], are the top, left, height and width of each part, and 1 where it is
/// mirrored. Every other picture is. Errors: those of reading and writing.
absl::Status WritePixels(const std::string& folder, std::int64_t count, const std::string& path);

}  // namespace mpc::tools
