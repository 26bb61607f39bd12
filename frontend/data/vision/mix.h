// Batches whose pictures and labels are mixed with each other.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "frontend/data/dataset.h"

namespace mpc::data::vision {

/// MindSpore's vision.MixUpBatch (mixup, arXiv 1710.09412), for Map over the columns of pictures and labels, behind
/// Batch: Map(MixUpBatch(0.2), {"image", "label"}). A batch becomes lambda * batch + (1 - lambda) * partners, and its
/// labels the same. lambda is of the distribution Beta(alpha, alpha). Partners are the pictures of the batch some
/// places further on. Places and lambda are functions of (seed, epoch, batch) alone. A batch of one picture stays as it
/// is. Pictures: [N, ...] of u8, which are rounded, or f32. Labels: f32 [N, classes], as OneHot gives them. Errors
/// (INVALID_ARGUMENT): an alpha that is not finite and above 0; other columns.
class MixUpBatch {
 public:
  explicit MixUpBatch(double alpha = 1, std::uint64_t seed = 0) : alpha_(alpha), seed_(seed) {}
  absl::StatusOr<Row> operator()(const Row& batch, const RowPosition& position) const;

 private:
  double alpha_;
  std::uint64_t seed_;
};

/// Where a batch has its channels: mindspore.dataset.vision.ImageBatchFormat.
enum class ImageBatchFormat {
  kNHWC,
  kNCHW,
};

/// The parameters of MindSpore's CutMixBatch, and the seed, which MindSpore has once for all transforms.
struct CutMixBatchOptions {
  double alpha = 1;  ///< lambda is of the distribution Beta(alpha, alpha)
  float prob = 1;    ///< probability of a picture to be mixed, from 0 to 1
  std::uint64_t seed = 0;
};

/// MindSpore's vision.CutMixBatch (CutMix, arXiv 1905.04899), for Map over the columns of pictures and labels, behind
/// Batch. A picture takes a rectangle of its partner's, in the same place, and labels are mixed by the share of pixels.
/// The rectangle has about 1 - lambda of the pixels, at a place drawn uniformly, and is cut at the edge. Each picture
/// has a lambda of its own. Partners and draws are as MixUpBatch's, and so are labels. Pictures: rank 4, of any element
/// type. Errors (INVALID_ARGUMENT): an alpha that is not finite and above 0, prob outside 0 .. 1; other columns.
class CutMixBatch {
 public:
  explicit CutMixBatch(ImageBatchFormat image_batch_format, CutMixBatchOptions options = {})
      : image_batch_format_(image_batch_format), options_(options) {}
  absl::StatusOr<Row> operator()(const Row& batch, const RowPosition& position) const;

 private:
  ImageBatchFormat image_batch_format_;
  CutMixBatchOptions options_;
};

}  // namespace mpc::data::vision
