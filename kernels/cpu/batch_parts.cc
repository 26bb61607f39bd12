#include "kernels/cpu/batch_parts.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/onednn_common.h"
#include "kernels/cpu/parallel.h"

namespace mpc::cpu {
namespace {

/// The most bytes of images that are widened at a time. This is about a cache, so that the next pass finds there what
/// one pass widened.
constexpr std::int64_t kWidenedBytes = 3 << 20;

bool IsWidened(DType dtype) { return (dtype == DType::kF16 || dtype == DType::kBF16) && !IsNative(dtype); }

std::int64_t WidenedBytes(const TensorSpec& tensor) {
  return IsWidened(tensor.dtype) ? tensor.num_elements() * static_cast<std::int64_t>(sizeof(float)) : 0;
}

/// Bytes of the images of one part.
std::size_t PartBytes(const TensorSpec& images, const BatchCut& cut) {
  return images.bytes() / static_cast<std::size_t>(images.shape[0]) * static_cast<std::size_t>(cut.images);
}

class PartsKernel : public Kernel {
 public:
  PartsKernel(const KernelSpec& spec, const BatchOperands& operands, const BatchCut& cut, std::unique_ptr<Kernel> part,
              std::unique_ptr<Kernel> rest)
      : images_(operands.images),
        parts_(cut.parts),
        part_(std::move(part)),
        rest_(std::move(rest)),
        inputs_(spec.inputs.size()) {
    for (std::size_t i = 0; i < images_; ++i) strides_.push_back(PartBytes(spec.inputs[i], cut));
  }
  std::string choice() const override { return part_->choice(); }
  /// The weight is packed once for all parts, where the last part wants the same layout.
  std::optional<WeightPacking> packing() const override {
    std::optional<WeightPacking> packing = part_->packing();
    if (!packing || rest_ == nullptr) return packing;
    const std::optional<WeightPacking> rest = rest_->packing();
    return rest && rest->layout == packing->layout && rest->packed == packing->packed ? packing : std::nullopt;
  }

 protected:
  /// Runs part `index` into `result`.
  void RunPart(std::int64_t index, const KernelOperands& operands, void* result, void* workspace) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const std::size_t offset = i < images_ ? strides_[i] * static_cast<std::size_t>(index) : 0;
      inputs_[i] = static_cast<const std::byte*>(operands.inputs[i]) + offset;
    }
    const bool is_rest = rest_ != nullptr && index + 1 == parts_;
    (is_rest ? rest_ : part_)->Run({inputs_.data(), &result, workspace});
  }
  std::int64_t parts() const { return parts_; }
  std::size_t part_workspace() const {
    return std::max(part_->workspace_bytes(), rest_ == nullptr ? 0 : rest_->workspace_bytes());
  }

 private:
  std::size_t images_;
  std::int64_t parts_;
  std::unique_ptr<Kernel> part_, rest_;
  std::vector<std::size_t> strides_;  ///< bytes of a part, for each image operand
  std::vector<const void*> inputs_;
};

class ImagesInParts final : public PartsKernel {
 public:
  ImagesInParts(const KernelSpec& spec, const BatchOperands& operands, const BatchCut& cut,
                std::unique_ptr<Kernel> part, std::unique_ptr<Kernel> rest)
      : PartsKernel(spec, operands, cut, std::move(part), std::move(rest)), stride_(PartBytes(spec.outputs[0], cut)) {}

  std::size_t workspace_bytes() const override { return part_workspace(); }
  void Run(const KernelOperands& operands) override {
    auto* result = static_cast<std::byte*>(operands.outputs[0]);
    for (std::int64_t i = 0; i < parts(); ++i, result += stride_) RunPart(i, operands, result, operands.workspace);
  }

 private:
  std::size_t stride_;
};

/// The workspace holds the result of one part, the sum (unless the result itself is f32), and the workspace of a part.
class SumInParts final : public PartsKernel {
 public:
  SumInParts(const KernelSpec& spec, const BatchOperands& operands, const BatchCut& cut, std::unique_ptr<Kernel> part,
             std::unique_ptr<Kernel> rest)
      : PartsKernel(spec, operands, cut, std::move(part), std::move(rest)),
        type_(spec.outputs[0].dtype),
        elements_(spec.outputs[0].num_elements()),
        sum_bytes_(CacheLines(static_cast<std::size_t>(elements_) * sizeof(float))) {}

  std::size_t workspace_bytes() const override {
    return part_workspace() + (type_ == DType::kF32 ? sum_bytes_ : 2 * sum_bytes_);
  }
  void Run(const KernelOperands& operands) override {
    auto* workspace = static_cast<std::byte*>(operands.workspace);
    auto* part = reinterpret_cast<float*>(workspace);
    workspace += sum_bytes_;
    auto* sum = static_cast<float*>(operands.outputs[0]);
    if (type_ != DType::kF32) {
      sum = reinterpret_cast<float*>(workspace);
      workspace += sum_bytes_;
    }
    RunPart(0, operands, sum, workspace);
    for (std::int64_t i = 1; i < parts(); ++i) {
      RunPart(i, operands, part, workspace);
      ParallelBlocks(elements_, kBlock, [&](std::int64_t begin, std::int64_t size) {
        for (std::int64_t k = begin; k < begin + size; ++k) sum[k] += part[k];
      });
    }
    if (type_ == DType::kF32) return;
    ParallelBlocks(elements_, kBlock, [&](std::int64_t begin, std::int64_t size) {
      StoreFloats(type_, sum + begin, operands.outputs[0], begin, size);
    });
  }

 private:
  DType type_;
  std::int64_t elements_;
  std::size_t sum_bytes_;
};

}  // namespace

BatchCut CutBatch(const KernelSpec& spec, const BatchOperands& operands) {
  const std::int64_t batch = spec.inputs[0].shape[0];
  std::int64_t bytes = operands.sums_the_batch ? 0 : WidenedBytes(spec.outputs[0]);
  for (std::size_t i = 0; i < operands.images; ++i) bytes += WidenedBytes(spec.inputs[i]);
  if (bytes <= kWidenedBytes || batch < 2) return {1, batch, 0};
  const std::int64_t least = std::min(batch, (bytes + kWidenedBytes - 1) / kWidenedBytes);
  // Equal parts need one kernel, as long as they are not many more.
  for (std::int64_t parts = least; parts < 2 * least && parts <= batch; ++parts) {
    if (batch % parts == 0) return {parts, batch / parts, 0};
  }
  const std::int64_t images = (batch + least - 1) / least;
  return {(batch + images - 1) / images, images, batch % images};
}

KernelSpec PartOf(const KernelSpec& spec, const BatchOperands& operands, std::int64_t images) {
  KernelSpec part = spec;
  for (std::size_t i = 0; i < operands.images; ++i) part.inputs[i].shape[0] = images;
  if (operands.sums_the_batch) {
    part.outputs[0].dtype = DType::kF32;
  } else {
    part.outputs[0].shape[0] = images;
  }
  return part;
}

std::unique_ptr<Kernel> RunInParts(const KernelSpec& spec, const BatchOperands& operands, const BatchCut& cut,
                                   std::unique_ptr<Kernel> part, std::unique_ptr<Kernel> rest) {
  if (operands.sums_the_batch) {
    return std::make_unique<SumInParts>(spec, operands, cut, std::move(part), std::move(rest));
  }
  return std::make_unique<ImagesInParts>(spec, operands, cut, std::move(part), std::move(rest));
}

}  // namespace mpc::cpu
