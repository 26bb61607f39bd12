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

static void attentionOf(const Operands &in, Results results) {
  double scale = std::abs(in.attributes.GetDouble("scale"));
  // A mean of rows of the values, whose weights sum to 1. It is zero where all is masked.
  Range y = withZero(in[2]);
  widen(y, in[2].magnitude() * 1e-3);
  y.rowNorm = in[2].rowNorm * 1.001;
  y.typical = in[2].typical;
  results[0] = y;
  // Rows in which all is masked have none.
  if (in.size() > 3 || in.extent(0, -2) > in.extent(1, -2))
    return;
  double logit = times(times(in[0].rowNorm, in[1].rowNorm), scale);
  results[1] = Range::between(-logit - 1, logit + std::log(in.extent(1, -2)) + 1);
  results[1].typical = std::log(in.extent(1, -2)) + 1;
}

static void attentionGrad(const Operands &in, Results results) {
  const Range &dy = in[0], &query = in[1], &key = in[2], &value = in[3];
  double scale = std::abs(in.attributes.GetDouble("scale"));
  double queries = in.extent(1, -2), width = in.extent(1, -1);
  // The weights of a row sum to 1, so that the cotangents of its logits sum to at most twice the largest product.
  double logits = 2.01 * times(dy.rowNorm, value.rowNorm);
  double typical = scale * std::sqrt(width) * dy.typical * value.typical;
  auto bounded = [](double rowNorm, double typicalSize) {
    Range range = Range::between(-rowNorm, rowNorm);
    range.rowNorm = rowNorm;
    range.typical = typicalSize;
    return range;
  };
  results[0] = bounded(times(times(logits, key.rowNorm), scale), typical * key.typical);
  results[1] = bounded(times(times(logits, query.rowNorm), scale) * queries, typical * query.typical);
  results[2] = bounded(1.01 * dy.rowNorm * queries, 2 * dy.typical);
}

void addProductTransfers(TransferTable &table) {
  table["matmul"] = table["batch_matmul"] = matmulOf;
  table["attention"] = attentionOf;
  table["attention_grad"] = attentionGrad;
}

} // namespace mpc::ranges
