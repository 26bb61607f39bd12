// conv2d on oneDNN, and the choice between it and the narrow convolutions, of its derivatives too. Weights are packed
// into the layout that the primitive asks for in every run: with plain weights oneDNN falls back to slow loops.
#include "kernels/cpu/onednn_conv2d.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/batch_parts.h"
#include "kernels/cpu/onednn_api.h"
#include "kernels/cpu/row_parts.h"
#include "kernels/cpu/tile_convolution.h"
#include "kernels/cpu/tiles.h"
#include "kernels/known_attributes.h"

namespace mpc::cpu {

using dnnl::memory;
using FormatTag = memory::format_tag;
using DataType = memory::data_type;

namespace {

constexpr char kNhwc[] = "nhwc";
constexpr char kBlocked[] = "blocked";
constexpr char kWinograd[] = "winograd";
constexpr char kOwn[] = "own";  ///< the choice of loops for few channels

/// Version 3 computes channels-last images in f32 faster than blocked ones where it has AVX2 alone.
bool PrefersBlockedImages() { return DNNL_VERSION_MAJOR == 2 || UsesInstructionsOf(dnnl::cpu_isa::avx512_core); }

}  // namespace

std::vector<Candidate> ConvolutionCandidates(const ConvolutionShape& shape, DType first, DType second, bool forward,
                                             bool allow_winograd) {
  std::vector<Candidate> candidates;
  const bool winograd = allow_winograd && first == DType::kF32 && second == DType::kF32;
  for (DataType type : OperandTypes({first, second})) {
    const bool f32 = type == DataType::f32;
    if (f32 && winograd && shape.SuitsWinograd()) candidates.push_back({type, FormatTag::any, kWinograd});
    const bool blocked_first = f32 && forward && shape.IsDeep() && PrefersBlockedImages();
    if (blocked_first) candidates.push_back({type, FormatTag::any, kBlocked});
    candidates.push_back({type, FormatTag::nhwc, kNhwc});
    if (!blocked_first) candidates.push_back({type, FormatTag::any, kBlocked});
    if (shape.IsProduct()) candidates.push_back({type, FormatTag::ab, kProduct});
    candidates.push_back({type, FormatTag::nchw, "nchw", /*last_resort=*/true});
  }
  return candidates;
}

namespace {

/// oneDNN 2.6 and 3.2 gather the pixels of strided 1x1 windows into a buffer of each thread. Channels-last they store
/// whole vectors there. The gradient of the weight then writes past the buffers, into those of other threads and past
/// the scratch memory. This was seen with fewer channels than a vector has lanes. With AVX-512 that is 16, in f32 and
/// bf16, with two threads or more. With AVX2 it is 8, with one thread too. y and the gradient of the input share the
/// code, and were never seen wrong. Every remainder of channels is left to other kernels, in every direction.
bool GathersPastItsBuffer(const std::string& implementation, const ConvolutionShape& shape) {
  if (shape.strides == memory::dims{1, 1}) return false;
  if (implementation == "jit_1x1:avx2") return shape.x[1] % 8 != 0;
  const bool avx512 =
      absl::StartsWith(implementation, "jit_1x1:avx512") || absl::StartsWith(implementation, "jit_bf16_1x1:avx512");
  return avx512 && shape.x[1] % 16 != 0;
}

/// oneDNN 2.6 sums pairs of bf16 products over blocks of pixels. The gradient of the input is wrong where blocks have
/// 30 pixels (images of 30, 59, 60, 90) and y's channels are odd in number. Strides and the number of threads do not
/// matter. oneDNN 3.2 computes that gradient otherwise, and the implementation's other results are right.
bool SumsAnOddChannelWrongly(const std::string& implementation, const ConvolutionShape& shape) {
  return DNNL_VERSION_MAJOR == 2 && absl::StartsWith(implementation, "jit_bf16_1x1:avx512") && shape.y[1] % 2 != 0;
}

/// oneDNN 2.6 and 3.2 compute the gradient of the weight of bf16 images wrongly, from memory that nothing has written.
/// It was seen where rows are dilated, y has more than 28 columns and strides are 1 in height. The channels of a group
/// of x left part of a vector empty. Other gradients, f32 and blocked images are right. Every such remainder is left to
/// other kernels.
bool ReadsUnwrittenRows(const std::string& implementation, const ConvolutionShape& shape) {
  const std::int64_t channels_of_group = shape.weight[shape.weight.size() - 3];
  return absl::StartsWith(implementation, "jit_bf16:avx512") && shape.dilations[0] > 0 && channels_of_group % 16 != 0;
}

/// oneDNN 3.2 multiplies memory that nothing has written by zeros, in the gradient of the weight of bf16 images. It is
/// NaN where that memory is. It was seen where y has one column, strides are 2 or 3 in width, and a column of the
/// window meets padding alone. 2.6 was not tried.
bool ReadsUnwrittenColumns(const std::string& implementation, const ConvolutionShape& shape) {
  if (!absl::StartsWith(implementation, "jit_bf16:avx512") &&
      !absl::StartsWith(implementation, "brgconv_bwd_w:avx512_core_amx")) {
    return false;
  }
  const std::int64_t last_column = (shape.weight.back() - 1) * (shape.dilations[1] + 1) - shape.pad_begin[1];
  return shape.y[3] == 1 && shape.strides[1] > 1 && (shape.pad_begin[1] > 0 || last_column >= shape.x[3]);
}

}  // namespace

std::string DefectOf(const std::string& implementation, const ConvolutionShape& shape, FormatTag layout) {
  if (layout != FormatTag::nhwc) return "";
  if (GathersPastItsBuffer(implementation, shape)) {
    return "wrong results for strided 1x1 windows over a channel count that leaves part of a vector empty";
  }
  if (SumsAnOddChannelWrongly(implementation, shape)) return "wrong results for 1x1 windows to an odd channel count";
  return "";
}

std::string DefectOfGradWeight(const std::string& implementation, const ConvolutionShape& shape, FormatTag layout) {
  if (ReadsUnwrittenColumns(implementation, shape)) return "wrong results for columns of the window beside the image";
  if (layout == FormatTag::nhwc && ReadsUnwrittenRows(implementation, shape)) {
    return "wrong results for dilated rows over a channel count that leaves part of a vector empty";
  }
  return DefectOf(implementation, shape, layout);
}

dnnl::algorithm AlgorithmOf(const Candidate& candidate) {
  return candidate.way == kWinograd ? dnnl::algorithm::convolution_winograd : dnnl::algorithm::convolution_direct;
}

dnnl::convolution_forward::primitive_desc ForwardDescription(const ConvolutionShape& shape, dnnl::algorithm algorithm,
                                                             const memory::desc& x, const memory::desc& weight,
                                                             const memory::desc* bias, const memory::desc& y,
                                                             const dnnl::post_ops& post_ops) {
  constexpr auto kKind = dnnl::prop_kind::forward_training;
  dnnl::primitive_attr attributes = StrictAttributes();
  attributes.set_post_ops(post_ops);
  const auto describe = [&](const auto&... operands) {
    return Describe<dnnl::convolution_forward>(OnednnEngine(), attributes, kKind, algorithm, operands..., shape.strides,
                                               shape.dilations, shape.pad_begin, shape.pad_end);
  };
  return bias == nullptr ? describe(x, weight, y) : describe(x, weight, *bias, y);
}

dnnl::matmul::primitive_desc ProductDescription(const memory::desc& a, const memory::desc& b, const memory::desc* bias,
                                                const memory::desc& y, const dnnl::post_ops& post_ops) {
  dnnl::primitive_attr attributes = StrictAttributes();
  attributes.set_post_ops(post_ops);
  return bias == nullptr ? Describe<dnnl::matmul>(OnednnEngine(), attributes, a, b, y)
                         : Describe<dnnl::matmul>(OnednnEngine(), attributes, a, b, *bias, y);
}

std::vector<OwnWay> OwnWaysOf(const KernelSpec& spec, const Shape& x, const Shape& weight,
                              const ConvolutionShape& shape, const OwnLoops& loops) {
  std::vector<OwnWay> ways;
  const auto narrow = NarrowConvolution::Create(spec.attributes, x, weight);
  const bool bf16 = OperandTypes({spec.inputs[0].dtype, spec.inputs[1].dtype}).front() == DataType::bf16;
  if (narrow && ((*narrow).*loops.takes_narrow)(bf16) && spec.weight_layout.empty()) {
    ways.push_back({kOwn, true, [&spec, make = loops.make_narrow, narrow = *narrow] {
                      return WithChoice(make(spec, narrow), kOwn);
                    }});
  }
  if (loops.takes_tiles(spec, shape)) {
    ways.push_back({kOnTiles, loops.is_faster_on_tiles(shape),
                    [&spec, make = loops.make_on_tiles, shape] { return WithChoice(make(spec, shape), kOnTiles); }});
  }
  return ways;
}

namespace {

Attempt ForwardConvolution(const KernelSpec& spec, const ConvolutionShape& shape, const Candidate& candidate,
                           DataType bias_type, const Epilogue& epilogue) {
  const DataType type = candidate.type;
  const bool has_bias = spec.inputs.size() == 3;
  const memory::desc bias = shape.Bias(bias_type);
  const auto description =
      ForwardDescription(shape, AlgorithmOf(candidate), shape.X(type, candidate.layout), shape.AnyWeight(type),
                         has_bias ? &bias : nullptr, shape.Y(epilogue.result, candidate.layout), epilogue.in_primitive);
  Attempt attempt = AttemptOf<dnnl::convolution_forward>(description);
  attempt.defect = DefectOf(attempt.implementation, shape, candidate.layout);
  attempt.staged().inputs = {
      {DNNL_ARG_SRC, spec.inputs[0].dtype, shape.X(type, shape.stored_layout), description.src_desc()},
      {DNNL_ARG_WEIGHTS, spec.inputs[1].dtype, shape.Weight(type), description.weights_desc(), true}};
  if (has_bias) {
    attempt.staged().inputs.push_back({DNNL_ARG_BIAS, spec.inputs[2].dtype, bias, description.bias_desc()});
  }
  attempt.staged().output = {DNNL_ARG_DST, spec.outputs[0].dtype, shape.Y(epilogue.result, shape.stored_layout),
                             description.dst_desc()};
  attempt.staged().activation = epilogue.behind;
  return attempt;
}

Attempt ForwardProduct(const KernelSpec& spec, const ConvolutionShape& shape, DataType type, DataType bias_type,
                       const Epilogue& epilogue) {
  const bool has_bias = spec.inputs.size() == 3;
  const memory::desc x = Matrix(shape.pixels(), shape.in_channels(), type);
  const memory::desc weight = Transposed(shape.in_channels(), shape.out_channels(), type);
  const memory::desc bias = Matrix(1, shape.out_channels(), bias_type);
  const memory::desc y = Matrix(shape.pixels(), shape.out_channels(), epilogue.result);
  Attempt attempt =
      AttemptOf<dnnl::matmul>(ProductDescription(x, weight, has_bias ? &bias : nullptr, y, epilogue.in_primitive));
  attempt.staged().inputs = {{DNNL_ARG_SRC, spec.inputs[0].dtype, x, x},
                             {DNNL_ARG_WEIGHTS, spec.inputs[1].dtype, weight, weight}};
  if (has_bias) attempt.staged().inputs.push_back({DNNL_ARG_BIAS, spec.inputs[2].dtype, bias, bias});
  attempt.staged().output = {DNNL_ARG_DST, spec.outputs[0].dtype, y, y};
  attempt.staged().activation = epilogue.behind;
  return attempt;
}

Attempt ForwardAttempt(const KernelSpec& spec, const ConvolutionShape& shape, const Candidate& candidate,
                       DataType bias_type, const Epilogue& epilogue) {
  return candidate.way == kProduct ? ForwardProduct(spec, shape, candidate.type, bias_type, epilogue)
                                   : ForwardConvolution(spec, shape, candidate, bias_type, epilogue);
}

absl::StatusOr<ConvolutionProblem> ForwardProblem(const KernelSpec& spec, const Allowed& allowed) {
  if (spec.inputs.size() < 2 || spec.inputs.size() > 3 || spec.outputs.size() != 1) {
    return absl::InvalidArgumentError("conv2d takes x, weight and an optional bias to y");
  }
  absl::StatusOr<ConvolutionShape> resolved =
      ConvolutionShape::Create(spec, spec.inputs[0].shape, spec.inputs[1].shape, spec.outputs[0].shape);
  if (!resolved.ok()) return resolved.status();
  const ConvolutionShape& shape = *resolved;
  const bool has_bias = spec.inputs.size() == 3;
  if (has_bias && spec.inputs[2].shape != Shape{shape.bias[0]}) {
    return absl::InvalidArgumentError(
        absl::StrCat("conv2d: bias is [", shape.bias[0], "], got ", spec.inputs[2].ToString()));
  }
  const Activation activation = spec.attributes.Get(attribute::kActivation);

  ConvolutionProblem problem{
      shape, ConvolutionCandidates(shape, spec.inputs[0].dtype, spec.inputs[1].dtype, true, allowed.winograd), {}};
  problem.attempt = [&spec, shape, has_bias, activation, parts = allowed.parts](const Candidate& candidate) {
    const DataType bias_type = has_bias ? BiasType(candidate.type, spec.inputs[2].dtype) : DataType::f32;
    return AttemptWithActivation(candidate.type, spec.outputs[0].dtype, activation, [&](const Epilogue& epilogue) {
      const auto make = [&](const ConvolutionShape& part) {
        return ForwardAttempt(spec, part, candidate, bias_type, epilogue);
      };
      const std::int64_t rows = RowsOfPart(spec, kForward, shape);
      const bool is_cut = parts && rows < shape.y[2];
      return is_cut ? InRows(spec, kForward, CutRows(shape, kForward.rows, rows), make) : make(shape);
    });
  };
  constexpr OwnLoops kLoops{.takes_narrow = &NarrowConvolution::TakesForward,
                            .make_narrow = MakeNarrowConv2d,
                            .takes_tiles = MayConvolveOnTiles,
                            .is_faster_on_tiles = AreImagesFasterOnTiles,
                            .make_on_tiles = MakeTileConv2d};
  problem.own_ways = OwnWaysOf(spec, spec.inputs[0].shape, spec.inputs[1].shape, shape, kLoops);
  return problem;
}

using Resolve = absl::StatusOr<ConvolutionProblem> (*)(const KernelSpec&, const Allowed& allowed);

template <Resolve kResolve, const BatchOperands& kBatch>
absl::StatusOr<std::unique_ptr<Kernel>> CreateConvolution(const KernelSpec& spec, const KernelOptions& options) {
  // A given choice was allowed when it was made.
  const bool allow_winograd = options.allow_winograd || !options.choice.empty();
  const absl::StatusOr<ConvolutionProblem> problem = kResolve(spec, {.winograd = allow_winograd});
  if (!problem.ok()) return problem.status();
  if (const OwnWay* way = ChosenWay(problem->own_ways, options.choice)) return way->make();
  const BatchCut cut = CutBatch(spec, kBatch, problem->shape);
  if (cut.parts == 1) {
    return KernelOf(FirstFastCandidate(spec, problem->candidates, problem->attempt, options.choice));
  }
  const auto create = [&](std::int64_t images, const std::string& choice) -> absl::StatusOr<Resolved> {
    const KernelSpec part_spec = PartOf(spec, kBatch, images);
    const absl::StatusOr<ConvolutionProblem> part = kResolve(part_spec, {allow_winograd, /*parts=*/false});
    if (!part.ok()) return part.status();
    return FirstFastCandidate(part_spec, part->candidates, part->attempt, choice);
  };
  absl::StatusOr<Resolved> part = create(cut.images, options.choice);
  if (!part.ok()) return part.status();
  std::optional<StagedOperation> last;
  if (cut.rest > 0) {
    // The shorter last part takes the implementation of the others where it can.
    absl::StatusOr<Resolved> rest = create(cut.rest, part->choice);
    if (!rest.ok()) rest = create(cut.rest, "");
    if (!rest.ok()) return rest.status();
    last = std::move(rest->attempt.operation);
  }
  part->attempt.operation = InParts(spec, kBatch, cut, part->attempt.operation, last);
  if (part->packing) part->packing = PackingOf(part->attempt, part->choice);
  return KernelOf(*std::move(part));
}

template <Resolve kResolve, const BatchOperands& kBatch>
std::vector<std::string> ConvolutionChoices(const KernelSpec& spec, const KernelOptions& options) {
  const absl::StatusOr<ConvolutionProblem> problem = kResolve(spec, {.winograd = options.allow_winograd});
  if (!problem.ok()) return {};
  const BatchCut cut = CutBatch(spec, kBatch, problem->shape);
  const KernelSpec part_spec = PartOf(spec, kBatch, cut.images);
  const absl::StatusOr<ConvolutionProblem> part = kResolve(part_spec, {options.allow_winograd, cut.parts == 1});
  std::vector<std::string> choices;
  if (part.ok()) choices = FastCandidates(part->candidates, part->attempt);
  return WithOwnWays(problem->own_ways, std::move(choices));
}

}  // namespace

void RegisterConv2d(Registry& registry) {
  registry.Add("conv2d", {CreateConvolution<ForwardProblem, kForward>, ConvolutionChoices<ForwardProblem, kForward>});
  registry.Add("conv2d_grad_input",
               {CreateConvolution<GradInputProblem, kGradInput>, ConvolutionChoices<GradInputProblem, kGradInput>});
  registry.Add("conv2d_grad_weight",
               {CreateConvolution<GradWeightProblem, kGradWeight>, ConvolutionChoices<GradWeightProblem, kGradWeight>});
}

}  // namespace mpc::cpu
