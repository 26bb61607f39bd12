// Derivatives of element-wise operations: the cotangent times a factor.
#include "compiler/dialect/ranges/interval.h"
#include "kernels/known_attributes.h"

using namespace llvm;

namespace mpc::ranges {

using Results = MutableArrayRef<Range>;

/// Factors in [kLow, kHigh] thousandths, of root mean square kTypical thousandths.
template <int kLow, int kHigh, int kTypical> static void byFactor(const Operands &in, Results results) {
  for (Range &result : results)
    result = multiplied(in[0], kLow / 1000.0, kHigh / 1000.0, kTypical / 1000.0);
}

static void reluGrad(const Operands &in, Results results) {
  results[0] = multiplied(in[0], 0, 1, std::sqrt(0.5));
  results[0].least = in[0].least;
  // The largest cotangents pass as others do.
  results[0].typicalPeak = in[0].typicalPeak;
}

static void sigmoidGrad(const Operands &in, Results results) {
  const Range &y = in[1];
  auto slope = [](double v) { return v * (1 - v); };
  double low = std::min(slope(y.low), slope(y.high));
  double high = y.low <= 0.5 && y.high >= 0.5 ? 0.25 : std::max(slope(y.low), slope(y.high));
  results[0] = multiplied(in[0], low, high, 0.2);
}
static void tanhGrad(const Operands &in, Results results) {
  const Range &y = in[1];
  auto slope = [](double v) { return 1 - v * v; };
  double low = std::min(slope(y.low), slope(y.high));
  double high = y.low <= 0 && y.high >= 0 ? 1 : std::max(slope(y.low), slope(y.high));
  results[0] = multiplied(in[0], low, high, 1);
}
/// The cotangent times factors of which nothing is known but how large they are expected to be.
static Range unbounded(const Range &dy, double typical) {
  Range dx;
  dx.typical = dy.typical * typical;
  return dx;
}
static void sqrtGrad(const Operands &in, Results results) {
  double typical = 0.5 / in[1].typical;
  results[0] =
      in[1].low > 0 ? multiplied(in[0], 0.5 / in[1].high, 0.5 / in[1].low, typical) : unbounded(in[0], typical);
}
static void log1pGrad(const Operands &in, Results results) {
  results[0] = in[1].low > -1 ? multiplied(in[0], 1 / (1 + in[1].high), 1 / (1 + in[1].low), 1) : unbounded(in[0], 1);
}
static void squareGrad(const Operands &in, Results results) {
  results[0] = multiplied(in[0], 2 * in[1].low, 2 * in[1].high, 2 * in[1].typical);
}
static void powGrad(const Operands &in, Results results) {
  double exponent = in.attributes.GetDouble("exponent");
  bool isWhole = exponent >= 1 && std::floor(exponent) == exponent;
  double typical = std::abs(exponent) * std::pow(in[1].typical, exponent - 1);
  if (!isWhole && in[1].low <= 0) {
    results[0] = unbounded(in[0], typical);
    return;
  }
  double largest = std::abs(exponent) *
                   std::max(std::pow(in[1].magnitude(), exponent - 1), isWhole ? 0 : std::pow(in[1].low, exponent - 1));
  results[0] = multiplied(in[0], -largest, largest, typical);
}
static void leakyReluGrad(const Operands &in, Results results) {
  double slope = in.attributes.Get(attribute::kSlope);
  results[0] = multiplied(in[0], std::min(slope, 1.0), std::max(slope, 1.0), std::sqrt((1 + slope * slope) / 2));
}

static void prelu(const Operands &in, Results results) {
  Range scaled = product(in[0], in[1]);
  results[0] = Range::between(std::min({in[0].low, scaled.low, 0.0}), std::max({in[0].high, scaled.high, 0.0}));
  double largest = std::max(1.0, in[1].magnitude());
  takeNorms(results[0], in[0]);
  scaleNorms(results[0], largest);
  results[0].typical = in[0].typical;
}
static void preluGrad(const Operands &in, Results results) {
  results[0] = multiplied(in[0], std::min(in[2].low, 1.0), std::max(in[2].high, 1.0), 1);
  double terms = in.count(0) / in.resultCount(1);
  Range each = withZero(product(in[0], in[1]));
  results[1] = sumOf(each, terms);
  results[1].typical = terms * in[0].typical * in[1].typical;
}

static void lstmCell(const Operands &in, Results results) {
  results[0] = Range::between(-1, 1);
  results[0].typical = 0.5;
  results[1] = Range::between(-in[1].magnitude() - 1, in[1].magnitude() + 1);
  results[1].typical = inSquares(in[1].typical, 0.5);
  results[2] = Range::between(-1, 1);
  results[2].typical = 0.6;
}
static void lstmCellGrad(const Operands &in, Results results) {
  // The cotangent of the new state is dc + dh * o * (1 - tanh(c)^2). A gate's slope is at most 1/4, that of tanh 1.
  double state = in[0].magnitude() + in[1].magnitude();
  double gate = std::max(times(state, std::max(1.0, in[3].magnitude() / 4)), in[0].magnitude());
  results[0] = Range::between(-gate, gate);
  results[0].typical = inSquares(in[0].typical, in[1].typical) * 0.25;
  results[1] = Range::between(-state, state);
  results[1].typical = inSquares(in[0].typical, in[1].typical) * 0.5;
}

void addGradientTransfers(TransferTable &table) {
  const std::pair<StringRef, Transfer> known[] = {{"relu_grad", reluGrad},
                                                  {"sigmoid_grad", sigmoidGrad},
                                                  {"tanh_grad", tanhGrad},
                                                  {"sqrt_grad", sqrtGrad},
                                                  {"log1p_grad", log1pGrad},
                                                  {"square_grad", squareGrad},
                                                  {"pow_grad", powGrad},
                                                  {"leaky_relu_grad", leakyReluGrad},
                                                  {"gelu_grad", byFactor<-171, 1172, 707>},
                                                  {"silu_grad", byFactor<-101, 1101, 600>},
                                                  {"hard_swish_grad", byFactor<-501, 1501, 600>},
                                                  {"erf_grad", byFactor<0, 1129, 1000>},
                                                  {"sin_grad", byFactor<-1001, 1001, 707>},
                                                  {"cos_grad", byFactor<-1001, 1001, 707>},
                                                  {"abs_grad", byFactor<-1000, 1000, 1000>},
                                                  {"clamp_grad", byFactor<0, 1000, 1000>},
                                                  {"maximum_grad", byFactor<0, 1000, 1000>},
                                                  {"minimum_grad", byFactor<0, 1000, 1000>},
                                                  {"prelu", prelu},
                                                  {"prelu_grad", preluGrad},
                                                  {"lstm_cell", lstmCell},
                                                  {"lstm_cell_grad", lstmCellGrad}};
  for (auto [name, transfer] : known)
    table[name] = transfer;
}

} // namespace mpc::ranges
