// attention and packed_attention: a block takes 64 query rows of a head. It reads the keys twice: for the rows' maxima
// and sums, then for probabilities, which are rounded before their product with the values. Maxima and sums come from
// one reading: see Milakov and Gimelshein 2018, "Online normalizer calculation for softmax". A sum is rounded once more
// at each new maximum.
#include "kernels/cuda/attention_tiles.h"

namespace mpc::cuda {
namespace {

struct Attention {
  ScoreOperands scores;
  HeadMatrix value;    ///< as right operand: columns are its elements, k its rows
  HeadSink y;          ///< no data: not used
  float* log_sum_exp;  ///< null: not used
  ResultTiles tiles;
};

/// The number that a softmax subtracts from scores, and the factor of the exponentials.
struct RowNorm {
  float shift, inverse;
};

/// The norms of the thread's four rows; stores their log_sum_exp if `log_sum_exp` is not null.
__device__ __forceinline__ void NormOfRows(const Attention& attention, std::int64_t head, std::int64_t row,
                                           std::int64_t columns, Quad* left, Quad* right, float* log_sum_exp,
                                           RowNorm (&norms)[4]) {
  float largest[4], sums[4];
  for (int i = 0; i < 4; ++i) {
    largest[i] = kNoScore;
    sums[i] = 0.0f;
  }
  for (std::int64_t column = 0; column < columns; column += kScoreTile) {
    Elements scores;
    attention.scores.Scores(head, row, column, left, right, scores);
    for (int i = 0; i < 4; ++i) {
      // A NaN is no maximum, but makes the sum one.
      float maximum = largest[i];
      for (int j = 0; j < 4; ++j) maximum = scores[i][j] > maximum ? scores[i][j] : maximum;
      maximum = ReduceRow(maximum, [](float a, float b) { return b > a ? b : a; });
      const float shift = maximum == kNoScore ? 0.0f : maximum;
      if (maximum != largest[i]) sums[i] *= scalar::Exp(largest[i] - maximum);
      largest[i] = maximum;
      for (int j = 0; j < 4; ++j) sums[i] += scalar::Exp(scores[i][j] - shift);
    }
  }
  for (int i = 0; i < 4; ++i) {
    const float sum = ReduceRow(sums[i], [](float a, float b) { return a + b; });
    const float shift = largest[i] == kNoScore ? 0.0f : largest[i];
    norms[i] = {shift, sum == 0.0f ? 0.0f : 1.0f / sum};
    const std::int64_t at = row + ThreadRow<kScoreTile>() + i;
    const bool stores =
        log_sum_exp != nullptr && ThreadColumn<kScoreTile>() == 0 && at < attention.scores.geometry.rows;
    if (stores) log_sum_exp[head * attention.scores.geometry.rows + at] = shift + scalar::Log(sum);
  }
}

__global__ void __launch_bounds__(kScoreThreads) AttentionKernel(Attention attention) {
  AwaitEarlierLaunches();
  MPC_SHARED_ARRAY(Quad, left, kOperandQuads);
  MPC_SHARED_ARRAY(Quad, right, kOperandQuads);
  MPC_SHARED_ARRAY(Quad, probabilities, kScoreQuads);
  const AttentionGeometry& geometry = attention.scores.geometry;
  for (std::int64_t tile = blockIdx.x; tile < attention.tiles.count(); tile += gridDim.x) {
    const std::int64_t head = attention.tiles.Head(tile);
    const std::int64_t row = attention.tiles.Row(tile);
    const std::int64_t element = attention.tiles.Column(tile);
    const std::int64_t last = row + kScoreTile < geometry.rows ? row + kScoreTile : geometry.rows;
    const std::int64_t columns = geometry.ReadableColumns(last - 1);
    // ---- Maxima and sums of the rows
    RowNorm norms[4];
    NormOfRows(attention, head, row, columns, left, right, element == 0 ? attention.log_sum_exp : nullptr, norms);
    if (attention.y.sink.data == nullptr) continue;
    // ---- Probabilities of each tile, and their product with the values
    Elements sums = {};
    for (std::int64_t column = 0; column < columns; column += kScoreTile) {
      Elements scores;
      attention.scores.Scores(head, row, column, left, right, scores);
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) {
          const float p = scalar::Exp(scores[i][j] - norms[i].shift) * norms[i].inverse;
          scores[i][j] = RoundThrough(attention.value.matrix.data.dtype, p);
        }
      }
      StoreTile(scores, probabilities);
      __syncthreads();
      const std::int64_t end = column + kScoreTile < columns ? column + kScoreTile : columns;
      AddTileProduct<kScoreTile>(SharedTile{probabilities, false, column}, attention.value, head, 0, element, column,
                                 end, left, right, sums);
    }
    StoreResult(attention.y, head, row, element, sums);
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateAttention(const KernelSpec& spec, const KernelContext&) {
  const AttentionForm form = AttentionForm::Create(spec);
  const AttentionGeometry& geometry = form.geometry;
  const bool uses_y = spec.uses(0);
  const bool uses_log_sum_exp = spec.outputs.size() > 1 && spec.uses(1);
  const auto matrix = [&](const HeadTensor& tensor, std::int64_t rows, std::int64_t width, bool along_depth) {
    return HeadMatrix::Create(spec.inputs[tensor.index].dtype, tensor.rows, rows, width, along_depth);
  };
  Attention attention{};
  attention.scores.geometry = geometry;
  attention.scores.query = matrix(form.query, geometry.rows, geometry.width, true);
  attention.scores.key = matrix(form.key, geometry.columns, geometry.width, true);
  attention.value = matrix(form.value, geometry.columns, geometry.value_width, false);
  attention.y = {{nullptr, spec.outputs[0].dtype}, form.y, geometry.rows, geometry.value_width};
  attention.tiles = {geometry.heads(), TilesOf(geometry.rows), uses_y ? TilesOf(geometry.value_width) : 1};
  return MakeKernel([=](const KernelOperands& operands, LaunchQueue& queue) {
    Attention bound = attention;
    bound.scores.query = attention.scores.query.With(operands.inputs[form.query.index]);
    bound.scores.key = attention.scores.key.With(operands.inputs[form.key.index]);
    bound.scores.mask = form.MaskOf(operands.inputs);
    bound.value = attention.value.With(operands.inputs[form.value.index]);
    bound.y.sink.data = uses_y ? operands.outputs[0] : nullptr;
    bound.log_sum_exp = uses_log_sum_exp ? static_cast<float*>(operands.outputs[1]) : nullptr;
    LaunchShape shape;
    shape.threads = kScoreThreads;
    shape.blocks_x = BlocksFor(bound.tiles.count(), 1);
    return launch(queue, &AttentionKernel, shape, bound);
  });
}

}  // namespace

void RegisterAttention(Registry& registry) {
  registry.Add("attention", CreateAttention);
  registry.Add("attention_grad", CreateAttentionGrad);
  registry.Add("packed_attention", CreateAttention);
  registry.Add("packed_attention_grad", CreateAttentionGrad);
}

}  // namespace mpc::cuda
