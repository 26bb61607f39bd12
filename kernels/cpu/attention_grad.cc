// attention_grad and packed_attention_grad: a task is a head. Blocks of query rows compute their probabilities again.
// They add to the gradients of key and value, which stay in f32 in the workspace until the head is done.
#include <type_traits>

#include "kernels/cpu/attention_rows.h"
#include "kernels/cpu/registry.h"

namespace mpc::cpu {
namespace {

/// The workspace of a task. Panels are right operands: keys by column and by row, values by column, and the block's
/// rows of query and dy. Left operands are query and dy, which may need a copy, and pairs of p and ds. `transposed` is
/// that of p, and then that of ds.
template <typename Number>
struct Scratch {
  Number *keys_by_column, *keys_by_row, *values_by_column;
  Number *query, *query_panels, *dy, *dy_panels, *p_pairs, *ds_pairs, *transposed;
  float *p, *ds, *dquery, *dkey, *dvalue;
  std::int64_t floats;

  Scratch(const AttentionShape& shape, float* base) {
    constexpr std::int64_t kRows = kScoreRows<Number>;
    const std::int64_t width = shape.padded_width();
    const std::int64_t value_width = shape.padded_value_width();
    const std::int64_t columns = shape.padded_columns();
    // Numbers are rounded where they are, and read in either direction.
    const std::int64_t pairs = std::is_same_v<Number, float> ? 0 : kRows * LengthOf<Number>(columns);
    // The transpose of pairs has as many rows as there are columns.
    const std::int64_t key_rows = std::is_same_v<Number, TilePair> ? PaddedToTile(shape.columns) : shape.columns;
    Buffers buffers(base);
    keys_by_column = buffers.Take<Number>(columns * LengthOf<Number>(shape.width));
    keys_by_row = buffers.Take<Number>(width * LengthOf<Number>(shape.columns));
    values_by_column = buffers.Take<Number>(columns * LengthOf<Number>(shape.value_width));
    query = buffers.Take<Number>(kRows * LengthOf<Number>(width));
    query_panels = buffers.Take<Number>(LengthOf<Number>(kRows) * width);
    dy = buffers.Take<Number>(kRows * LengthOf<Number>(value_width));
    dy_panels = buffers.Take<Number>(LengthOf<Number>(kRows) * value_width);
    p_pairs = buffers.Take<Number>(pairs);
    ds_pairs = buffers.Take<Number>(pairs);
    transposed = buffers.Take<Number>(std::is_same_v<Number, TilePair> ? key_rows * kTilePairs : pairs);
    p = buffers.Take<float>(kRows * columns);
    ds = buffers.Take<float>(kRows * columns);
    dquery = buffers.Take<float>(kRows * width);
    dkey = buffers.Take<float>(key_rows * width);
    dvalue = buffers.Take<float>(key_rows * value_width);
    floats = buffers.floats();
  }
};

/// Products of operands of `Number`: f32, to which others are widened, or pairs of bf16, multiplied on tiles or not.
template <typename Number>
struct AttentionGrad {
  AttentionForm form;
  AttentionShape shape;
  DType dy_type, query_type, key_type, value_type;
  std::array<DType, 3> result_types;
  std::array<bool, 3> used;

  void operator()(const KernelOperands& operands) const {
    const Source key{key_type, operands.inputs[form.key.index]};
    const Source value{value_type, operands.inputs[form.value.index]};
    const HeadRows& keys = form.key.rows;
    const HeadRows& values = form.value.rows;
    const std::int64_t floats = Scratch<Number>(shape, nullptr).floats;
    const std::int64_t parts = std::min(shape.heads(), AttentionShape::kParts);
    ForEachPart(shape.heads(), parts, shape.work() * 3, [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
      const Scratch<Number> scratch(shape, static_cast<float*>(operands.workspace) + part * floats);
      [[maybe_unused]] const ProductScope<Number> scope;
      for (std::int64_t head = begin; head < end; ++head) {
        PackTransposedPanels(key, keys.At(head, 0), keys.row_stride, shape.width, shape.columns,
                             scratch.keys_by_column);
        PackPanels(key, keys.At(head, 0), keys.row_stride, shape.columns, shape.width, scratch.keys_by_row);
        PackTransposedPanels(value, values.At(head, 0), values.row_stride, shape.value_width, shape.columns,
                             scratch.values_by_column);
        std::fill_n(scratch.dkey, shape.columns * shape.padded_width(), 0.0f);
        std::fill_n(scratch.dvalue, shape.columns * shape.padded_value_width(), 0.0f);
        for (std::int64_t first = 0; first < shape.rows; first += kScoreRows<Number>) {
          RunBlock(operands, scratch, head, first);
        }
        if (used[1]) {
          StoreRows(result_types[1], scratch.dkey, form.dkey.rows, head, 0, shape.columns, shape.width,
                    operands.outputs[form.dkey.index]);
        }
        if (used[2]) {
          StoreRows(result_types[2], scratch.dvalue, form.dvalue.rows, head, 0, shape.columns, shape.value_width,
                    operands.outputs[form.dvalue.index]);
        }
      }
    });
  }

  // p = exp(scores - log_sum_exp), ds = scale * p * (dp - delta).
  void DifferentiateRow(float log_sum_exp, std::int64_t columns, float* p, float* ds) const {
    if (log_sum_exp == -std::numeric_limits<float>::infinity()) {
      std::fill_n(p, columns, 0.0f);
      std::fill_n(ds, columns, 0.0f);
      return;
    }
    float delta = 0;
#pragma omp simd reduction(+ : delta)
    for (std::int64_t s = 0; s < columns; ++s) {
      p[s] = scalar::Exp(p[s] - log_sum_exp);
      delta += ds[s] * p[s];
    }
    const float scale = shape.scale;
#pragma omp simd
    for (std::int64_t s = 0; s < columns; ++s) ds[s] = scale * p[s] * (ds[s] - delta);
  }

