// matmul on oneDNN. Transposed operands are the same memory with swapped strides.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/cpu/matmul_shape.h"
#include "kernels/cpu/onednn_api.h"
#include "kernels/cpu/onednn_common.h"
#include "kernels/cpu/own_way.h"
#include "kernels/cpu/panel_matmul.h"
#include "kernels/cpu/product_parts.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/row_products.h"
#include "kernels/cpu/tiles.h"
#include "kernels/known_attributes.h"

namespace mpc::cpu {
namespace {

using dnnl::memory;

/// A part of the product's rows, columns and terms. Layouts are those that it has within the whole operands.
class PartLayouts {
 public:
  PartLayouts(const MatmulShape& shape, std::int64_t rows, std::int64_t columns, std::int64_t terms)
      : shape_(shape), m_(rows), k_(terms), n_(columns) {}

  memory::desc A(memory::data_type type) const {
    return {{m_, k_}, type, shape_.transpose_a ? memory::dims{1, shape_.m} : memory::dims{shape_.k, 1}};
  }
  memory::desc B(memory::data_type type) const {
    return {{k_, n_}, type, shape_.transpose_b ? memory::dims{1, shape_.k} : memory::dims{shape_.n, 1}};
  }
  memory::desc Bias(memory::data_type type) const { return {{1, n_}, type, memory::format_tag::ab}; }
  memory::desc Y(memory::data_type type) const { return {{m_, n_}, type, memory::dims{shape_.n, 1}}; }

  /// For parts of one product.
  bool operator==(const PartLayouts& other) const { return m_ == other.m_ && k_ == other.k_ && n_ == other.n_; }

 private:
  MatmulShape shape_;
  std::int64_t m_, k_, n_;
};

constexpr char kPlain[] = "plain";
constexpr char kTransposed[] = "transposed";

/// Computes y^T = b^T a^T, and transposes it afterwards. This is for an a^T that is stored by rows, such as in the
/// gradient of a large vocabulary's weight. Rows of a would be gathered from all of memory.
Attempt TransposedAttempt(const PartLayouts& layouts, memory::data_type type, const Epilogue& epilogue) {
  const auto flip = [](const memory::desc& matrix) { return matrix.permute_axes({1, 0}); };
  const memory::desc b = flip(layouts.B(type)), a = flip(layouts.A(type)), stored = flip(layouts.Y(epilogue.result));
  const memory::desc y(ExtentsOf(stored), epilogue.result, memory::format_tag::ab);
  dnnl::primitive_attr attributes = StrictAttributes();
  attributes.set_post_ops(epilogue.in_primitive);
  Attempt attempt = AttemptOf<dnnl::matmul>(Describe<dnnl::matmul>(OnednnEngine(), attributes, b, a, y));
  const DType storage = StorageOf(type);
  attempt.staged().inputs = {{DNNL_ARG_WEIGHTS, storage, a, a}, {DNNL_ARG_SRC, storage, b, b}};
  attempt.staged().output = {DNNL_ARG_DST, StorageOf(epilogue.result), stored, y};
  return attempt;
}

/// A part of the product as a primitive.
Attempt PlainAttempt(const MatmulShape& shape, const PartLayouts& layouts, const Candidate& candidate,
                     memory::data_type bias_type, const Epilogue& epilogue) {
  const auto layout = [&](const memory::desc& stored) {
    return candidate.layout == memory::format_tag::any
               ? memory::desc(ExtentsOf(stored), DataTypeOf(stored), memory::format_tag::any)
               : stored;
  };
  const memory::desc a = layout(layouts.A(candidate.type));
  const memory::desc b = layout(layouts.B(candidate.type));
  const memory::desc y = shape.adds ? layouts.Y(epilogue.result) : layout(layouts.Y(epilogue.result));
  dnnl::post_ops sum;
  sum.append_sum(1.0f);
  dnnl::primitive_attr attributes = StrictAttributes();
  attributes.set_post_ops(shape.adds ? sum : epilogue.in_primitive);
  const auto description = shape.has_bias
                               ? Describe<dnnl::matmul>(OnednnEngine(), attributes, a, b, layouts.Bias(bias_type), y)
                               : Describe<dnnl::matmul>(OnednnEngine(), attributes, a, b, y);
  Attempt attempt = AttemptOf<dnnl::matmul>(description);
  const DType storage = StorageOf(candidate.type);
  attempt.staged().inputs = {{DNNL_ARG_SRC, storage, layouts.A(candidate.type), description.src_desc()},
                             {DNNL_ARG_WEIGHTS, storage, layouts.B(candidate.type), description.weights_desc(), true}};
  if (shape.has_bias) {
    attempt.staged().inputs.push_back(
        {DNNL_ARG_BIAS, StorageOf(bias_type), layouts.Bias(bias_type), description.bias_desc()});
  }
  attempt.staged().output = {DNNL_ARG_DST, StorageOf(epilogue.result), layouts.Y(epilogue.result),
                             description.dst_desc()};
  return attempt;
}

/// A product in parts, for one candidate and epilogue.
class MatmulParts {
 public:
  MatmulParts(const KernelSpec& spec, const MatmulShape& shape, const Candidate& candidate, Epilogue epilogue)
      : spec_(spec), shape_(shape), candidate_(candidate), epilogue_(std::move(epilogue)) {
    if (shape.has_bias) bias_type_ = BiasType(candidate.type, spec.inputs[2].dtype);
    const bool is_packed = candidate.layout == memory::format_tag::any;
    const bool is_sum =
        !shape.has_bias && !shape.adds && epilogue_.behind == Activation::kNone && epilogue_.in_primitive.len() == 0;
    // The library keeps the sums of bf16 products in f32, for every part that runs, where operands are cut.
    const std::int64_t results = std::int64_t{1} << (candidate.type == memory::data_type::f32 ? 20 : 18);
    part_ = CutProduct({shape.m, shape.k, shape.n}, {!is_packed, is_sum && !is_packed, results});
    if (part_.terms < shape.k) epilogue_.result = memory::data_type::f32;
    const DType computed = StorageOf(epilogue_.result), storage = spec.outputs[0].dtype;
    const bool is_finished_apart = computed != storage || epilogue_.behind != Activation::kNone;
    if (shape.adds || part_.terms < shape.k || (part_.columns < shape.n && is_finished_apart)) {
      whole_ = {shape.m * shape.n, computed, storage, epilogue_.behind, PartsOf(shape.k, part_.terms)};
    }
  }

