// attention and packed_attention: blocks of query rows against all keys of their head, with scores, softmax and sums in
// f32. Probabilities are rounded to the type of value before their product.
#include <type_traits>

#include "kernels/cpu/attention_rows.h"
#include "kernels/cpu/registry.h"

namespace mpc::cpu {
namespace {

/// The workspace of a task.
template <typename Number>
struct Scratch {
  Number *keys, *values, *query, *probabilities;
  float *scores, *y;
  std::int64_t floats;

  Scratch(const AttentionShape& shape, float* base) {
    constexpr std::int64_t rows = kScoreRows<Number>;
    Buffers buffers(base);
    keys = buffers.Take<Number>(shape.padded_columns() * LengthOf<Number>(shape.width));
    values = buffers.Take<Number>(shape.padded_value_width() * LengthOf<Number>(shape.columns));
    query = buffers.Take<Number>(rows * LengthOf<Number>(shape.padded_width()));
    // Numbers are rounded where they are.
    probabilities =
        buffers.Take<Number>(std::is_same_v<Number, float> ? 0 : rows * RoundedStride<Number>(shape.padded_columns()));
    scores = buffers.Take<float>(rows * StrideFor<Number>(shape.padded_columns()));
    y = buffers.Take<float>(rows * shape.padded_value_width());
    floats = buffers.floats();
  }
};

float LargestOf(const float* scores, std::int64_t count) {
  float largest = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : largest)
  for (std::int64_t s = 0; s < count; ++s) largest = scores[s] > largest ? scores[s] : largest;
  return largest;
}

/// What the logarithm of the sum of exp(scores) of each row of a block is computed from.
template <typename Number>
struct Exponentials {
  float shifts[kScoreRows<Number>], sums[kScoreRows<Number>];

  // Replaces the scores of row `row` by exp(scores) divided by their sum. A row of -inf gives zeros.
  void Normalize(std::int64_t row, float* scores, std::int64_t count) {
    const float largest = LargestOf(scores, count);
    const float shift = largest == -std::numeric_limits<float>::infinity() ? 0.0f : largest;
    const float sum = SumOfTerms<Number>(
        count, [=](std::int64_t s) { return scores[s] = ProbabilityExp<Number>(scores[s] - shift); });
    const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
#pragma omp simd
    for (std::int64_t s = 0; s < count; ++s) scores[s] *= inverse;
    shifts[row] = shift;
    sums[row] = sum;
  }

  // A row of -inf gives -inf.
  void StoreLogarithms(std::int64_t rows, float* log_sum_exp) const {
#pragma omp simd
    for (std::int64_t r = 0; r < rows; ++r) log_sum_exp[r] = shifts[r] + scalar::Log(sums[r]);
  }
};

/// Products of operands of `Number`: f32, to which others are widened, or pairs of bf16, multiplied on tiles or not.
template <typename Number>
struct Attention {
  AttentionForm form;
  AttentionShape shape;
  DType query_type, key_type, value_type, y_type;
  bool uses_y, uses_log_sum_exp;

  void operator()(const KernelOperands& operands) const {
    const Source key{key_type, operands.inputs[form.key.index]};
    const Source value{value_type, operands.inputs[form.value.index]};
    const std::int64_t blocks = shape.row_blocks<Number>();
    const std::int64_t tasks = shape.heads() * blocks, floats = Scratch<Number>(shape, nullptr).floats;
    ForEachRange(tasks, PartsOf(tasks), shape.work(), [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
      const Scratch<Number> scratch(shape, static_cast<float*>(operands.workspace) + slot * floats);
      [[maybe_unused]] const ProductScope<Number> scope;
      std::int64_t packed = -1;
      for (std::int64_t task = begin; task < end; ++task) {
        const std::int64_t head = task / blocks;
        if (head != packed) {
          PackTransposedPanels(key, form.key.rows.At(head, 0), form.key.rows.row_stride, shape.width, shape.columns,
                               scratch.keys);
          PackPanels(value, form.value.rows.At(head, 0), form.value.rows.row_stride, shape.columns, shape.value_width,
                     scratch.values);
          packed = head;
        }
        RunBlock(operands, scratch, head, task % blocks * kScoreRows<Number>);
      }
    });
  }

