// Element-wise operations.
#include "compiler/dialect/ranges/interval.h"
#include "kernels/known_attributes.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace llvm;

namespace mpc::ranges {

using Results = MutableArrayRef<Range>;

/// The range of an increasing function, whose values at the ends are given.
static Range increasing(double atLow, double atHigh, double typical) {
  Range y = Range::between(atLow, atHigh);
  y.typical = typical;
  return y;
}

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Values that are handed on, or zero.
static void relu(const Operands &in, Results results) {
  Range y = in[0];
  y.low = std::max(y.low, 0.0);
  y.high = std::max(y.high, 0.0);
  y.peak = std::max(in[0].low, 0.0);
  if (in[0].low < 0) {
    y.typical = in[0].typical * std::sqrt(0.5);
    y.typicalPeak = in[0].typicalPeak;
  }
  results[0] = y;
}

static void leakyRelu(const Operands &in, Results results) {
  double slope = in.attributes.Get(attribute::kSlope);
  results[0] = multiplied(in[0], std::min(slope, 1.0), std::max(slope, 1.0), 1);
  results[0].typical = in[0].typical * std::sqrt((1 + slope * slope) / 2);
}

// x times a factor in [0, 1] that grows with x, or a little less: silu, gelu, hard_swish.
static void gated(const Operands &in, Results results, double lowest, double typical) {
  Range y = Range::between(in[0].low >= 0 ? 0 : lowest, std::max(in[0].high, 0.0));
  // gelu's approximation may be larger than x by a rounding.
  widen(y, 1e-3);
  takeNorms(y, in[0]);
  scaleNorms(y, 1.001);
  y.typical = in[0].typical * typical;
  results[0] = y;
}
static void silu(const Operands &in, Results results) { gated(in, results, -0.2785, 0.6); }
static void gelu(const Operands &in, Results results) { gated(in, results, -0.171, std::sqrt(0.5)); }
static void hardSwish(const Operands &in, Results results) { gated(in, results, -0.376, 0.6); }

static void sigmoidOf(const Operands &in, Results results) {
  results[0] = increasing(sigmoid(in[0].low), sigmoid(in[0].high), 0.5 + std::min(0.5, in[0].typical / 8));
}
static void tanhOf(const Operands &in, Results results) {
  results[0] = increasing(std::tanh(in[0].low), std::tanh(in[0].high), std::min(1.0, in[0].typical));
  Range y = results[0];
  takeNorms(y, in[0]);
  scaleNorms(y, 1.001);
  results[0] = y;
}
static void erfOf(const Operands &in, Results results) {
  results[0] = increasing(std::erf(in[0].low), std::erf(in[0].high), std::min(1.0, in[0].typical * 1.13));
}
static void expOf(const Operands &in, Results results) {
  results[0] = increasing(std::exp(in[0].low), std::exp(in[0].high), std::exp(in[0].typical * in[0].typical));
  results[0].typicalPeak = std::exp(in[0].typicalPeak);
}
static void logOf(const Operands &in, Results results) {
  if (in[0].low > 0)
    results[0] = Range::between(std::log(in[0].low), std::log(in[0].high));
  results[0].typical = std::abs(std::log(in[0].typical)) + 1;
}
static void log1pOf(const Operands &in, Results results) {
  if (in[0].low > -1)
    results[0] = Range::between(std::log1p(in[0].low), std::log1p(in[0].high));
  results[0].typical = std::log1p(in[0].typical);
}
static void sqrtOf(const Operands &in, Results results) {
  if (in[0].low >= 0)
    results[0] = Range::between(std::sqrt(in[0].low), std::sqrt(in[0].high));
  results[0].typical = std::sqrt(in[0].typical);
}
static void floorOf(const Operands &in, Results results) {
  results[0] = increasing(std::floor(in[0].low), std::floor(in[0].high), in[0].typical + 0.5);
  results[0].least = 1;
}
static void squareOf(const Operands &in, Results results) {
  double largest = in[0].magnitude();
  double smallest = in[0].low > 0 ? in[0].low : std::max(-in[0].high, 0.0);
  results[0] = increasing(smallest * smallest, times(largest, largest), in[0].typical * in[0].typical * std::sqrt(3.0));
  results[0].least = in[0].least * in[0].least;
  results[0].peak = in[0].peak * in[0].peak;
  results[0].typicalPeak = in[0].typicalPeak * in[0].typicalPeak;
}
static void waveOf(const Operands &in, Results results) { results[0] = increasing(-1, 1, std::sqrt(0.5)); }
static void powOf(const Operands &in, Results results) {
  double exponent = in.attributes.GetDouble("exponent");
  double ends[] = {std::pow(in[0].low, exponent), std::pow(in[0].high, exponent)};
  if (in[0].low > 0) {
    results[0] = increasing(std::min(ends[0], ends[1]), std::max(ends[0], ends[1]), std::pow(in[0].typical, exponent));
    return;
  }
  if (exponent < 0 || std::floor(exponent) != exponent)
    return;
  double largest = std::pow(in[0].magnitude(), exponent);
  bool isEven = std::fmod(exponent, 2) == 0;
  results[0] = increasing(isEven ? 0 : -largest, largest, std::pow(in[0].typical, exponent));
}
static void absOf(const Operands &in, Results results) {
  Range y = in[0];
  y.low = std::max({in[0].low, -in[0].high, 0.0});
  y.high = in[0].magnitude();
  results[0] = y;
}
static void negOf(const Operands &in, Results results) {
  Range y = in[0];
  y.low = -in[0].high;
  y.high = -in[0].low;
  results[0] = y;
}
static void handOn(const Operands &in, Results results) { results[0] = in[0]; }
// Integers wrap around, or saturate.
static void castOf(const Operands &in, Results results) {
  if (isa<mlir::FloatType>(cast<mlir::RankedTensorType>(in.op->getResult(0).getType()).getElementType()))
    results[0] = in[0];
}
static void clampOf(const Operands &in, Results results) {
  double low = in.attributes.GetDouble("minimum"), high = in.attributes.GetDouble("maximum");
  results[0] = Range::between(std::clamp(in[0].low, low, high), std::clamp(in[0].high, low, high));
  results[0].typical = in[0].typical;
}

static void addOrSub(const Operands &in, Results results, bool subtracts) {
  Range a = broadcast(in[0], in.shape(0), in.resultShape()), b = broadcast(in[1], in.shape(1), in.resultShape());
  Range y = subtracts ? Range::between(a.low - b.high, a.high - b.low) : Range::between(a.low + b.low, a.high + b.high);
  y.rowNorm = a.rowNorm + b.rowNorm;
  y.columnNorm = a.columnNorm + b.columnNorm;
  y.sampleNorm = a.sampleNorm + b.sampleNorm;
  y.norm = a.norm + b.norm;
  y.typical = inSquares(a.typical, b.typical);
  y.typicalPeak = std::max({a.typicalPeak, b.typicalPeak, inSquares(a.typicalPeak, b.typicalPeak)});
  results[0] = y;
}
static void addOf(const Operands &in, Results results) { addOrSub(in, results, false); }
static void subOf(const Operands &in, Results results) { addOrSub(in, results, true); }

static void sumN(const Operands &in, Results results) {
  Range y = in[0];
  double sizes = in[0].magnitude();
  for (size_t i = 1; i < in.size(); ++i) {
    const Range &x = in[i];
    y.low += x.low;
    y.high += x.high;
    y.rowNorm += x.rowNorm;
    y.columnNorm += x.columnNorm;
    y.sampleNorm += x.sampleNorm;
    y.norm += x.norm;
    y.typical = inSquares(y.typical, x.typical);
    y.typicalPeak = inSquares(y.typicalPeak, x.typicalPeak);
    sizes += x.magnitude();
  }
  y.least = y.peak = 0;
  widen(y, sizes * sumError(double(in.size())));
  results[0] = y;
}

static void mulOf(const Operands &in, Results results) {
  Range a = broadcast(in[0], in.shape(0), in.resultShape()), b = broadcast(in[1], in.shape(1), in.resultShape());
  Range y = product(a, b);
  y.rowNorm = std::min(times(a.rowNorm, b.magnitude()), times(b.rowNorm, a.magnitude()));
  y.columnNorm = std::min(times(a.columnNorm, b.magnitude()), times(b.columnNorm, a.magnitude()));
  y.sampleNorm = std::min(times(a.sampleNorm, b.magnitude()), times(b.sampleNorm, a.magnitude()));
  y.norm = std::min(times(a.norm, b.magnitude()), times(b.norm, a.magnitude()));
  y.least = a.least * b.least;
  y.typical = a.typical * b.typical;
  y.typicalPeak = std::max(a.typicalPeak * b.typical, b.typicalPeak * a.typical);
  results[0] = y;
}

/// The reciprocals of \p b, which does not reach zero.
static Range reciprocal(const Range &b) {
  Range r = Range::between(1 / b.high, 1 / b.low);
  r.typical = 1 / b.typical;
  return r;
}
static bool excludesZero(const Range &b) { return b.low > 0 || b.high < 0; }

// What is to be expected does not wait for a proof that no divisor is zero.
static void divOf(const Operands &in, Results results) {
  if (excludesZero(in[1]))
    results[0] = product(in[0], reciprocal(in[1]));
  results[0].typical = in[0].typical / in[1].typical;
}
static void divGrad(const Operands &in, Results results) {
  if (excludesZero(in[2])) {
    Range db = product(product(in[0], in[1]), reciprocal(in[2]));
    results[0] = Range::between(-db.high, -db.low);
  }
  results[0].typical = in[0].typical * in[1].typical / in[2].typical;
}

static void addScalar(const Operands &in, Results results) {
  double value = in.attributes.GetDouble("value");
  Range y = Range::between(in[0].low + value, in[0].high + value);
  y.typical = inSquares(in[0].typical, value);
  y.typicalPeak = in[0].typicalPeak + std::abs(value);
  results[0] = y;
}
static void mulScalar(const Operands &in, Results results) {
  double value = in.attributes.GetDouble("value"), size = std::abs(value);
  Range y = multiplied(in[0], value, value, size);
  y.least = in[0].least * size;
  y.peak = in[0].peak * size;
  results[0] = y;
}

static void maximumOf(const Operands &in, Results results) {
  results[0] = hull(in[0], in[1]);
  results[0].low = std::max(in[0].low, in[1].low);
}
static void minimumOf(const Operands &in, Results results) {
  results[0] = hull(in[0], in[1]);
  results[0].high = std::min(in[0].high, in[1].high);
}
static void whereOf(const Operands &in, Results results) { results[0] = hull(in[1], in[2]); }
/// mpc.where and mpc.select: the first operand is the condition.
static void dropoutOf(const Operands &in, Results results) {
  double kept = 1 - in.attributes.GetDouble("p");
  Range y = multiplied(in[0], 0, 1 / kept, 1 / std::sqrt(kept));
  y.least = in[0].least / kept;
  y.typicalPeak = in[0].typicalPeak / kept;
  results[0] = y;
}
static void scaledLoss(const Operands &in, Results results) { mulOf(in, results); }
static void truth(const Operands &, Results results) { results[0] = Range::between(0, 1); }

void addElementwiseTransfers(TransferTable &table) {
  const std::pair<StringRef, Transfer> known[] = {{"relu", relu},
                                                  {"leaky_relu", leakyRelu},
                                                  {"silu", silu},
                                                  {"gelu", gelu},
                                                  {"hard_swish", hardSwish},
                                                  {"sigmoid", sigmoidOf},
                                                  {"tanh", tanhOf},
                                                  {"erf", erfOf},
                                                  {"exp", expOf},
                                                  {"log", logOf},
                                                  {"log1p", log1pOf},
                                                  {"sqrt", sqrtOf},
                                                  {"floor", floorOf},
                                                  {"square", squareOf},
                                                  {"sin", waveOf},
                                                  {"cos", waveOf},
                                                  {"pow", powOf},
                                                  {"abs", absOf},
                                                  {"neg", negOf},
                                                  {"cast", castOf},
                                                  {"stop_gradient", handOn},
                                                  {"clamp", clampOf},
                                                  {"add", addOf},
                                                  {"sub", subOf},
                                                  {"sum_n", sumN},
                                                  {"mul", mulOf},
                                                  {"div", divOf},
                                                  {"div_grad", divGrad},
                                                  {"add_scalar", addScalar},
                                                  {"mul_scalar", mulScalar},
                                                  {"maximum", maximumOf},
                                                  {"minimum", minimumOf},
                                                  {"where", whereOf},
                                                  {"select", whereOf},
                                                  {"dropout", dropoutOf},
                                                  {"scale_loss", scaledLoss},
                                                  {"equal", truth},
                                                  {"not_equal", truth},
                                                  {"greater", truth},
                                                  {"greater_equal", truth},
                                                  {"less", truth},
                                                  {"less_equal", truth},
                                                  {"logical_and", truth},
                                                  {"logical_or", truth},
                                                  {"logical_not", truth}};
  for (auto [name, transfer] : known)
    table[name] = transfer;
}

} // namespace mpc::ranges