  Attempt Make() const {
    Attempt attempt;
    std::vector<PartLayouts> primitives;
    for (std::int64_t term = 0; term < shape_.k; term += part_.terms) {
      for (std::int64_t row = 0; row < shape_.m; row += part_.rows) {
        for (std::int64_t column = 0; column < shape_.n; column += part_.columns) {
          const PartLayouts layouts(shape_, std::min(part_.rows, shape_.m - row),
                                    std::min(part_.columns, shape_.n - column), std::min(part_.terms, shape_.k - term));
          const auto known = std::find(primitives.begin(), primitives.end(), layouts);
          const auto primitive = static_cast<std::size_t>(known - primitives.begin());
          if (known == primitives.end()) AddPrimitive(layouts, primitives, attempt);
          attempt.operation.parts.push_back({primitive, Offsets(row, column, term), OutputOffset(row, column)});
        }
      }
    }
    attempt.operation.whole = whole_;
    if (shape_.adds) attempt.operation.addend = spec_.inputs[2].dtype;
    Prepare(attempt.operation);
    return attempt;
  }

 private:
  void AddPrimitive(const PartLayouts& layouts, std::vector<PartLayouts>& primitives, Attempt& attempt) const {
    Attempt part = candidate_.way == kTransposed ? TransposedAttempt(layouts, candidate_.type, epilogue_)
                                                 : PlainAttempt(shape_, layouts, candidate_, bias_type_, epilogue_);
    StagedPrimitive& staged = part.staged();
    if (!whole_) {
      staged.output.storage = spec_.outputs[0].dtype;
      staged.activation = epilogue_.behind;
    }
    attempt.Add(std::move(part));
    primitives.push_back(layouts);
  }

