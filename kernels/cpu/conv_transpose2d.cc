// conv_transpose2d: oneDNN's derivative of a convolution by its input, then the bias. With a bias the derivative stays
// f32 until the sum is rounded.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/known_attributes.h"
#include "kernels/window.h"

namespace mpc::cpu {
namespace {

/// Adds a bias a channel to what another kernel computes in f32.
class BiasedKernel final : public Kernel {
 public:
  BiasedKernel(std::unique_ptr<Kernel> product, const KernelSpec& spec)
      : product_(std::move(product)), bias_type_(spec.inputs[2].dtype), y_type_(spec.outputs[0].dtype) {
    const Shape& y = spec.outputs[0].shape;
    const DataFormat format = spec.attributes.Get(attribute::kDataFormat);
    const ImageAxes axes = AxesOf(format);
    channels_ = y[static_cast<std::size_t>(axes.channel)];
    // Runs of one channel (NCHW) or of every channel (NHWC).
    channels_last_ = format == DataFormat::kNHWC;
    run_ =
        channels_last_ ? channels_ : y[static_cast<std::size_t>(axes.height)] * y[static_cast<std::size_t>(axes.width)];
    runs_ = spec.outputs[0].num_elements() / run_;
    bias_offset_ = CacheLines(product_->workspace_bytes());
    sum_offset_ = bias_offset_ + CacheLines(static_cast<std::size_t>(channels_) * sizeof(float));
    in_place_ = y_type_ == DType::kF32;
    bytes_ = sum_offset_ + (in_place_ ? 0 : static_cast<std::size_t>(runs_ * run_) * sizeof(float));
  }

  std::size_t workspace_bytes() const override { return bytes_; }

  void Run(const KernelOperands& operands) override {
    auto* workspace = static_cast<std::byte*>(operands.workspace);
    auto* bias = reinterpret_cast<float*>(workspace + bias_offset_);
    void* sums = in_place_ ? operands.outputs[0] : workspace + sum_offset_;
    product_->Run({operands.inputs, &sums, workspace});
    LoadFloats(bias_type_, operands.inputs[2], 0, channels_, bias);
    const auto* values = static_cast<const float*>(sums);
    const Sink y{y_type_, operands.outputs[0]};
    ParallelFor(runs_, runs_ * run_, [&](std::int64_t run) {
      for (std::int64_t start = 0; start < run_; start += kBlock) {
        const std::int64_t size = std::min(kBlock, run_ - start);
        const std::int64_t offset = run * run_ + start;
        const float* in = values + offset;
        const float* terms = bias + (channels_last_ ? start : run % channels_);
        BlockBuffer buffer;
        float* target = y.Target(offset, buffer.values);
        if (channels_last_) {  // NOLINT(bugprone-branch-clone): only one branch has a term for each element
#pragma omp simd
          for (std::int64_t i = 0; i < size; ++i) target[i] = in[i] + terms[i];
        } else {
#pragma omp simd
          for (std::int64_t i = 0; i < size; ++i) target[i] = in[i] + *terms;
        }
        y.Commit(offset, size, target);
      }
    });
  }

 private:
  std::unique_ptr<Kernel> product_;
  DType bias_type_, y_type_;
  std::int64_t channels_ = 0, run_ = 0, runs_ = 0;
  bool channels_last_ = false;
  bool in_place_ = false;
  std::size_t bias_offset_ = 0, sum_offset_ = 0, bytes_ = 0;
};

bool HasBias(const KernelSpec& spec) { return spec.inputs.size() > 2; }

/// The operation without its bias: the derivative of a convolution by its input.
KernelSpec ProductOf(const KernelSpec& spec) {
  KernelSpec product{
      "conv2d_grad_input", {spec.inputs[0], spec.inputs[1]}, spec.outputs, {}, spec.attributes, spec.weight_layout,
      spec.weight_choice};
  if (HasBias(spec)) product.outputs[0].dtype = DType::kF32;
  return product;
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateConvTranspose2d(const KernelSpec& spec, const KernelOptions& options) {
  absl::StatusOr<std::unique_ptr<Kernel>> kernel = CreateKernel(ProductOf(spec), options);
  if (!kernel.ok() || !HasBias(spec)) return kernel;
  std::string choice = (*kernel)->choice();
  std::optional<WeightPacking> packing = (*kernel)->packing();
  return WithChoice(std::make_unique<BiasedKernel>(*std::move(kernel), spec), std::move(choice), std::move(packing));
}

std::vector<std::string> TransposedChoices(const KernelSpec& spec, const KernelOptions& options) {
  return CandidateChoices(ProductOf(spec), options);
}

}  // namespace

void RegisterConvTranspose2d(Registry& registry) {
  registry.Add("conv_transpose2d", {CreateConvTranspose2d, TransposedChoices});
}

}  // namespace mpc::cpu
