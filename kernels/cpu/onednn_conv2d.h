// What the convolutions on oneDNN have in common: an operation as a problem, and the primitives that may solve it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cpu/convolution_shape.h"
#include "kernels/cpu/narrow_conv2d.h"
#include "kernels/cpu/onednn_common.h"
#include "kernels/cpu/own_way.h"
#include "kernels/cpu/registry.h"

namespace mpc::cpu {

/// conv2d or one of its derivatives, resolved. Functions refer to the spec that it was resolved from.
struct ConvolutionProblem {
  ConvolutionShape shape;
  std::vector<Candidate> candidates;
  MakeAttempt attempt;
  std::vector<OwnWay> own_ways = {};
};

/// How a problem may be solved.
struct Allowed {
  bool winograd = false;
  bool parts = true;  ///< an attempt may have parts; not those of a part of the batch
};

/// The problems of dx, from dy and weight, and of dweight, from x and dy. Errors (INVALID_ARGUMENT): operands that do
/// not fit.
absl::StatusOr<ConvolutionProblem> GradInputProblem(const KernelSpec& spec, const Allowed& allowed);
absl::StatusOr<ConvolutionProblem> GradWeightProblem(const KernelSpec& spec, const Allowed& allowed);

/// Our loops for conv2d or one of its derivatives, narrow ones and those on tiles.
struct OwnLoops {
  bool (NarrowConvolution::*takes_narrow)(bool bf16_products) const;
  std::unique_ptr<Kernel> (*make_narrow)(const KernelSpec& spec, const NarrowConvolution& narrow);
  bool (*takes_tiles)(const KernelSpec& spec, const ConvolutionShape& shape);
  bool (*is_faster_on_tiles)(const ConvolutionShape& shape);
  std::unique_ptr<Kernel> (*make_on_tiles)(const KernelSpec& spec, const ConvolutionShape& shape);
};

/// The ways of `loops` for `spec`, a convolution of `x` and `weight` resolved as `shape`. They refer to `spec`.
std::vector<OwnWay> OwnWaysOf(const KernelSpec& spec, const Shape& x, const Shape& weight,
                              const ConvolutionShape& shape, const OwnLoops& loops);

/// Candidate::way of a product of matrices.
inline constexpr char kProduct[] = "product";

/// Channels-last first, whatever the storage: on plain nchw oneDNN has only its im2col path, several times slower. Deep
/// forward convolutions in f32 are blocked, which oneDNN 2.6 computes 1.3 times as fast as channels-last, reorders
/// included. Version 3 does not, with AVX2 alone. Winograd's algorithm, where it suits, is twice as fast as either; it
/// is for what is stored in f32.
std::vector<Candidate> ConvolutionCandidates(const ConvolutionShape& shape, DType first, DType second, bool forward,
                                             bool allow_winograd);

dnnl::algorithm AlgorithmOf(const Candidate& candidate);

/// Why a result of the implementation cannot be trusted; empty: it can.
std::string DefectOf(const std::string& implementation, const ConvolutionShape& shape, dnnl::memory::format_tag layout);
/// The same, where the result is the gradient of the weight.
std::string DefectOfGradWeight(const std::string& implementation, const ConvolutionShape& shape,
                               dnnl::memory::format_tag layout);

dnnl::convolution_forward::primitive_desc ForwardDescription(const ConvolutionShape& shape, dnnl::algorithm algorithm,
                                                             const dnnl::memory::desc& x,
                                                             const dnnl::memory::desc& weight,
                                                             const dnnl::memory::desc* bias,
                                                             const dnnl::memory::desc& y,
                                                             const dnnl::post_ops& post_ops = {});

dnnl::matmul::primitive_desc ProductDescription(const dnnl::memory::desc& a, const dnnl::memory::desc& b,
                                                const dnnl::memory::desc* bias, const dnnl::memory::desc& y,
                                                const dnnl::post_ops& post_ops = {});

/// A matrix as it is stored; and one that is stored as [columns, rows].
inline dnnl::memory::desc Matrix(std::int64_t rows, std::int64_t columns, dnnl::memory::data_type type) {
  return {{rows, columns}, type, dnnl::memory::format_tag::ab};
}
inline dnnl::memory::desc Transposed(std::int64_t rows, std::int64_t columns, dnnl::memory::data_type type) {
  return {{rows, columns}, type, dnnl::memory::format_tag::ba};
}

}  // namespace mpc::cpu