  std::vector<std::size_t> Offsets(std::int64_t row, std::int64_t column, std::int64_t term) const {
    const auto bytes = [](std::int64_t elements, memory::data_type type) {
      return static_cast<std::size_t>(elements) * ElementSize(StorageOf(type));
    };
    return {bytes(shape_.transpose_a ? term * shape_.m + row : row * shape_.k + term, candidate_.type),
            bytes(shape_.transpose_b ? column * shape_.k + term : term * shape_.n + column, candidate_.type),
            bytes(column, bias_type_)};
  }
  std::size_t OutputOffset(std::int64_t row, std::int64_t column) const {
    const DType stored = whole_ ? whole_->computed : spec_.outputs[0].dtype;
    return static_cast<std::size_t>(row * shape_.n + column) * ElementSize(stored);
  }

  /// Operands of another type are converted once for all parts, and b is packed once where all want it alike.
  void Prepare(StagedOperation& operation) const {
    const PartLayouts all(shape_, shape_.m, shape_.n, shape_.k);
    const memory::desc stored[] = {all.A(candidate_.type), all.B(candidate_.type), all.Bias(bias_type_)};
    operation.prepared.resize(operation.primitives.front().inputs.size());
    for (std::size_t i = 0; i < operation.prepared.size(); ++i) {
      const Port& first = operation.primitives.front().inputs[i];
      const bool is_packed = first.is_weight && first.stored != first.wanted;
      const bool agree =
          std::all_of(operation.primitives.begin(), operation.primitives.end(),
                      [&](const StagedPrimitive& other) { return other.inputs[i].wanted == first.wanted; });
      const bool packs_once = is_packed && agree;
      if (spec_.inputs[i].dtype == first.storage && !packs_once) continue;
      const memory::desc wanted = packs_once ? first.wanted : stored[i];
      operation.prepared[i] = {first.argument, spec_.inputs[i].dtype, stored[i], wanted, first.is_weight};
      if (!packs_once) continue;
      for (StagedPrimitive& primitive : operation.primitives) primitive.inputs[i].stored = wanted;
    }
  }

  const KernelSpec& spec_;
  const MatmulShape& shape_;
  const Candidate& candidate_;
  Epilogue epilogue_;
  ProductPart part_{};
  memory::data_type bias_type_ = memory::data_type::f32;
  std::optional<WholeResult> whole_;
};

/// A product, resolved. `attempt` refers to the spec that it was resolved from.
struct Problem {
  std::vector<Candidate> candidates;
  MakeAttempt attempt;
};

absl::StatusOr<Problem> ProblemOf(const KernelSpec& spec) {
  absl::StatusOr<MatmulShape> resolved = MatmulShape::Create(spec);
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
    const auto make = [&](const Epilogue& epilogue) { return MatmulParts(spec, shape, candidate, epilogue).Make(); };
    // A sum is kept in f32: rounded once, whatever the type of what it is added to.
    if (shape.adds) return make({{}, memory::data_type::f32, activation});
    return AttemptWithActivation(candidate.type, spec.outputs[0].dtype, activation, make);
  };
  return problem;
}

std::vector<OwnWay> OwnWays(const KernelSpec& spec) {
  std::vector<OwnWay> ways;
  const absl::StatusOr<MatmulShape> shape = MatmulShape::Create(spec);
  if (!shape.ok()) return ways;
  if (MayMultiplyOnTiles(spec)) {
    ways.push_back({kOnTiles, IsFasterOnTiles(*shape), [&spec] { return MakeTileMatmul(spec); }});
  }
  if (MayMultiplyInPanels(spec)) {
    ways.push_back({kInPanels, IsFasterInPanels(*shape), [&spec] { return MakePanelMatmul(spec); }});
  }
  return ways;
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateMatmul(const KernelSpec& spec, const KernelOptions& options) {
  const std::vector<OwnWay> ways = OwnWays(spec);
  if (const OwnWay* way = ChosenWay(ways, options.choice)) return way->make();
  const absl::StatusOr<Problem> problem = ProblemOf(spec);
  if (!problem.ok()) return problem.status();
  return KernelOf(FirstFastCandidate(spec, problem->candidates, problem->attempt, options.choice));
}

std::vector<std::string> MatmulChoices(const KernelSpec& spec, const KernelOptions&) {
  const absl::StatusOr<Problem> problem = ProblemOf(spec);
  if (!problem.ok()) return {};
  return WithOwnWays(OwnWays(spec), FastCandidates(problem->candidates, problem->attempt));
}

}  // namespace

void RegisterMatmul(Registry& registry) { registry.Add("matmul", {CreateMatmul, MatmulChoices}, {{0, 2}}); }

}  // namespace mpc::cpu
