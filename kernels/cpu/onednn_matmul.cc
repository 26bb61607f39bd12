// matmul on oneDNN. Transposed operands are the same memory with swapped strides.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/onednn_api.h"
#include "kernels/cpu/onednn_common.h"
#include "kernels/cpu/registry.h"
#include "kernels/known_attributes.h"

namespace mpc::cpu {
namespace {

using dnnl::memory;

/// y[m, n] = op(a)[m, k] op(b)[k, n] + bias[n], or + bias[m, n]. In the latter case the product is added to the bias.
struct MatmulShape {
  std::int64_t m, k, n;
  bool transpose_a, transpose_b;
  bool has_bias;  ///< [n]
  bool adds;      ///< to a bias [m, n]

  memory::desc A(memory::data_type type) const {
    return {{m, k}, type, transpose_a ? memory::dims{1, m} : memory::dims{k, 1}};
  }
  memory::desc B(memory::data_type type) const {
    return {{k, n}, type, transpose_b ? memory::dims{1, k} : memory::dims{n, 1}};
  }
  memory::desc Bias(memory::data_type type) const { return {{1, n}, type, memory::format_tag::ab}; }
  memory::desc Y(memory::data_type type) const { return {{m, n}, type, memory::format_tag::ab}; }
  std::int64_t multiply_adds() const { return m * k * n; }
};

/// Whether the operands and the result are tensors that a product can have, whatever their extents.
bool HasRanksOfProduct(const KernelSpec& spec) {
  return spec.inputs.size() >= 2 && spec.inputs.size() <= 3 && spec.outputs.size() == 1 &&
         spec.inputs[0].shape.size() == 2 && spec.inputs[1].shape.size() == 2;
}

/// Whether the extents of b, of the bias and of y are those of `shape`.
bool HasExtents(const KernelSpec& spec, const MatmulShape& shape) {
  const Shape& b = spec.inputs[1].shape;
  if (shape.m < 1 || shape.k < 1 || shape.n < 1 || b[shape.transpose_b ? 1 : 0] != shape.k) return false;
  const Shape y{shape.m, shape.n};
  if (shape.has_bias && spec.inputs[2].shape != Shape{shape.n}) return false;
  return spec.outputs[0].shape == y && (!shape.adds || spec.inputs[2].shape == y);
}

absl::StatusOr<MatmulShape> ShapeOf(const KernelSpec& spec) {
  const auto invalid = [&] {
    std::string given;
    for (const TensorSpec& input : spec.inputs) absl::StrAppend(&given, given.empty() ? "" : ", ", input.ToString());
    return absl::InvalidArgumentError(absl::StrCat(
        "matmul takes a [M, K], b [K, N] and an optional bias [N] or [M, N] to y [M, N], every extent at least 1; got ",
        given, " to ", spec.outputs.empty() ? "nothing" : spec.outputs[0].ToString()));
  };
  if (!HasRanksOfProduct(spec)) return invalid();
  const Shape& a = spec.inputs[0].shape;
  MatmulShape shape;
  shape.transpose_a = spec.attributes.GetBool("transpose_a");
  shape.transpose_b = spec.attributes.GetBool("transpose_b");
  shape.adds = spec.inputs.size() == 3 && spec.inputs[2].shape.size() == 2;
  shape.has_bias = spec.inputs.size() == 3 && !shape.adds;
  shape.m = a[shape.transpose_a ? 1 : 0];
  shape.k = a[shape.transpose_a ? 0 : 1];
  shape.n = spec.inputs[1].shape[shape.transpose_b ? 0 : 1];
  if (!HasExtents(spec, shape)) return invalid();
  return shape;
}

/// A product of fewer multiply-adds is computed on one thread. It takes 40 us, and starting other threads may take as
/// long.
constexpr std::int64_t kSerialProduct = std::int64_t{1} << 21;
/// A product of up to so many multiply-adds is computed in parts on threads of our loops, which start faster than the
/// library's.
constexpr std::int64_t kSmallProduct = std::int64_t{1} << 24;
/// The fewest rows of a part, since each part packs b again.
constexpr std::int64_t kPartRows = 64;
constexpr std::int64_t kMaxParts = 4;

/// The rows of each part of a product. 0 leaves the product to the library's threads. The rows follow from the shape
/// and types alone, so that results do not depend on threads. Only whole rows of a and y lie as oneDNN's fast products
/// take them, and b must not be converted by each part.
std::int64_t RowsOfParts(const KernelSpec& spec, const MatmulShape& shape, memory::data_type type) {
  if (shape.multiply_adds() < kSerialProduct) return shape.m;
  const auto is_taken = [type](const TensorSpec& tensor) { return tensor.dtype == StorageOf(type); };
  const bool is_plain = !shape.transpose_a && !shape.adds && is_taken(spec.outputs[0]) &&
                        std::all_of(spec.inputs.begin(), spec.inputs.end(), is_taken);
  const std::int64_t parts = std::min(kMaxParts, shape.m / kPartRows);
  if (!is_plain || parts < 2 || shape.multiply_adds() > kSmallProduct) return 0;
  return (shape.m + parts - 1) / parts;
}

constexpr char kPlain[] = "plain";
constexpr char kTransposed[] = "transposed";

/// Computes y^T = b^T a^T, and transposes it afterwards. This is for an a^T that is stored by rows, such as in the
/// gradient of a large vocabulary's weight. Rows of a would be gathered from all of memory.
Attempt TransposedAttempt(const KernelSpec& spec, const MatmulShape& shape, memory::data_type type,
                          const Epilogue& epilogue) {
  const auto flip = [](const memory::desc& matrix) { return matrix.permute_axes({1, 0}); };
  const memory::desc b = flip(shape.B(type));
  const memory::desc a = flip(shape.A(type));
  const memory::desc y({shape.n, shape.m}, epilogue.result, memory::format_tag::ab);
  dnnl::primitive_attr attributes = StrictAttributes();
  attributes.set_post_ops(epilogue.in_primitive);
  Attempt attempt = AttemptOf<dnnl::matmul>(Describe<dnnl::matmul>(OnednnEngine(), attributes, b, a, y));
  attempt.staged.inputs = {{DNNL_ARG_WEIGHTS, spec.inputs[0].dtype, a, a}, {DNNL_ARG_SRC, spec.inputs[1].dtype, b, b}};
  attempt.staged.output = {DNNL_ARG_DST, spec.outputs[0].dtype, flip(shape.Y(epilogue.result)), y};
  attempt.staged.activation = epilogue.behind;
  return attempt;
}

/// The product, or a part of it, as one primitive.
Attempt WholeAttempt(const KernelSpec& spec, const MatmulShape& shape, const Candidate& candidate,
                     const Epilogue& epilogue) {
  const memory::data_type bias_type =
      shape.has_bias ? BiasType(candidate.type, spec.inputs[2].dtype) : memory::data_type::f32;
  const auto layout = [&](const memory::desc& stored) {
    return candidate.layout == memory::format_tag::any
               ? memory::desc(ExtentsOf(stored), DataTypeOf(stored), memory::format_tag::any)
               : stored;
  };
  const memory::desc a = layout(shape.A(candidate.type));
  const memory::desc b = layout(shape.B(candidate.type));
  const memory::desc y = shape.adds ? shape.Y(epilogue.result) : layout(shape.Y(epilogue.result));
  dnnl::post_ops sum;
  sum.append_sum(1.0f);
  dnnl::primitive_attr attributes = StrictAttributes();
  attributes.set_post_ops(shape.adds ? sum : epilogue.in_primitive);
  const auto description = shape.has_bias
                               ? Describe<dnnl::matmul>(OnednnEngine(), attributes, a, b, shape.Bias(bias_type), y)
                               : Describe<dnnl::matmul>(OnednnEngine(), attributes, a, b, y);
  Attempt attempt = AttemptOf<dnnl::matmul>(description);
  attempt.staged.adds_to_input = shape.adds;
  if (shape.adds) attempt.staged.added = spec.inputs[2].dtype;
  attempt.staged.inputs = {
      {DNNL_ARG_SRC, spec.inputs[0].dtype, shape.A(candidate.type), description.src_desc()},
      {DNNL_ARG_WEIGHTS, spec.inputs[1].dtype, shape.B(candidate.type), description.weights_desc(), true}};
  if (shape.has_bias) {
    attempt.staged.inputs.push_back(
        {DNNL_ARG_BIAS, spec.inputs[2].dtype, shape.Bias(bias_type), description.bias_desc()});
  }
  attempt.staged.output = {DNNL_ARG_DST, spec.outputs[0].dtype, shape.Y(epilogue.result), description.dst_desc()};
  attempt.staged.activation = epilogue.behind;
  return attempt;
}

/// The product in parts of `rows` rows, each a primitive for one thread.
Attempt PartsAttempt(const KernelSpec& spec, const MatmulShape& shape, const Candidate& candidate,
                     const Epilogue& epilogue, std::int64_t rows) {
  const SerialLibrary serial;
  Attempt attempt;
  for (std::int64_t row = 0; row < shape.m; row += rows) {
    MatmulShape part = shape;
    part.m = std::min(rows, shape.m - row);
    Attempt whole = WholeAttempt(spec, part, candidate, epilogue);
    if (attempt.implementation != whole.implementation) absl::StrAppend(&attempt.implementation, whole.implementation);
    const auto offset_in = [row](const TensorSpec& tensor, std::int64_t values) {
      return static_cast<std::size_t>(row * values) * ElementSize(tensor.dtype);
    };
    std::vector<std::size_t> offsets(spec.inputs.size());
    offsets[0] = offset_in(spec.inputs[0], shape.k);
    attempt.parts.push_back({std::move(whole.staged), std::move(offsets), offset_in(spec.outputs[0], shape.n)});
  }
  return attempt;
}

/// A product, resolved. `attempt` refers to the spec that it was resolved from.
struct Problem {
  std::vector<Candidate> candidates;
  MakeAttempt attempt;
};

absl::StatusOr<Problem> ProblemOf(const KernelSpec& spec) {
  absl::StatusOr<MatmulShape> resolved = ShapeOf(spec);
  if (!resolved.ok()) return resolved.status();
  const Activation activation = spec.attributes.Get(attribute::kActivation);

  // `ab` takes the operands as they lie. `any` lets oneDNN choose: it packs b into the workspace. The packed b is as
  // large as b, and is worth it for long sums alone.
  Problem problem;
  for (memory::data_type type : OperandTypes({spec.inputs[0].dtype, spec.inputs[1].dtype})) {
    problem.candidates.push_back({type, memory::format_tag::ab, kPlain});
    problem.candidates.push_back({type, memory::format_tag::any, "blocked"});
    if (resolved->transpose_a && !resolved->has_bias && !resolved->adds) {
      problem.candidates.push_back({type, memory::format_tag::ab, kTransposed});
    }
  }
  problem.attempt = [&spec, shape = *resolved, activation](const Candidate& candidate) {
    const std::int64_t rows = candidate.way == kPlain ? RowsOfParts(spec, shape, candidate.type) : 0;
    const auto make = [&](const Epilogue& epilogue) {
      if (rows > 0) return PartsAttempt(spec, shape, candidate, epilogue, rows);
      if (candidate.way == kTransposed) return TransposedAttempt(spec, shape, candidate.type, epilogue);
      return WholeAttempt(spec, shape, candidate, epilogue);
    };
    // A sum is kept in f32: rounded once, whatever the type of what it is added to.
    if (shape.adds) return make({{}, memory::data_type::f32, activation});
    return AttemptWithActivation(candidate.type, spec.outputs[0].dtype, activation, make);
  };
  return problem;
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateMatmul(const KernelSpec& spec, const KernelOptions& options) {
  const absl::StatusOr<Problem> problem = ProblemOf(spec);
  if (!problem.ok()) return problem.status();
  return FirstFastCandidate(spec, problem->candidates, problem->attempt, options.choice);
}

std::vector<std::string> MatmulChoices(const KernelSpec& spec, const KernelOptions&) {
  const absl::StatusOr<Problem> problem = ProblemOf(spec);
  return problem.ok() ? FastCandidates(problem->candidates, problem->attempt) : std::vector<std::string>();
}

}  // namespace

void RegisterMatmul(Registry& registry) { registry.Add("matmul", {CreateMatmul, MatmulChoices}, {{0, 2}}); }

}  // namespace mpc::cpu
