// attention_grad and packed_attention_grad: delta for every query row, then one kernel a result. Blocks of query rows
// go over the keys for dquery; blocks of keys go over the query rows for dkey and dvalue. Each computes the
// probabilities again.
#include "kernels/cuda/attention_tiles.h"

namespace mpc::cuda {
namespace {

struct AttentionGrad {
  ScoreOperands scores;
  HeadMatrix dy, value;  ///< as operands of dp: both along the value's elements
  const float* log_sum_exp;
  float* delta;  ///< [heads, rows]
  DType query_type, value_type;

  __device__ const AttentionGeometry& geometry() const { return scores.geometry; }

  /// An element of [heads, rows] for each of the thread's rows; `beyond` after the last.
  __device__ __forceinline__ void LoadRows(const float* values, std::int64_t head, std::int64_t row, float beyond,
                                           float (&result)[4]) const {
    for (int i = 0; i < 4; ++i) {
      const std::int64_t at = row + ThreadRow<kScoreTile>() + i;
      result[i] = at < geometry().rows ? values[head * geometry().rows + at] : beyond;
    }
  }

  /// p = exp(scores - log_sum_exp) of the tile at (row, column); 0 where nothing may be read.
  __device__ __forceinline__ void Probabilities(std::int64_t head, std::int64_t row, std::int64_t column, Quad* left,
                                                Quad* right, Elements& p) const {
    float norms[4];
    LoadRows(log_sum_exp, head, row, kNoScore, norms);
    scores.Scores(head, row, column, left, right, p);
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) p[i][j] = norms[i] == kNoScore ? 0.0f : scalar::Exp(p[i][j] - norms[i]);
    }
  }

  /// dp = dy value^T.
  __device__ __forceinline__ void ProbabilityCotangents(std::int64_t head, std::int64_t row, std::int64_t column,
                                                        Quad* left, Quad* right, Elements& dp) const {
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) dp[i][j] = 0.0f;
    }
    AddTileProduct<kScoreTile>(dy, value, head, row, column, 0, geometry().value_width, left, right, dp);
  }

  /// ds = scale * p * (dp - delta), rounded to the type of query; 0 in rows that read nothing.
  __device__ __forceinline__ void ScoreCotangents(std::int64_t head, std::int64_t row, std::int64_t column, Quad* left,
                                                  Quad* right, Elements& ds) const {
    Elements p;
    float deltas[4];
    Probabilities(head, row, column, left, right, p);
    ProbabilityCotangents(head, row, column, left, right, ds);
    LoadRows(delta, head, row, 0.0f, deltas);
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) {
        const float cotangent = geometry().scale * p[i][j] * (ds[i][j] - deltas[i]);
        ds[i][j] = RoundThrough(query_type, cotangent);
      }
    }
  }

  /// The end of the columns that any of a tile's rows may read.
  __device__ std::int64_t ReadableColumns(std::int64_t row) const {
    const std::int64_t last = row + kScoreTile < geometry().rows ? row + kScoreTile : geometry().rows;
    return geometry().ReadableColumns(last - 1);
  }
};

/// delta = sum over columns of dp * p.
__global__ void __launch_bounds__(kScoreThreads, 1) AttentionDeltaKernel(AttentionGrad grad, ResultTiles tiles) {
  AwaitEarlierLaunches();
  MPC_SHARED_ARRAY(Quad, left, kOperandQuads);
  MPC_SHARED_ARRAY(Quad, right, kOperandQuads);
  for (std::int64_t tile = blockIdx.x; tile < tiles.count(); tile += gridDim.x) {
    const std::int64_t head = tiles.Head(tile);
    const std::int64_t row = tiles.Row(tile);
    const std::int64_t columns = grad.ReadableColumns(row);
    float norms[4];
    grad.LoadRows(grad.log_sum_exp, head, row, kNoScore, norms);
    float sums[4] = {};
    for (std::int64_t column = 0; column < columns; column += kScoreTile) {
      Elements p, dp;
      grad.Probabilities(head, row, column, left, right, p);
      grad.ProbabilityCotangents(head, row, column, left, right, dp);
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) sums[i] += norms[i] == kNoScore ? 0.0f : dp[i][j] * p[i][j];
      }
    }
    for (int i = 0; i < 4; ++i) {
      const float sum = ReduceRow(sums[i], [](float a, float b) { return a + b; });
      const std::int64_t at = row + ThreadRow<kScoreTile>() + i;
      if (ThreadColumn<kScoreTile>() == 0 && at < grad.geometry().rows)
        grad.delta[head * grad.geometry().rows + at] = sum;
    }
  }
}