  void RunBlock(const KernelOperands& operands, const Scratch<Number>& scratch, std::int64_t head,
                std::int64_t first) const {
    const std::int64_t rows = std::min(kScoreRows<Number>, shape.rows - first);
    const std::int64_t columns = shape.ReadableColumns(first + rows - 1);
    const std::int64_t stride = StrideFor<Number>(shape.padded_columns());
    // ---- Scores
    const LeftMatrix<Number> query = LoadRows({query_type, operands.inputs[form.query.index]}, form.query.rows, head,
                                              first, rows, shape.width, scratch.query);
    SetProduct(query, rows, shape.width, scratch.keys, shape.width, columns, scratch.scores, stride);
    // ---- Probabilities
    const std::uint8_t* const mask = form.MaskOf(operands.inputs);
    const std::int64_t length = RoundedStride<Number>(columns), count = LoopColumns<Number>(columns);
    Exponentials<Number> exponentials;
    ForEachRow<Number>(rows, [&](std::int64_t r) {
      float* const scores = scratch.scores + r * stride;
      shape.ScaleAndMask(mask, head, first + r, count, scores);
      exponentials.Normalize(r, scores, count);
      if (uses_y) RoundRow(value_type, columns, scores, scratch.probabilities + r * length);
    });
    if (uses_log_sum_exp) {
      exponentials.StoreLogarithms(rows, static_cast<float*>(operands.outputs[1]) + head * shape.rows + first);
    }
    // ---- Product with the values
    if (!uses_y) return;
    const LeftMatrix<Number> probabilities = RoundedRows(scratch.scores, stride, scratch.probabilities, columns);
    const std::int64_t y_stride = shape.padded_value_width();
    SetProduct(probabilities, rows, columns, scratch.values, shape.columns, shape.value_width, scratch.y, y_stride);
    StoreRows<Number>(y_type, scratch.y, form.y, head, first, rows, shape.value_width, operands.outputs[0]);
  }
};

template <typename Number>
std::unique_ptr<Kernel> MakeAttention(const KernelSpec& spec, const AttentionForm& form) {
  const AttentionShape shape{form.geometry};
  const Attention<Number> run{form,
                              shape,
                              spec.inputs[form.query.index].dtype,
                              spec.inputs[form.key.index].dtype,
                              spec.inputs[form.value.index].dtype,
                              spec.outputs[0].dtype,
                              spec.uses(0),
                              spec.outputs.size() > 1 && spec.uses(1)};
  const std::int64_t slots = shape.SlotsOf(PartsOf(shape.heads() * shape.row_blocks<Number>()));
  const auto bytes = static_cast<std::size_t>(slots * Scratch<Number>(shape, nullptr).floats) * sizeof(float);
  return std::make_unique<FunctionKernel<Attention<Number>>>(run, bytes);
}

std::vector<OwnWay> WaysOf(const KernelSpec& spec) {
  const AttentionForm form = AttentionForm::Create(spec);
  const auto type = [&spec](const auto& operand) { return spec.inputs[operand.index].dtype; };
  const auto make = [&spec, form]<typename Number>() { return MakeAttention<Number>(spec, form); };
  return WaysOfAttention(form.geometry, {type(form.query), type(form.key), type(form.value)}, make);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateAttention(const KernelSpec& spec, const KernelOptions& options) {
  return MakeInWay(spec, WaysOf(spec), options.choice);
}

std::vector<std::string> AttentionChoices(const KernelSpec& spec, const KernelOptions&) {
  return WithOwnWays(WaysOf(spec));
}

}  // namespace

void RegisterAttention(Registry& registry) {
  constexpr Implementations kImplementations{CreateAttention, AttentionChoices};
  registry.Add("attention", kImplementations);
  registry.Add("packed_attention", kImplementations);
}

}  // namespace mpc::cpu
