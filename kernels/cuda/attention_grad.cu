// attention_grad: delta for every query row, then one kernel a result. Blocks of query rows go over the keys for
// dquery; blocks of keys go over the query rows for dkey and dvalue. Each computes the probabilities again.
#include "kernels/cuda/attention_tiles.h"

namespace mpc::cuda {
namespace {

struct AttentionGrad {
  ScoreOperands scores;
  Matrix dy, value;  ///< as operands of dp: both along the value's elements
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
    AttentionQueryGradKernel(AttentionGrad grad, Matrix key, Sink dquery, ResultTiles tiles) {
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
    StoreResult(dquery, head, grad.geometry().rows, grad.geometry().width, row, element, sums);
  }
}

/// dvalue = p^T dy (kOfValue), or dkey = ds^T query. `right_operand` is dy or query: columns are its elements, k its
/// rows.
template <bool kOfValue>
__global__ void __launch_bounds__(kScoreThreads, 1)
    AttentionKeyGradKernel(AttentionGrad grad, Matrix right_operand, Sink result, ResultTiles tiles) {
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
    const std::int64_t width = kOfValue ? grad.geometry().value_width : grad.geometry().width;
    StoreResult(result, head, grad.geometry().columns, width, column, element, sums);
  }
}

/// The kernels of one attention_grad. The operands are dy, query, key, value, log_sum_exp and a mask.
struct AttentionGradLaunches {
  AttentionGrad grad;
  DType dy_type, key_type;
  DType result_types[3];
  bool used[3];

  absl::Status operator()(const KernelOperands& operands, LaunchQueue& queue) const {
    const AttentionGeometry& geometry = grad.scores.geometry;
    AttentionGrad bound = grad;
    bound.dy.data.data = operands.inputs[0];
    bound.scores.query.data.data = operands.inputs[1];
    bound.scores.key.data.data = operands.inputs[2];
    bound.value.data.data = operands.inputs[3];
    bound.log_sum_exp = static_cast<const float*>(operands.inputs[4]);
    bound.scores.mask = geometry.has_mask ? static_cast<const std::uint8_t*>(operands.inputs[5]) : nullptr;
    bound.delta = static_cast<float*>(operands.workspace);
    const auto tiles = [&](std::int64_t rows, std::int64_t width) {
      return ResultTiles{geometry.heads(), TilesOf(rows), TilesOf(width)};
    };
    const auto sink = [&](std::size_t result) { return Sink{operands.outputs[result], result_types[result]}; };
    if (used[0] || used[1]) {
      const ResultTiles all = tiles(geometry.rows, 1);
      absl::Status status = launch(queue, &AttentionDeltaKernel, ShapeFor(all), bound, all);
      if (!status.ok()) return status;
    }
    if (used[0]) {
      const ResultTiles all = tiles(geometry.rows, geometry.width);
      const Matrix key = Matrix::Create(key_type, geometry.width, geometry.columns, false).With(operands.inputs[2]);
      absl::Status status = launch(queue, &AttentionQueryGradKernel, ShapeFor(all), bound, key, sink(0), all);
      if (!status.ok()) return status;
    }
    if (used[1]) {
      const ResultTiles all = tiles(geometry.columns, geometry.width);
      const Matrix query =
          Matrix::Create(grad.query_type, geometry.width, geometry.rows, false).With(operands.inputs[1]);
      absl::Status status = launch(queue, &AttentionKeyGradKernel<false>, ShapeFor(all), bound, query, sink(1), all);
      if (!status.ok()) return status;
    }
    if (!used[2]) return absl::OkStatus();
    const ResultTiles all = tiles(geometry.columns, geometry.value_width);
    const Matrix dy = Matrix::Create(dy_type, geometry.value_width, geometry.rows, false).With(operands.inputs[0]);
    return launch(queue, &AttentionKeyGradKernel<true>, ShapeFor(all), bound, dy, sink(2), all);
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
  const AttentionGeometry geometry = AttentionGeometry::Create(spec, spec.inputs[1], spec.inputs[2], spec.inputs[3],
                                                               spec.inputs.size() > 5 ? &spec.inputs[5] : nullptr);
  AttentionGradLaunches launches{};
  AttentionGrad& grad = launches.grad;
  grad.scores.geometry = geometry;
  grad.scores.query = Matrix::Create(spec.inputs[1].dtype, geometry.rows, geometry.width, true);
  grad.scores.key = Matrix::Create(spec.inputs[2].dtype, geometry.columns, geometry.width, true);
  grad.dy = Matrix::Create(spec.inputs[0].dtype, geometry.rows, geometry.value_width, true);
  grad.value = Matrix::Create(spec.inputs[3].dtype, geometry.columns, geometry.value_width, true);
  grad.query_type = spec.inputs[1].dtype;
  grad.value_type = spec.inputs[3].dtype;
  launches.dy_type = spec.inputs[0].dtype;
  launches.key_type = spec.inputs[2].dtype;
  for (std::size_t i = 0; i < 3; ++i) {
    launches.result_types[i] = spec.outputs[i].dtype;
    launches.used[i] = spec.uses(i);
  }
  return MakeKernel(launches, static_cast<std::size_t>(geometry.heads() * geometry.rows) * sizeof(float));
}

}  // namespace mpc::cuda
