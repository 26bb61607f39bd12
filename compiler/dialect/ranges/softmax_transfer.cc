// Softmax and its relatives: weights in [0, 1] that sum to 1.
#include "compiler/dialect/ranges/interval.h"

using namespace llvm;

namespace mpc::ranges {

using Results = MutableArrayRef<Range>;

static double extentOf(const Operands &in, size_t operand) {
  return in.extent(operand, in.attributes.GetInt("axis", -1));
}
static bool isAlongRows(const Operands &in) {
  int64_t axis = in.attributes.GetInt("axis", -1);
  return axis == -1 || axis == int64_t(in.shape(0).size()) - 1;
}

static void softmax(const Operands &in, Results results) {
  double count = extentOf(in, 0);
  double spread = std::exp(in[0].low - in[0].high);
  Range y = Range::between(spread / (spread + (count - 1)) * 0.99, 1.0001);
  if (!(y.low > 0))
    y.low = 0;
  if (isAlongRows(in))
    y.rowNorm = 1.001;
  y.norm = 1.001 * std::sqrt(in.count(0) / count);
  y.peak = 0.99 / count;
  double size = std::min(in[0].typical, 3.0);
  y.typical = std::min(std::exp(size * size) / count, 1 / std::sqrt(count));
  y.typicalPeak = 1;
  results[0] = y;
}
static void logSoftmax(const Operands &in, Results results) {
  double count = extentOf(in, 0), lowest = in[0].low - in[0].high - std::log(count);
  results[0] = Range::between(lowest, 0);
  widen(results[0], (in[0].magnitude() + std::log(count)) * 1e-5);
  results[0].typical = std::log(count) + in[0].typical;
}

static void softmaxGrad(const Operands &in, Results results) {
  // y * (dy - sum(y * dy)), where the weights y of the sum are at most 1 and sum to 1 but for their rounding.
  results[0] = multiplied(in[0], -2.1, 2.1, in[1].typical);
  double largest = 2.1 * in[0].magnitude();
  results[0].low = -largest;
  results[0].high = largest;
  if (!isAlongRows(in))
    forgetNorms(results[0]);
}
static void logSoftmaxGrad(const Operands &in, Results results) {
  // dy - exp(y) * sum(dy), where exp(y) is at most 1.
  double count = extentOf(in, 0), largest = times(in[0].magnitude(), 1 + count) * 1.001;
  results[0] = Range::between(-largest, largest);
  if (isAlongRows(in)) {
    takeNorms(results[0], in[0]);
    scaleNorms(results[0], (1 + std::sqrt(count)) * 1.001);
  }
  results[0].typical = in[0].typical;
}

void addSoftmaxTransfers(TransferTable &table) {
  table["softmax"] = softmax;
  table["log_softmax"] = logSoftmax;
  table["softmax_grad"] = softmaxGrad;
  table["log_softmax_grad"] = logSoftmaxGrad;
}

} // namespace mpc::ranges
