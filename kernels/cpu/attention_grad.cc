// attention_grad and packed_attention_grad: a task is a head. Blocks of query rows compute their probabilities again.
// They add to the gradients of key and value, which stay in f32 in the workspace until the head is done.
#include <type_traits>

#include "kernels/cpu/attention_rows.h"
#include "kernels/cpu/registry.h"

namespace mpc::cpu {
namespace {

/// Rows whose shares of the gradients of key and value are added at once. On tiles they are several blocks, since the
/// sums take longer to load and to store than a share of few rows takes to compute.
template <typename Number>
inline constexpr std::int64_t kShareRows = (std::is_same_v<Number, TilePair> ? 4 : 1) * kScoreRows<Number>;

/// The workspace of a task. Panels are right operands: keys by column and by row, values by column, and rows of query
/// and dy. Left operands are query and dy, which may need a copy, pairs of p and ds, and their transposes.
template <typename Number>
struct Scratch {
  Number *keys_by_column, *keys_by_row, *values_by_column;
  Number *query, *query_panels, *dy, *dy_panels, *p_pairs, *ds_pairs, *p_transposed, *ds_transposed;
  float *p, *ds, *dquery, *dkey, *dvalue;
  std::int64_t floats;

  Scratch(const AttentionShape& shape, float* base) {
    constexpr std::int64_t kRows = kScoreRows<Number>, kShared = kShareRows<Number>;
    const std::int64_t width = shape.padded_width();
    const std::int64_t value_width = shape.padded_value_width();
    const std::int64_t columns = shape.padded_columns();
    // Numbers are rounded where they are, and read in either direction.
    const std::int64_t pairs = std::is_same_v<Number, float> ? 0 : kRows * RoundedStride<Number>(columns);
    // The transpose of pairs has as many rows as there are columns.
    const std::int64_t key_rows = std::is_same_v<Number, TilePair> ? PaddedToTile(shape.columns) : shape.columns;
    Buffers buffers(base);
    keys_by_column = buffers.Take<Number>(columns * LengthOf<Number>(shape.width));
    keys_by_row = buffers.Take<Number>(width * LengthOf<Number>(shape.columns));
    values_by_column = buffers.Take<Number>(columns * LengthOf<Number>(shape.value_width));
    query = buffers.Take<Number>(kShared * LengthOf<Number>(width));
    query_panels = buffers.Take<Number>(LengthOf<Number>(kShared) * width);
    dy = buffers.Take<Number>(kShared * LengthOf<Number>(value_width));
    dy_panels = buffers.Take<Number>(LengthOf<Number>(kShared) * value_width);
    p_pairs = buffers.Take<Number>(pairs);
    ds_pairs = buffers.Take<Number>(pairs);
    const std::int64_t transposed = std::is_same_v<Number, TilePair> ? key_rows * LengthOf<Number>(kShared) : pairs;
    p_transposed = buffers.Take<Number>(transposed);
    ds_transposed = buffers.Take<Number>(transposed);
    p = buffers.Take<float>(kRows * StrideFor<Number>(columns));
    ds = buffers.Take<float>(kRows * StrideFor<Number>(columns));
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
    const std::int64_t heads = shape.heads();
    ForEachRange(heads, heads, shape.work() * 3, [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
      const Scratch<Number> scratch(shape, static_cast<float*>(operands.workspace) + slot * floats);
      [[maybe_unused]] const ProductScope<Number> scope;
      for (std::int64_t head = begin; head < end; ++head) {
        PackTransposedPanels(key, keys.At(head, 0), keys.row_stride, shape.width, shape.columns,
                             scratch.keys_by_column);
        PackPanels(key, keys.At(head, 0), keys.row_stride, shape.columns, shape.width, scratch.keys_by_row);
        PackTransposedPanels(value, values.At(head, 0), values.row_stride, shape.value_width, shape.columns,
                             scratch.values_by_column);
        for (std::int64_t first = 0; first < shape.rows; first += kShareRows<Number>) {
          RunRows(operands, scratch, head, first);
        }
        if (used[1]) {
          StoreRows<Number>(result_types[1], scratch.dkey, form.dkey.rows, head, 0, shape.columns, shape.width,
                            operands.outputs[form.dkey.index]);
        }
        if (used[2]) {
          StoreRows<Number>(result_types[2], scratch.dvalue, form.dvalue.rows, head, 0, shape.columns,
                            shape.value_width, operands.outputs[form.dvalue.index]);
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
    const float delta = SumOfTerms<Number>(columns, [=](std::int64_t s) {
      p[s] = ProbabilityExp<Number>(std::min(p[s] - log_sum_exp, 89.0f));
      return ds[s] * p[s];
    });
    const float scale = shape.scale;
#pragma omp simd
    for (std::int64_t s = 0; s < columns; ++s) ds[s] = scale * p[s] * (ds[s] - delta);
  }

  // Rows from `first` on, as many as have their shares added at once.
  void RunRows(const KernelOperands& operands, const Scratch<Number>& scratch, std::int64_t head,
               std::int64_t first) const {
    const std::int64_t rows = std::min(kShareRows<Number>, shape.rows - first);
    const LeftMatrix<Number> dy =
        LoadRows({dy_type, operands.inputs[form.dy]}, form.y, head, first, rows, shape.value_width, scratch.dy);
    const LeftMatrix<Number> query = LoadRows({query_type, operands.inputs[form.query.index]}, form.query.rows, head,
                                              first, rows, shape.width, scratch.query);
    Transposes transposes{};
    for (std::int64_t place = 0; place < rows; place += kScoreRows<Number>) {
      const Transposes block =
          RunBlock(operands, scratch, head, first, place, RowsFrom(query, place), RowsFrom(dy, place));
      if (place == 0) transposes = block;
    }
    if (used[2]) {
      PackRows(dy, rows, shape.value_width, scratch.dy_panels);
      AddShares(transposes.p, first, rows, scratch.dy_panels, shape.value_width, scratch.dvalue);
    }
    if (used[1]) {
      PackRows(query, rows, shape.width, scratch.query_panels);
      AddShares(transposes.ds, first, rows, scratch.query_panels, shape.width, scratch.dkey);
    }
  }

  /// Left operands of the shares of `rows` rows.
  struct Transposes {
    LeftMatrix<Number> p, ds;
  };

  // The block begins `place` rows behind row `shared_first`, from which on shares are added at once. Stores its rows of
  // dquery, and returns the transposes of its p and ds.
  Transposes RunBlock(const KernelOperands& operands, const Scratch<Number>& scratch, std::int64_t head,
                      std::int64_t shared_first, std::int64_t place, const LeftMatrix<Number>& query,
                      const LeftMatrix<Number>& dy) const {
    const std::int64_t first = shared_first + place;
    const std::int64_t rows = std::min(kScoreRows<Number>, shape.rows - first);
    const std::int64_t columns = shape.ReadableColumns(first + rows - 1);
    const std::int64_t stride = StrideFor<Number>(shape.padded_columns()), length = RoundedStride<Number>(columns);
    // ---- Scores, and cotangents of the probabilities
    SetProduct(query, rows, shape.width, scratch.keys_by_column, shape.width, columns, scratch.p, stride);
    SetProduct(dy, rows, shape.value_width, scratch.values_by_column, shape.value_width, columns, scratch.ds, stride);
    // ---- Probabilities, and cotangents of the scores
    const std::int64_t count = LoopColumns<Number>(columns);
    const std::uint8_t* const mask = form.MaskOf(operands.inputs);
    const float* const log_sum_exp =
        static_cast<const float*>(operands.inputs[form.log_sum_exp]) + head * shape.rows + first;
    ForEachRow<Number>(rows, [&](std::int64_t r) {
      float* const p = scratch.p + r * stride;
      float* const ds = scratch.ds + r * stride;
      shape.ScaleAndMask(mask, head, first + r, count, p);
      std::fill(ds + columns, ds + count, 0.0f);
      DifferentiateRow(log_sum_exp[r], count, p, ds);
      // Each is rounded to the type that its products read.
      RoundRow(value_type, columns, p, scratch.p_pairs + r * length);
      RoundRow(query_type, columns, ds, scratch.ds_pairs + r * length);
    });
    const LeftMatrix<Number> p = RoundedRows(scratch.p, stride, scratch.p_pairs, columns);
    const LeftMatrix<Number> ds = RoundedRows(scratch.ds, stride, scratch.ds_pairs, columns);
    // ---- Rows of dquery
    if (used[0]) {
      SetProduct(ds, rows, columns, scratch.keys_by_row, shape.columns, shape.width, scratch.dquery,
                 shape.padded_width());
      StoreRows<Number>(result_types[0], scratch.dquery, form.dquery.rows, head, first, rows, shape.width,
                        operands.outputs[form.dquery.index]);
    }
    // ---- Left operands of the shares
    const std::int64_t before = LengthOf<Number>(place), all = LengthOf<Number>(kShareRows<Number>);
    Transposes transposes{};
    if (used[2]) transposes.p = Transpose(p, rows, columns, scratch.p_transposed + before, all);
    if (used[1]) transposes.ds = Transpose(ds, rows, columns, scratch.ds_transposed + before, all);
    return transposes;
  }

  // Adds the products of `rows` rows from row `first` on to `sums`, the gradient of key or value. What rows before
  // them have not read has no sums yet.
  void AddShares(const LeftMatrix<Number>& transposed, std::int64_t first, std::int64_t rows, const Number* panels,
                 std::int64_t width, float* sums) const {
    const std::int64_t columns = shape.ReadableColumns(first + rows - 1), stride = PaddedToPanel(width);
    const std::int64_t known = first == 0 ? 0 : shape.ReadableColumns(first - 1);
    for (std::int64_t column = 0, end = 0; column < columns; column = end) {
      end = column < known ? known : columns;
      std::int64_t skipped = 0;
      if constexpr (std::is_same_v<Number, TilePair>) {
        // A block of columns has the transposes of those blocks of rows alone that may read it.
        end = std::min(column + kTileDepth, columns);
        if (shape.causal) skipped = std::max<std::int64_t>(column + shape.rows - shape.columns - first, 0);
      }
      const LeftMatrix<Number> share{
          transposed.data + column * transposed.row_stride + LengthOf<Number>(skipped) * transposed.depth_stride,
          transposed.row_stride, transposed.depth_stride};
      const Number* const right = panels + LengthOf<Number>(skipped) * kPanel;
      float* const c = sums + column * stride;
      if (column < known) {
        AddProduct(share, end - column, rows - skipped, right, rows, width, c, stride);
      } else {
        SetProduct(share, end - column, rows - skipped, right, rows, width, c, stride);
      }
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
  const std::int64_t slots = shape.SlotsOf(shape.heads());
  const auto bytes = static_cast<std::size_t>(slots * Scratch<Number>(shape, nullptr).floats) * sizeof(float);
  return std::make_unique<FunctionKernel<AttentionGrad<Number>>>(run, bytes);
}

std::vector<OwnWay> WaysOf(const KernelSpec& spec) {
  const AttentionForm form = AttentionForm::Create(spec);
  const auto type = [&spec](const auto& operand) { return spec.inputs[operand.index].dtype; };
  const auto make = [&spec, form]<typename Number>() { return MakeAttentionGrad<Number>(spec, form); };
  return WaysOfAttention(form.geometry,
                         {spec.inputs[form.dy].dtype, type(form.query), type(form.key), type(form.value)}, make);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateAttentionGrad(const KernelSpec& spec, const KernelOptions& options) {
  return MakeInWay(spec, WaysOf(spec), options.choice);
}

std::vector<std::string> AttentionGradChoices(const KernelSpec& spec, const KernelOptions&) {
  return WithOwnWays(WaysOf(spec));
}

}  // namespace

void RegisterAttentionGrad(Registry& registry) {
  constexpr Implementations kImplementations{CreateAttentionGrad, AttentionGradChoices};
  registry.Add("attention_grad", kImplementations);
  registry.Add("packed_attention_grad", kImplementations);
}

}  // namespace mpc::cpu
