// Matrix products and attention: the Cauchy-Schwarz inequality over rows and columns.
#include "compiler/dialect/ranges/interval.h"
#include "kernels/known_attributes.h"

using namespace llvm;

namespace mpc::ranges {

using Results = MutableArrayRef<Range>;

/// What a product adds to its result before it is rounded.
static void activate(Range &y, Activation activation) {
  if (activation == Activation::kNone)
    return;
  // The size of each is at most that of its operand, and sigmoid's is at most 1.
  double largest = std::max(1.0, y.magnitude() * 1.001);
  bool isPositive = activation == Activation::kRelu || activation == Activation::kSigmoid;
  double typical = y.typical;
  y = Range::between(isPositive ? 0 : -largest, largest);
  y.typical = typical;
}

/// The product of \p a and \p b over \p terms terms. \p addsUp: the terms are of samples that may push the same way.
/// Their sum is then expected to grow with their number, and not with its root.
static Range matrixProduct(const Range &a, double aRow, const Range &b, double bColumn, double terms, bool addsUp) {
  Range y = sumOf(product(a, b), terms);
  double bound = times(aRow, bColumn);
  limit(y, bound * (1 + sumError(terms)));
  y.rowNorm = times(aRow, b.norm);
  y.columnNorm = times(a.norm, bColumn);
  y.norm = times(a.norm, b.norm);
  y.typical = (addsUp ? terms : std::sqrt(terms)) * a.typical * b.typical;
  return y;
}

/// Whether the sum runs over the first axis of two values of the network, as that of a weight's gradient does.
static bool sumsSamples(const Operands &in, bool transposesA, bool transposesB) {
  return transposesA && !transposesB && in[0].isScaled != in[1].isScaled;
}

static void matmulOf(const Operands &in, Results results) {
  bool transposesA = in.attributes.GetBool("transpose_a"), transposesB = in.attributes.GetBool("transpose_b");
  double terms = in.extent(0, transposesA ? -2 : -1);
  double aRow = transposesA ? in[0].columnNorm : in[0].rowNorm;
  double bColumn = transposesB ? in[1].rowNorm : in[1].columnNorm;
  Range y = matrixProduct(in[0], aRow, in[1], bColumn, terms, sumsSamples(in, transposesA, transposesB));
  if (in.size() > 2) {
    Range bias = broadcast(in[2], in.shape(2), in.resultShape());
    y.low += bias.low;
    y.high += bias.high;
    y.rowNorm += bias.rowNorm;
    forgetNorms(bias);
    tighten(bias, in.resultShape());
    y.columnNorm += bias.columnNorm;
    y.norm += bias.norm;
    y.typical = inSquares(y.typical, bias.typical);
  }
  activate(y, in.attributes.Get(attribute::kActivation));
  results[0] = y;
}

/// The range of attention's y from that of the values. \p norm: the norm of a row of y, relative to one of the values.
static Range meanOfValues(const Range &value, double norm) {
  // A mean of rows of the values, whose weights sum to 1. It is zero where all is masked.
  Range y = withZero(value);
  widen(y, value.magnitude() * 1e-3);
  y.rowNorm = norm * value.rowNorm * 1.001;
  y.typical = value.typical;
  return y;
}

/// log_sum_exp of rows that read up to \p columns columns, and at least one.
static Range logSumExpOf(const Range &query, const Range &key, double scale, double columns) {
  double logit = times(times(query.rowNorm, key.rowNorm), scale);
  Range range = Range::between(-logit - 1, logit + std::log(columns) + 1);
  range.typical = std::log(columns) + 1;
  return range;
}

static void attentionOf(const Operands &in, Results results) {
  results[0] = meanOfValues(in[2], /*norm=*/1);
  // Rows in which all is masked have none.
  if (in.size() > 3 || in.extent(0, -2) > in.extent(1, -2))
    return;
  results[1] = logSumExpOf(in[0], in[1], std::abs(in.attributes.GetDouble("scale")), in.extent(1, -2));
}

/// A row of a head is no longer than the row of qkv that it is a part of. A row of y has those of all heads.
static void packedAttentionOf(const Operands &in, Results results) {
  results[0] = meanOfValues(in[0], /*norm=*/std::sqrt(in.attributes.GetInt("heads")));
  if (in.size() == 1)
    results[1] = logSumExpOf(in[0], in[0], std::abs(in.attributes.GetDouble("scale")), in.extent(0, -2));
}

namespace {

/// The gradients of query, key and value for \p queries rows of \p width elements a head.
struct AttentionGradients {
  Range query, key, value;

  AttentionGradients(const Range &dy, const Range &query, const Range &key, const Range &value, double scale,
                     double queries, double width) {
    // The weights of a row sum to 1, so that the cotangents of its logits sum to at most twice the largest product.
    double logits = 2.01 * times(dy.rowNorm, value.rowNorm);
    double typical = scale * std::sqrt(width) * dy.typical * value.typical;
    this->query = bounded(times(times(logits, key.rowNorm), scale), typical * key.typical);
    this->key = bounded(times(times(logits, query.rowNorm), scale) * queries, typical * query.typical);
    this->value = bounded(1.01 * dy.rowNorm * queries, 2 * dy.typical);
  }

private:
  static Range bounded(double rowNorm, double typicalSize) {
    Range range = Range::between(-rowNorm, rowNorm);
    range.rowNorm = rowNorm;
    range.typical = typicalSize;
    return range;
  }
};

} // namespace

static void attentionGrad(const Operands &in, Results results) {
  AttentionGradients gradients(in[0], in[1], in[2], in[3], std::abs(in.attributes.GetDouble("scale")), in.extent(1, -2),
                               in.extent(1, -1));
  results[0] = gradients.query;
  results[1] = gradients.key;
  results[2] = gradients.value;
}

static void packedAttentionGrad(const Operands &in, Results results) {
  double heads = in.attributes.GetInt("heads");
  AttentionGradients gradients(in[0], in[1], in[1], in[1], std::abs(in.attributes.GetDouble("scale")), in.extent(1, -2),
                               in.extent(0, -1) / heads);
  Range dqkv = hull(hull(gradients.query, gradients.key), gradients.value);
  dqkv.rowNorm =
      std::sqrt(heads) * inSquares(inSquares(gradients.query.rowNorm, gradients.key.rowNorm), gradients.value.rowNorm);
  dqkv.typical =
      inSquares(inSquares(gradients.query.typical, gradients.key.typical), gradients.value.typical) / std::sqrt(3.0);
  results[0] = dqkv;
}

void addProductTransfers(TransferTable &table) {
  table["matmul"] = table["batch_matmul"] = matmulOf;
  table["attention"] = attentionOf;
  table["attention_grad"] = attentionGrad;
  table["packed_attention"] = packedAttentionOf;
  table["packed_attention_grad"] = packedAttentionGrad;
}

} // namespace mpc::ranges
