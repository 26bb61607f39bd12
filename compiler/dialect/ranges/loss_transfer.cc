// Losses and their derivatives, in which the loss scale comes into the backward pass.
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/ranges/interval.h"
#include "kernels/known_attributes.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace llvm;

namespace mpc::ranges {

using Results = MutableArrayRef<Range>;

static bool hasFloats(const Operands &in, unsigned operand) {
  return isa<mlir::FloatType>(cast<mlir::RankedTensorType>(in.op->getOperand(operand).getType()).getElementType());
}

static LossReduction reductionOf(const Operands &in) { return in.attributes.Get(attribute::kReduction); }

/// The loss whose \p terms parts lie in the interval of \p each.
static Range reduced(const Operands &in, const Range &each, double terms) {
  Range loss = each;
  if (reductionOf(in) == LossReduction::kSum) {
    loss = sumOf(each, terms);
    loss.typical = each.typical * terms;
  }
  widen(loss, each.magnitude() * sumError(terms));
  return loss;
}

/// The cotangent of one of \p terms parts.
static Range cotangent(const Operands &in, double terms) {
  bool isMean = reductionOf(in) == LossReduction::kMean;
  double share = isMean ? 1 / terms : 1;
  Range each = Range::between(in[0].low * share, in[0].high * share);
  each.typical = in[0].typical * share;
  return each;
}

/// The classes of \p logits, the rows of which may be longer.
static double classesOf(const Operands &in, unsigned logits) {
  return double(in.attributes.GetInt("classes", in.shape(logits).back()));
}

static void crossEntropy(const Operands &in, Results results) {
  const Range &logits = in[0];
  double classes = classesOf(in, 0), rows = in.count(0) / in.extent(0, -1);
  bool areProbabilities = hasFloats(in, 1);
  if (!areProbabilities && mayLeave(in[1], classes))
    return;
  double labels = areProbabilities ? classes * std::max(1.0, in[1].magnitude()) : 1;
  double largest = times(logits.high - logits.low + std::log(classes), labels);
  Range each = Range::between(labels > 1 ? -largest : 0, largest);
  widen(each, logits.magnitude() * 1e-5 * labels);
  each.typical = std::log(classes) + logits.typical;
  results[0] = reduced(in, each, rows);
  results[1] = Range::between(logits.low, logits.high + std::log(classes));
  widen(results[1], (logits.magnitude() + 1) * 1e-5);
  results[1].typical = inSquares(std::log(classes), logits.typical);
}

static void crossEntropyGrad(const Operands &in, Results results) {
  const Range &logits = in[1];
  double classes = classesOf(in, 1), rows = in.count(1) / in.extent(1, -1);
  Range each = cotangent(in, rows);
  double size = each.magnitude();
  Range dlogits;
  if (!hasFloats(in, 2) && mayLeave(in[2], classes))
    return;
  if (hasFloats(in, 2)) {
    dlogits = product(each, Range::between(-(classes + 1), classes + 1));
    dlogits = multiplied(dlogits, -in[2].magnitude(), in[2].magnitude(), 1);
  } else {
    // Probabilities without the label's 1: their sizes sum to at most 2, none is above 1.
    dlogits = product(each, Range::between(-1.001, 1.001));
    dlogits.rowNorm = size * std::sqrt(2.0) * 1.001;
    dlogits.norm = dlogits.rowNorm * std::sqrt(rows);
    // The label has at most the probability that the widest logits allow.
    double others = (classes - 1) * std::exp(logits.low - logits.high);
    double smallest = std::min(std::abs(each.low), std::abs(each.high));
    if (each.low > 0 || each.high < 0)
      dlogits.peak = smallest * others / (1 + others) * 0.99;
  }
  dlogits.typical = each.typical * std::sqrt((1 - 1 / classes) / classes);
  dlogits.typicalPeak = each.typical;
  results[0] = dlogits;
}

static Range difference(const Range &a, const Range &b) {
  Range d = Range::between(a.low - b.high, a.high - b.low);
  d.typical = inSquares(a.typical, b.typical);
  return d;
}
static void mse(const Operands &in, Results results) {
  Range d = difference(in[0], in[1]);
  Range each = Range::between(0, times(d.magnitude(), d.magnitude()));
  each.typical = d.typical * d.typical;
  results[0] = reduced(in, each, in.count(0));
}
static void mseGrad(const Operands &in, Results results) {
  Range each = cotangent(in, in.count(1)), d = difference(in[1], in[2]);
  results[0] = product(each, Range::between(2 * d.low, 2 * d.high));
  results[0].typical = 2 * each.typical * d.typical;
}

static void bceWithLogits(const Operands &in, Results results) {
  double labels = 1 + in[1].magnitude(), largest = times(in[0].magnitude(), labels) + 0.7;
  Range each = Range::between(in[1].low >= 0 && in[1].high <= 1 ? 0 : -largest, largest);
  each.typical = 0.7 + in[0].typical;
  results[0] = reduced(in, each, in.count(0));
}
static void bceWithLogitsGrad(const Operands &in, Results results) {
  Range each = cotangent(in, in.count(1));
  results[0] = product(each, Range::between(-in[2].high, 1.001 - in[2].low));
  results[0].typical = each.typical * 0.6;
  results[0].typicalPeak = each.typical;
}

void addLossTransfers(TransferTable &table) {
  table["softmax_cross_entropy"] = crossEntropy;
  table["softmax_cross_entropy_grad"] = crossEntropyGrad;
  table["mse"] = mse;
  table["mse_grad"] = mseGrad;
  table["bce_with_logits"] = bceWithLogits;
  table["bce_with_logits_grad"] = bceWithLogitsGrad;
}

} // namespace mpc::ranges