/// dquery = ds key; `key` as right operand: columns are its elements, k its rows.
__global__ void __launch_bounds__(kScoreThreads, 1)
    AttentionQueryGradKernel(AttentionGrad grad, HeadMatrix key, HeadSink dquery, ResultTiles tiles) {
  AwaitEarlierLaunches();
  MPC_SHARED_ARRAY(Quad, left, kOperandQuads);
  MPC_SHARED_ARRAY(Quad, right, kOperandQuads);
  MPC_SHARED_ARRAY(Quad, cotangents, kScoreQuads);
  for (std::int64_t tile = blockIdx.x; tile < tiles.count(); tile += gridDim.x) {
    const std::int64_t head = tiles.Head(tile);
    const std::int64_t row = tiles.Row(tile);
    const std::int64_t element = tiles.Column(tile);
    const std::int64_t columns = grad.ReadableColumns(row);
    Elements sums = {};
    for (std::int64_t column = 0; column < columns; column += kScoreTile) {
      Elements ds;
      grad.ScoreCotangents(head, row, column, left, right, ds);
      StoreTile(ds, cotangents);
      __syncthreads();
      const std::int64_t end = column + kScoreTile < columns ? column + kScoreTile : columns;
      AddTileProduct<kScoreTile>(SharedTile{cotangents, false, column}, key, head, 0, element, column, end, left, right,
                                 sums);
    }
    StoreResult(dquery, head, row, element, sums);
  }
}

/// dvalue = p^T dy (kOfValue), or dkey = ds^T query. `right_operand` is dy or query: columns are its elements, k its
/// rows.
template <bool kOfValue>
__global__ void __launch_bounds__(kScoreThreads, 1)
    AttentionKeyGradKernel(AttentionGrad grad, HeadMatrix right_operand, HeadSink result, ResultTiles tiles) {
  AwaitEarlierLaunches();
  MPC_SHARED_ARRAY(Quad, left, kOperandQuads);
  MPC_SHARED_ARRAY(Quad, right, kOperandQuads);
  MPC_SHARED_ARRAY(Quad, factors, kScoreQuads);
  const std::int64_t rows = grad.geometry().rows;
  for (std::int64_t tile = blockIdx.x; tile < tiles.count(); tile += gridDim.x) {
    const std::int64_t head = tiles.Head(tile);
    const std::int64_t column = tiles.Row(tile);
    const std::int64_t element = tiles.Column(tile);
    Elements sums = {};
    for (std::int64_t row = 0; row < rows; row += kScoreTile) {
      if (grad.ReadableColumns(row) <= column) continue;
      Elements weights;
      if constexpr (kOfValue) {
        grad.Probabilities(head, row, column, left, right, weights);
        for (int i = 0; i < 4; ++i) {
          for (int j = 0; j < 4; ++j) weights[i][j] = RoundThrough(grad.value_type, weights[i][j]);
        }
      } else {
        grad.ScoreCotangents(head, row, column, left, right, weights);
      }
      StoreTile(weights, factors);
      __syncthreads();
      const std::int64_t end = row + kScoreTile < rows ? row + kScoreTile : rows;
      AddTileProduct<kScoreTile>(SharedTile{factors, true, row}, right_operand, head, 0, element, row, end, left, right,
                                 sums);
    }
    StoreResult(result, head, column, element, sums);
  }
}

/// The kernels of one attention_grad, or of the packed one. Neither reads a stored y: delta is computed as it is
/// defined.
struct AttentionGradLaunches {
  AttentionForm form;
  AttentionGrad grad;
  HeadMatrix key, query, dy;  ///< as right operands of dquery, dkey and dvalue: columns are elements, k rows
  HeadSink dquery, dkey, dvalue;
  bool uses_dquery, uses_dkey, uses_dvalue;

