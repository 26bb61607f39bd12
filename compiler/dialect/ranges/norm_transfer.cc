// Norms. The normalised values of n elements have the norm sqrt(n) or less, so none of them is larger. The derivative
// of a norm takes parts of the cotangent away, and so makes it no longer.
#include "compiler/dialect/ranges/interval.h"
#include "kernels/known_attributes.h"

using namespace llvm;

namespace mpc::ranges {

using Results = MutableArrayRef<Range>;

/// Statistics are rounded to f32: what they make is off by less than this, relatively.
static constexpr double kSlack = 1.01;

/// How the elements of x are divided into the groups whose statistics a norm takes.
struct Groups {
  double size;          ///< elements of a group
  bool areRows;         ///< a group is a row
  bool areWithinSample; ///< a group lies in one sample
};

static Groups channelGroups(const Operands &in, size_t x, size_t gamma) {
  return {in.count(x) / in.count(gamma), false, false};
}
static Groups rowGroups(const Operands &in, size_t x) { return {in.extent(x, -1), true, true}; }
static Groups sampleGroups(const Operands &in, size_t x) {
  return {in.count(x) / in.extent(x, 0) / double(in.attributes.GetInt("groups", 1)), false, true};
}

/// Results: y, and the statistics behind it from \p statistics on: mean, variance where \p hasVariance, 1 / deviation.
static void normalise(const Operands &in, Results results, const Groups &groups, bool hasVariance) {
  const Range &x = in[0], &gamma = in[1], &beta = in[2];
  double epsilon = in.attributes.Get(attribute::kEpsilon), root = std::sqrt(groups.size);
  double largest = std::min(root, times(x.high - x.low, 1 / std::sqrt(epsilon))) * kSlack;
  Range y = product(Range::between(-largest, largest), gamma);
  y.low += beta.low;
  y.high += beta.high;
  double count = in.count(0), betas = times(beta.magnitude(), std::sqrt(groups.size));
  if (groups.areRows)
    y.rowNorm = times(gamma.magnitude(), root) * kSlack + betas;
  if (groups.areWithinSample) {
    double perSample = std::sqrt(count / in.extent(0, 0));
    y.sampleNorm = times(gamma.magnitude() * kSlack + beta.magnitude(), perSample);
  }
  y.norm = times(gamma.magnitude() * kSlack + beta.magnitude(), std::sqrt(count));
  y.typical = inSquares(gamma.typical, beta.typical);
  results[0] = y;

  results[1] = Range::between(x.low, x.high);
  results[1].typical = 0;
  widen(results[1], x.magnitude() * sumError(groups.size));
  Range &inverse = results[hasVariance ? 3 : 2];
  inverse = Range::between(0, kSlack / std::sqrt(epsilon));
  inverse.typical = 1 / std::sqrt(x.typical * x.typical + epsilon);
  if (!hasVariance)
    return;
  double width = x.high - x.low;
  results[2] = Range::between(0, times(width, width) / 4 * kSlack + times(x.magnitude(), x.magnitude()) * 1e-5);
  results[2].typical = x.typical * x.typical;
}
static void batchNorm(const Operands &in, Results results) { normalise(in, results, channelGroups(in, 0, 1), true); }
static void layerNorm(const Operands &in, Results results) { normalise(in, results, rowGroups(in, 0), false); }
static void groupNorm(const Operands &in, Results results) { normalise(in, results, sampleGroups(in, 0), false); }

/// Operands: dy, x, gamma, mean, 1 / deviation.
static void normaliseGrad(const Operands &in, Results results, const Groups &groups) {
  const Range &dy = in[0], &gamma = in[2], &inverse = in[4];
  double root = std::sqrt(groups.size), factor = times(gamma.magnitude(), inverse.magnitude()) * kSlack;
  double groupNorm = groups.areRows ? dy.rowNorm : groups.areWithinSample ? dy.sampleNorm : dy.norm;
  double largest = times(factor, std::min(groupNorm, times(dy.magnitude(), 2 + root)));
  Range dx = Range::between(-largest, largest);
  if (groups.areRows)
    dx.rowNorm = times(factor, dy.rowNorm);
  if (groups.areWithinSample)
    dx.sampleNorm = times(factor, dy.sampleNorm);
  dx.norm = times(factor, dy.norm);
  dx.typical = gamma.typical * inverse.typical * dy.typical;
  dx.typicalPeak = gamma.typical * inverse.typical * dy.typicalPeak;
  results[0] = dx;

  double terms = in.count(0) / in.count(2);
  double ofGamma = times(std::min(dy.norm * std::sqrt(in.count(0)), times(dy.magnitude(), terms * root)), kSlack);
  results[1] = Range::between(-ofGamma, ofGamma);
  results[1].typical = terms * dy.typical;
  results[2] = sumOf(dy, terms);
  results[2].typical = terms * dy.typical;
}
static void batchNormGrad(const Operands &in, Results results) { normaliseGrad(in, results, channelGroups(in, 1, 2)); }
static void layerNormGrad(const Operands &in, Results results) { normaliseGrad(in, results, rowGroups(in, 1)); }
static void groupNormGrad(const Operands &in, Results results) { normaliseGrad(in, results, sampleGroups(in, 1)); }

/// The range of 1 / sqrt(variance + epsilon).
static Range inverseOf(const Range &variance, double epsilon) {
  Range inverse = Range::between(0, Range::kUnbounded);
  if (variance.low + epsilon > 0)
    inverse = Range::between(1 / std::sqrt(variance.high + epsilon), kSlack / std::sqrt(variance.low + epsilon));
  inverse.typical = 1 / std::sqrt(variance.typical + epsilon);
  return inverse;
}

/// Operands: x, gamma, beta, mean.
static void normaliseBy(const Range &inverse, const Operands &in, Results results) {
  const Range &x = in[0], &gamma = in[1], &beta = in[2], &mean = in[3];
  Range y = product(product(Range::between(x.low - mean.high, x.high - mean.low), inverse), gamma);
  y.low += beta.low;
  y.high += beta.high;
  widen(y, y.magnitude() * 1e-3);
  y.typical = inSquares(gamma.typical * x.typical * inverse.typical, beta.typical);
  results[0] = y;
}
static void batchNormApply(const Operands &in, Results results) { normaliseBy(in[4], in, results); }
static void batchNormInfer(const Operands &in, Results results) {
  normaliseBy(inverseOf(in[4], in.attributes.Get(attribute::kEpsilon)), in, results);
}
static void batchNormInferGrad(const Operands &in, Results results) {
  const Range &dy = in[0], &x = in[1], &gamma = in[2], &mean = in[3];
  Range inverse = inverseOf(in[4], in.attributes.Get(attribute::kEpsilon));
  double factor = times(gamma.magnitude(), inverse.magnitude()) * kSlack;
  results[0] = multiplied(dy, -factor, factor, gamma.typical * inverse.typical);
  double terms = in.count(0) / in.count(2);
  Range normal = product(Range::between(x.low - mean.high, x.high - mean.low), inverse);
  results[1] = sumOf(product(dy, normal), terms);
  widen(results[1], results[1].magnitude() * 1e-2);
  results[1].typical = terms * dy.typical;
  results[2] = sumOf(dy, terms);
  results[2].typical = terms * dy.typical;
}

void addNormTransfers(TransferTable &table) {
  const std::pair<StringRef, Transfer> known[] = {{"batch_norm_train", batchNorm},
                                                  {"batch_norm_train_grad", batchNormGrad},
                                                  {"batch_norm_apply", batchNormApply},
                                                  {"batch_norm_infer", batchNormInfer},
                                                  {"batch_norm_infer_grad", batchNormInferGrad},
                                                  {"layer_norm", layerNorm},
                                                  {"layer_norm_grad", layerNormGrad},
                                                  {"group_norm", groupNorm},
                                                  {"group_norm_grad", groupNormGrad}};
  for (auto [name, transfer] : known)
    table[name] = transfer;
}

} // namespace mpc::ranges