  void RunBlock(const KernelOperands& operands, const Scratch<Number>& scratch, std::int64_t head,
                std::int64_t first) const {
    const std::int64_t rows = std::min(kScoreRows<Number>, shape.rows - first);
    const std::int64_t columns = shape.ReadableColumns(first + rows - 1);
    const std::int64_t stride = shape.padded_columns();
    const std::int64_t row_base = head * shape.rows + first;
    // ---- Scores, and cotangents of the probabilities
    const LeftMatrix<Number> dy =
        LoadRows({dy_type, operands.inputs[form.dy]}, form.y, head, first, rows, shape.value_width, scratch.dy);
    const LeftMatrix<Number> query = LoadRows({query_type, operands.inputs[form.query.index]}, form.query.rows, head,
                                              first, rows, shape.width, scratch.query);
    std::fill_n(scratch.p, rows * stride, 0.0f);
    std::fill_n(scratch.ds, rows * stride, 0.0f);
    AddProduct(query, rows, shape.width, scratch.keys_by_column, shape.width, columns, scratch.p, stride);
    AddProduct(dy, rows, shape.value_width, scratch.values_by_column, shape.value_width, columns, scratch.ds, stride);
    // ---- Probabilities, and cotangents of the scores
    const std::uint8_t* const mask = form.MaskOf(operands.inputs);
    const auto* log_sum_exp = static_cast<const float*>(operands.inputs[form.log_sum_exp]);
    for (std::int64_t r = 0; r < rows; ++r) {
      float* const p = scratch.p + r * stride;
      shape.ScaleAndMask(mask, head, first + r, columns, p);
      DifferentiateRow(log_sum_exp[row_base + r], columns, p, scratch.ds + r * stride);
    }
    // Each is rounded to the type that its products read.
    const LeftMatrix<Number> p = RoundRows(value_type, rows, columns, scratch.p, stride, scratch.p_pairs);
    const LeftMatrix<Number> ds = RoundRows(query_type, rows, columns, scratch.ds, stride, scratch.ds_pairs);
    // ---- Share of dvalue
    if (used[2]) {
      PackRows(dy, rows, shape.value_width, scratch.dy_panels);
      AddProduct(Transpose(p, rows, columns, scratch.transposed), columns, rows, scratch.dy_panels, rows,
                 shape.value_width, scratch.dvalue, shape.padded_value_width());
    }
    // ---- Share of dkey
    if (used[1]) {
      PackRows(query, rows, shape.width, scratch.query_panels);
      AddProduct(Transpose(ds, rows, columns, scratch.transposed), columns, rows, scratch.query_panels, rows,
                 shape.width, scratch.dkey, shape.padded_width());
    }
    // ---- Rows of dquery
    if (used[0]) {
      std::fill_n(scratch.dquery, rows * shape.padded_width(), 0.0f);
      AddProduct(ds, rows, columns, scratch.keys_by_row, shape.columns, shape.width, scratch.dquery,
                 shape.padded_width());
      StoreRows(result_types[0], scratch.dquery, form.dquery.rows, head, first, rows, shape.width,
                operands.outputs[form.dquery.index]);
    }
  }
};

template <typename Number>
std::unique_ptr<Kernel> MakeAttentionGrad(const KernelSpec& spec, const AttentionForm& form) {
  const AttentionShape shape{form.geometry};
  const std::size_t results[] = {form.dquery.index, form.dkey.index, form.dvalue.index};
  AttentionGrad<Number> run{form,
                            shape,
                            spec.inputs[form.dy].dtype,
                            spec.inputs[form.query.index].dtype,
                            spec.inputs[form.key.index].dtype,
                            spec.inputs[form.value.index].dtype,
                            {},
                            {}};
  for (std::size_t i = 0; i < 3; ++i) {
    run.result_types[i] = spec.outputs[results[i]].dtype;
    run.used[i] = spec.uses(results[i]);
  }
  const std::int64_t parts = std::min(shape.heads(), AttentionShape::kParts);
  const auto bytes = static_cast<std::size_t>(parts * Scratch<Number>(shape, nullptr).floats) * sizeof(float);
  return std::make_unique<FunctionKernel<AttentionGrad<Number>>>(run, bytes);
}

std::vector<std::string> WaysOf(const KernelSpec& spec, const AttentionForm& form) {
  const auto type = [&spec](const auto& operand) { return spec.inputs[operand.index].dtype; };
  return WaysOfAttention(form.geometry,
                         {spec.inputs[form.dy].dtype, type(form.query), type(form.key), type(form.value)});
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateAttentionGrad(const KernelSpec& spec, const KernelOptions& options) {
  const AttentionForm form = AttentionForm::Create(spec);
  const auto make = [&]<typename Number>() { return MakeAttentionGrad<Number>(spec, form); };
  return MakeInWay(spec, WaysOf(spec, form), options.choice, make);
}

std::vector<std::string> AttentionGradChoices(const KernelSpec& spec, const KernelOptions&) {
  return WaysOf(spec, AttentionForm::Create(spec));
}

}  // namespace

void RegisterAttentionGrad(Registry& registry) {
  constexpr Implementations kImplementations{CreateAttentionGrad, AttentionGradChoices};
  registry.Add("attention_grad", kImplementations);
  registry.Add("packed_attention_grad", kImplementations);
}

}  // namespace mpc::cpu