  absl::Status operator()(const KernelOperands& operands, LaunchQueue& queue) const {
    AttentionGrad bound = grad;
    bound.dy = grad.dy.With(operands.inputs[form.dy]);
    bound.scores.query = grad.scores.query.With(operands.inputs[form.query.index]);
    bound.scores.key = grad.scores.key.With(operands.inputs[form.key.index]);
    bound.value = grad.value.With(operands.inputs[form.value.index]);
    bound.log_sum_exp = static_cast<const float*>(operands.inputs[form.log_sum_exp]);
    bound.scores.mask = form.MaskOf(operands.inputs);
    bound.delta = static_cast<float*>(operands.workspace);
    if (uses_dquery || uses_dkey) {
      const ResultTiles all = Tiles(form.geometry.rows, 1);
      absl::Status status = launch(queue, &AttentionDeltaKernel, ShapeFor(all), bound, all);
      if (!status.ok()) return status;
    }
    if (uses_dquery) {
      const HeadMatrix right = key.With(operands.inputs[form.key.index]);
      const HeadSink result = dquery.With(operands.outputs[form.dquery.index]);
      absl::Status status = Run(&AttentionQueryGradKernel, bound, right, result, queue);
      if (!status.ok()) return status;
    }
    if (uses_dkey) {
      const HeadMatrix right = query.With(operands.inputs[form.query.index]);
      const HeadSink result = dkey.With(operands.outputs[form.dkey.index]);
      absl::Status status = Run(&AttentionKeyGradKernel<false>, bound, right, result, queue);
      if (!status.ok()) return status;
    }
    if (!uses_dvalue) return absl::OkStatus();
    return Run(&AttentionKeyGradKernel<true>, bound, dy.With(operands.inputs[form.dy]),
               dvalue.With(operands.outputs[form.dvalue.index]), queue);
  }

  template <typename ResultKernel>
  absl::Status Run(ResultKernel kernel, const AttentionGrad& bound, const HeadMatrix& right, const HeadSink& result,
                   LaunchQueue& queue) const {
    const ResultTiles all = Tiles(result.count, result.width);
    return launch(queue, kernel, ShapeFor(all), bound, right, result, all);
  }

  ResultTiles Tiles(std::int64_t rows, std::int64_t width) const {
    return {form.geometry.heads(), TilesOf(rows), TilesOf(width)};
  }
  static LaunchShape ShapeFor(const ResultTiles& tiles) {
    LaunchShape shape;
    shape.threads = kScoreThreads;
    shape.blocks_x = BlocksFor(tiles.count(), 1);
    return shape;
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> CreateAttentionGrad(const KernelSpec& spec, const KernelContext&) {
  const AttentionForm form = AttentionForm::Create(spec);
  const AttentionGeometry& geometry = form.geometry;
  const auto type = [&](const HeadTensor& tensor) { return spec.inputs[tensor.index].dtype; };
  AttentionGradLaunches launches{};
  launches.form = form;
  // ---- Operands of scores and of dp
  AttentionGrad& grad = launches.grad;
  const DType dy_type = spec.inputs[form.dy].dtype;
  grad.scores.geometry = geometry;
  grad.scores.query = HeadMatrix::Create(type(form.query), form.query.rows, geometry.rows, geometry.width, true);
  grad.scores.key = HeadMatrix::Create(type(form.key), form.key.rows, geometry.columns, geometry.width, true);
  grad.dy = HeadMatrix::Create(dy_type, form.y, geometry.rows, geometry.value_width, true);
  grad.value = HeadMatrix::Create(type(form.value), form.value.rows, geometry.columns, geometry.value_width, true);
  grad.query_type = type(form.query);
  grad.value_type = type(form.value);
  // ---- Right operands, and results
  launches.key = HeadMatrix::Create(type(form.key), form.key.rows, geometry.columns, geometry.width, false);
  launches.query = HeadMatrix::Create(type(form.query), form.query.rows, geometry.rows, geometry.width, false);
  launches.dy = HeadMatrix::Create(dy_type, form.y, geometry.rows, geometry.value_width, false);
  const auto sink = [&](const HeadTensor& tensor, std::int64_t rows, std::int64_t width) {
    return HeadSink{{nullptr, spec.outputs[tensor.index].dtype}, tensor.rows, rows, width};
  };
  launches.dquery = sink(form.dquery, geometry.rows, geometry.width);
  launches.dkey = sink(form.dkey, geometry.columns, geometry.width);
  launches.dvalue = sink(form.dvalue, geometry.columns, geometry.value_width);
  launches.uses_dquery = spec.uses(form.dquery.index);
  launches.uses_dkey = spec.uses(form.dkey.index);
  launches.uses_dvalue = spec.uses(form.dvalue.index);
  return MakeKernel(launches, static_cast<std::size_t>(geometry.heads() * geometry.rows) * sizeof(float));
}

}  // namespace mpc::cuda
