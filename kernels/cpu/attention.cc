// attention and packed_attention: blocks of query rows against all keys of their head, with scores, softmax and sums in
// f32. Probabilities are rounded to the type of value before their product.
#include "kernels/cpu/attention_rows.h"
#include "kernels/cpu/registry.h"

namespace mpc::cpu {
namespace {

/// The workspace of a task.
struct Scratch {
  float *keys, *values, *query, *scores, *y;

  static std::size_t Floats(const AttentionShape& shape) {
    const std::int64_t rows = AttentionShape::kRows;
    return static_cast<std::size_t>(
        shape.padded_columns() * shape.width + shape.padded_value_width() * shape.columns +
        rows * (PaddedToPanel(shape.width) + shape.padded_columns() + shape.padded_value_width()));
  }
  Scratch(const AttentionShape& shape, float* base) {
    const std::int64_t rows = AttentionShape::kRows;
    keys = base;
    values = keys + shape.padded_columns() * shape.width;
    query = values + shape.padded_value_width() * shape.columns;
    scores = query + rows * PaddedToPanel(shape.width);
    y = scores + rows * shape.padded_columns();
  }
};

float LargestOf(const float* scores, std::int64_t count) {
  float largest = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : largest)
  for (std::int64_t s = 0; s < count; ++s) largest = scores[s] > largest ? scores[s] : largest;
  return largest;
}

// Replaces scores by exp(scores) divided by their sum. Returns the logarithm of the sum. A row of -inf gives zeros and
// -inf.
float Normalize(float* scores, std::int64_t count) {
  const float largest = LargestOf(scores, count);
  const float shift = largest == -std::numeric_limits<float>::infinity() ? 0.0f : largest;
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t s = 0; s < count; ++s) {
    scores[s] = scalar::Exp(scores[s] - shift);
    sum += scores[s];
  }
  const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
#pragma omp simd
  for (std::int64_t s = 0; s < count; ++s) scores[s] *= inverse;
  return shift + scalar::Log(sum);
}

struct Attention {
  AttentionForm form;
  AttentionShape shape;
  DType query_type, key_type, value_type, y_type;
  bool uses_y, uses_log_sum_exp;

  void operator()(const KernelOperands& operands) const {
    const Source key{key_type, operands.inputs[form.key.index]};
    const Source value{value_type, operands.inputs[form.value.index]};
    const std::int64_t blocks = shape.row_blocks();
    const std::int64_t tasks = shape.heads() * blocks;
    ForEachPart(tasks, PartsOf(tasks), shape.work(), [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
      const Scratch scratch(
          shape, static_cast<float*>(operands.workspace) + part * static_cast<std::int64_t>(Scratch::Floats(shape)));
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
        RunBlock(operands, scratch, head, task % blocks * AttentionShape::kRows);
      }
    });
  }

  void RunBlock(const KernelOperands& operands, const Scratch& scratch, std::int64_t head, std::int64_t first) const {
    const std::int64_t rows = std::min(AttentionShape::kRows, shape.rows - first);
    const std::int64_t columns = shape.ReadableColumns(first + rows - 1);
    const std::int64_t stride = shape.padded_columns();
    const std::int64_t row_base = head * shape.rows + first;
    // ---- Scores
    const LoadedRows query = LoadRows({query_type, operands.inputs[form.query.index]}, form.query.rows, head, first,
                                      rows, shape.width, scratch.query);
    std::fill_n(scratch.scores, rows * stride, 0.0f);
    AddProduct({query.data, query.stride, 1}, rows, shape.width, scratch.keys, shape.width, columns, scratch.scores,
               stride);
    // ---- Probabilities
    const std::uint8_t* const mask = form.MaskOf(operands.inputs);
    for (std::int64_t r = 0; r < rows; ++r) {
      float* const scores = scratch.scores + r * stride;
      shape.ScaleAndMask(mask, head, first + r, columns, scores);
      const float log_sum_exp = Normalize(scores, columns);
      if (uses_log_sum_exp) static_cast<float*>(operands.outputs[1])[row_base + r] = log_sum_exp;
      RoundThrough(value_type, scores, columns);
    }
    // ---- Product with the values
    if (!uses_y) return;
    const std::int64_t y_stride = shape.padded_value_width();
    std::fill_n(scratch.y, rows * y_stride, 0.0f);
    AddProduct({scratch.scores, stride, 1}, rows, columns, scratch.values, shape.columns, shape.value_width, scratch.y,
               y_stride);
    StoreRows(y_type, scratch.y, form.y, head, first, rows, shape.value_width, operands.outputs[0]);
  }
};

absl::StatusOr<std::unique_ptr<Kernel>> CreateAttention(const KernelSpec& spec) {
  const AttentionForm form = AttentionForm::Create(spec);
  const AttentionShape shape{form.geometry};
  const Attention run{form,
                      shape,
                      spec.inputs[form.query.index].dtype,
                      spec.inputs[form.key.index].dtype,
                      spec.inputs[form.value.index].dtype,
                      spec.outputs[0].dtype,
                      spec.uses(0),
                      spec.outputs.size() > 1 && spec.uses(1)};
  const std::int64_t parts = PartsOf(shape.heads() * shape.row_blocks());
  return MakeKernel(run, static_cast<std::size_t>(parts) * Scratch::Floats(shape) * sizeof(float));
}

}  // namespace

void RegisterAttention(Registry& registry) {
  registry.Add("attention", CreateAttention);
  registry.Add("packed_attention", CreateAttention);
}

}  // namespace mpc::cpu
