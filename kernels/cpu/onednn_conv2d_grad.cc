// The derivatives of conv2d on oneDNN.
#include <algorithm>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/batch_parts.h"
#include "kernels/cpu/onednn_api.h"
#include "kernels/cpu/onednn_conv2d.h"
#include "kernels/cpu/panel_convolution.h"
#include "kernels/cpu/row_parts.h"
#include "kernels/cpu/row_products.h"
#include "kernels/cpu/tile_convolution.h"
#include "kernels/cpu/tiles.h"

namespace mpc::cpu {
namespace {

using dnnl::memory;
using FormatTag = memory::format_tag;
using DataType = memory::data_type;

/// Backward descriptions take the forward one as a hint; its layouts do not bind them.
dnnl::convolution_forward::primitive_desc Hint(const ConvolutionShape& shape, const Candidate& candidate) {
  return ForwardDescription(shape, AlgorithmOf(candidate), shape.X(candidate.type, FormatTag::any),
                            shape.AnyWeight(candidate.type), nullptr, shape.Y(candidate.type, FormatTag::any));
}

Attempt GradInputConvolution(const KernelSpec& spec, const ConvolutionShape& shape, const Candidate& candidate) {
  const DataType type = candidate.type;
  const DataType result_type = ResultType(type, spec.outputs[0].dtype, Activation::kNone);
  const auto description = DescribeBackward<dnnl::convolution_backward_data>(
      OnednnEngine(), StrictAttributes(), Hint(shape, candidate), AlgorithmOf(candidate),
      shape.X(result_type, candidate.layout), shape.AnyWeight(type), shape.Y(type, candidate.layout), shape.strides,
      shape.dilations, shape.pad_begin, shape.pad_end);
  Attempt attempt = AttemptOf<dnnl::convolution_backward_data>(description);
  attempt.defect = DefectOf(attempt.implementation, shape, candidate.layout);
  attempt.staged().inputs = {
      {DNNL_ARG_DIFF_DST, spec.inputs[0].dtype, shape.Y(type, shape.stored_layout), description.diff_dst_desc()},
      {DNNL_ARG_WEIGHTS, spec.inputs[1].dtype, shape.Weight(type), description.weights_desc(), true}};
  attempt.staged().output = {DNNL_ARG_DIFF_SRC, spec.outputs[0].dtype, shape.X(result_type, shape.stored_layout),
                             description.diff_src_desc()};
  return attempt;
}

Attempt GradInputProduct(const KernelSpec& spec, const ConvolutionShape& shape, DataType type) {
  const memory::desc dy = Matrix(shape.pixels(), shape.out_channels(), type);
  const memory::desc weight = Matrix(shape.out_channels(), shape.in_channels(), type);
  const memory::desc dx =
      Matrix(shape.pixels(), shape.in_channels(), ResultType(type, spec.outputs[0].dtype, Activation::kNone));
  Attempt attempt = AttemptOf<dnnl::matmul>(ProductDescription(dy, weight, nullptr, dx));
  attempt.staged().inputs = {{DNNL_ARG_SRC, spec.inputs[0].dtype, dy, dy},
                             {DNNL_ARG_WEIGHTS, spec.inputs[1].dtype, weight, weight}};
  attempt.staged().output = {DNNL_ARG_DST, spec.outputs[0].dtype, dx, dx};
  return attempt;
}

Attempt GradInputAttempt(const KernelSpec& spec, const ConvolutionShape& shape, const Candidate& candidate,
                         bool in_parts) {
  const auto make = [&](const ConvolutionShape& part) {
    return candidate.way == kProduct ? GradInputProduct(spec, part, candidate.type)
                                     : GradInputConvolution(spec, part, candidate);
  };
  const std::int64_t rows = RowsOfPart(spec, kGradInput, shape);
  return in_parts && rows < shape.x[2] ? InRowsOrImages(spec, kGradInput, shape, rows, make) : make(shape);
}

/// Sums over the batch and the image are kept in f32 and rounded once, at the end.
constexpr DataType kSum = DataType::f32;

/// The gradient of the weight of `shape`, whose dy may have some of the channels of `all`.
Attempt GradWeightOfChannels(const ConvolutionShape& shape, const ConvolutionShape& all, const Candidate& candidate) {
  const DataType type = candidate.type;
  const auto description = DescribeBackward<dnnl::convolution_backward_weights>(
      OnednnEngine(), StrictAttributes(), Hint(shape, candidate), AlgorithmOf(candidate),
      shape.X(type, candidate.layout), shape.AnyWeight(kSum), shape.Y(type, candidate.layout), shape.strides,
      shape.dilations, shape.pad_begin, shape.pad_end);
  Attempt attempt = AttemptOf<dnnl::convolution_backward_weights>(description);
  attempt.defect = DefectOfGradWeight(attempt.implementation, shape, candidate.layout);
  const DType storage = StorageOf(type);
  const memory::desc dy(shape.y, type, StridesOf(all.Y(type, all.stored_layout)));
  attempt.staged().inputs = {{DNNL_ARG_SRC, storage, shape.X(type, shape.stored_layout), description.src_desc()},
                             {DNNL_ARG_DIFF_DST, storage, dy, description.diff_dst_desc()}};
  attempt.staged().output = {DNNL_ARG_DIFF_WEIGHTS, DType::kF32, shape.Weight(kSum), description.diff_weights_desc()};
  return attempt;
}

/// The same as a product, dweight [O, C] = dy^T x.
Attempt GradWeightProductOfChannels(const ConvolutionShape& shape, const ConvolutionShape& all, DataType type) {
  const memory::desc x = Matrix(shape.pixels(), shape.in_channels(), type);
  const memory::desc dy({shape.out_channels(), shape.pixels()}, type, memory::dims{1, all.out_channels()});
  const memory::desc dweight = Matrix(shape.out_channels(), shape.in_channels(), kSum);
  Attempt attempt = AttemptOf<dnnl::matmul>(ProductDescription(dy, x, nullptr, dweight));
  const DType storage = StorageOf(type);
  attempt.staged().inputs = {{DNNL_ARG_WEIGHTS, storage, x, x}, {DNNL_ARG_SRC, storage, dy, dy}};
  attempt.staged().output = {DNNL_ARG_DST, DType::kF32, dweight, dweight};
  return attempt;
}

/// Makes operands that are not stored as primitives take them ready once for all parts. Those of which a part takes
/// some channels are converted alone: each part gathers its own.
void PrepareOperands(const KernelSpec& spec, const memory::desc& x, const memory::desc& dy,
                     StagedOperation& operation) {
  const memory::desc stored[] = {x, dy};
  operation.prepared.resize(2);
  for (std::size_t i = 0; i < 2; ++i) {
    const Port first = operation.primitives.front().inputs[i];
    const bool is_whole = i == 0 || operation.parts.size() == 1;
    const memory::desc wanted = is_whole ? first.wanted : stored[i];
    if (spec.inputs[i].dtype == first.storage && wanted == stored[i]) continue;
    operation.prepared[i] = {first.argument, spec.inputs[i].dtype, stored[i], wanted};
    if (!is_whole) continue;
    for (StagedPrimitive& primitive : operation.primitives) primitive.inputs[i].stored = wanted;
  }
}

/// Makes a part of the batch convert its own images.
void TakeAsStored(const KernelSpec& spec, StagedPrimitive& primitive) {
  for (std::size_t i = 0; i < primitive.inputs.size(); ++i) primitive.inputs[i].storage = spec.inputs[i].dtype;
}

/// The gradient of the weight in parts of so many of y's channels. `make` makes that of a part.
Attempt GradWeightInParts(const KernelSpec& spec, const ConvolutionShape& shape, DataType type, std::int64_t channels,
                          const std::function<Attempt(const ConvolutionShape& part)>& make) {
  Attempt attempt;
  for (std::int64_t channel = 0; channel < shape.out_channels(); channel += channels) {
    const std::int64_t count = std::min(channels, shape.out_channels() - channel);
    if (channel == 0 || count < channels) {
      ConvolutionShape part = shape;
      part.y[1] = count;
      if (count < shape.out_channels()) part.weight[0] = count;  // there are no groups
      Attempt made = make(part);
      made.staged().output.storage = spec.outputs[0].dtype;
      attempt.Add(std::move(made));
    }
    const auto offset = [channel](std::int64_t stride, DType stored) {
      return static_cast<std::size_t>(channel * stride) * ElementSize(stored);
    };
    const std::int64_t dy_stride = StridesOf(shape.Y(type, shape.stored_layout))[1];
    attempt.operation.parts.push_back({attempt.operation.primitives.size() - 1,
                                       {0, offset(dy_stride, StorageOf(type))},
                                       offset(StridesOf(shape.Weight(kSum))[0], spec.outputs[0].dtype)});
  }
  return attempt;
}

Attempt GradWeightAttempt(const KernelSpec& spec, const ConvolutionShape& shape, const Candidate& candidate,
                          bool in_parts) {
  const DataType type = candidate.type;
  const bool is_product = candidate.way == kProduct;
  const std::int64_t channels = in_parts ? ChannelsOfPart(shape) : shape.out_channels();
  const std::int64_t rows = RowsOfPart(spec, kGradWeight, shape);
  if (in_parts && channels == shape.out_channels() && rows < shape.y[2]) {
    return InRowsOrImages(spec, kGradWeight, shape, rows, [&](const ConvolutionShape& part) {
      Attempt made =
          is_product ? GradWeightProductOfChannels(part, part, type) : GradWeightOfChannels(part, part, candidate);
      TakeAsStored(spec, made.staged());
      return made;
    });
  }
  Attempt attempt = GradWeightInParts(spec, shape, type, channels, [&](const ConvolutionShape& part) {
    return is_product ? GradWeightProductOfChannels(part, shape, type) : GradWeightOfChannels(part, shape, candidate);
  });
  const memory::desc x =
      is_product ? Matrix(shape.pixels(), shape.in_channels(), type) : shape.X(type, shape.stored_layout);
  const memory::desc dy =
      is_product ? Transposed(shape.out_channels(), shape.pixels(), type) : shape.Y(type, shape.stored_layout);
  if (in_parts) {
    PrepareOperands(spec, x, dy, attempt.operation);
  } else {
    TakeAsStored(spec, attempt.staged());
  }
  return attempt;
}

/// How one of the two gradients is computed. Fields are positions among the inputs followed by the outputs.
struct Derivative {
  const char* takes;  ///< for the error
  std::size_t x, weight, y;
  Attempt (*attempt)(const KernelSpec& spec, const ConvolutionShape& shape, const Candidate& candidate, bool in_parts);
  OwnLoops loops;
};

absl::StatusOr<ConvolutionProblem> DerivativeProblem(const KernelSpec& spec, const Allowed& allowed,
                                                     const Derivative& derivative) {
  if (spec.inputs.size() != 2 || spec.outputs.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(spec.name, " takes ", derivative.takes));
  }
  const auto shape_at = [&](std::size_t position) -> const Shape& {
    return position < 2 ? spec.inputs[position].shape : spec.outputs[0].shape;
  };
  const Shape &x = shape_at(derivative.x), &weight = shape_at(derivative.weight);
  const absl::StatusOr<ConvolutionShape> shape = ConvolutionShape::Create(spec, x, weight, shape_at(derivative.y));
  if (!shape.ok()) return shape.status();
  const DType first = spec.inputs[0].dtype, second = spec.inputs[1].dtype;
  ConvolutionProblem problem{*shape, ConvolutionCandidates(*shape, first, second, false, allowed.winograd), {}};
  problem.attempt = [&spec, &derivative, shape = *shape, parts = allowed.parts](const Candidate& candidate) {
    return derivative.attempt(spec, shape, candidate, parts);
  };
  problem.own_ways = OwnWaysOf(spec, x, weight, *shape, derivative.loops);
  return problem;
}

constexpr Derivative kByInput{.takes = "dy and weight to dx",
                              .x = 2,
                              .weight = 1,
                              .y = 0,
                              .attempt = GradInputAttempt,
                              .loops = {.takes_narrow = &NarrowConvolution::TakesGradInput,
                                        .make_narrow = MakeNarrowConv2dGradInput,
                                        .takes_tiles = MayGradInputOnTiles,
                                        .is_faster_on_tiles = AreImagesFasterOnTiles,
                                        .make_on_tiles = MakeTileConv2dGradInput}};

constexpr Derivative kByWeight{.takes = "x and dy to dweight",
                               .x = 0,
                               .weight = 2,
                               .y = 1,
                               .attempt = GradWeightAttempt,
                               .loops = {.takes_narrow = &NarrowConvolution::TakesGradWeight,
                                         .make_narrow = MakeNarrowConv2dGradWeight,
                                         .takes_tiles = MayGradWeightOnTiles,
                                         .is_faster_on_tiles = IsWeightFasterOnTiles,
                                         .make_on_tiles = MakeTileConv2dGradWeight}};

}  // namespace

absl::StatusOr<ConvolutionProblem> GradInputProblem(const KernelSpec& spec, const Allowed& allowed) {
  return DerivativeProblem(spec, allowed, kByInput);
}

absl::StatusOr<ConvolutionProblem> GradWeightProblem(const KernelSpec& spec, const Allowed& allowed) {
  absl::StatusOr<ConvolutionProblem> problem = DerivativeProblem(spec, allowed, kByWeight);
  if (!problem.ok() || !MayGradWeightInPanels(spec, problem->shape)) return problem;
  problem->own_ways.push_back({kInPanels, IsWeightFasterInPanels(problem->shape), [&spec, shape = problem->shape] {
                                 return WithChoice(MakePanelConv2dGradWeight(spec, shape), kInPanels);
                               }});
  return problem;
}

}  // namespace mpc::cpu
