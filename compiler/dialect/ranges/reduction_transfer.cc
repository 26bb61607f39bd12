// Sums, means, products and extrema along axes.
#include "compiler/dialect/ranges/interval.h"

using namespace llvm;

namespace mpc::ranges {

using Results = MutableArrayRef<Range>;

/// Elements of the operand for one of the result.
static double termsOf(const Operands &in) { return in.count(0) / in.resultCount(); }

/// The norm of what one element of the result reads.
static double normOfTerms(const Operands &in) {
  std::vector<int64_t> axes = in.attributes.GetInts("axes");
  int64_t rank = int64_t(in.shape(0).size());
  if (axes.size() == 1 && axes[0] == rank - 1)
    return in[0].rowNorm;
  if (axes.size() == 1 && axes[0] == rank - 2)
    return in[0].columnNorm;
  return in[0].norm;
}

static void reduceSum(const Operands &in, Results results) {
  double terms = termsOf(in);
  Range y = sumOf(in[0], terms);
  limit(y, times(normOfTerms(in), std::sqrt(terms)) * (1 + sumError(terms)));
  y.norm = times(in[0].norm, std::sqrt(terms)) * (1 + sumError(terms));
  // Terms may have one sign, as those of a bias's gradient that all samples move alike.
  y.typical = terms * in[0].typical;
  y.typicalPeak = std::sqrt(terms) * std::max(in[0].typicalPeak, std::sqrt(terms) * in[0].typical);
  results[0] = y;
}
static void reduceMean(const Operands &in, Results results) {
  double terms = termsOf(in);
  Range y = Range::between(in[0].low, in[0].high);
  widen(y, in[0].magnitude() * sumError(terms));
  y.norm = times(in[0].norm, 1 / std::sqrt(terms)) * (1 + sumError(terms));
  y.typical = in[0].typical;
  results[0] = y;
}
static void reduceProd(const Operands &in, Results results) {
  double terms = termsOf(in), largest = std::pow(in[0].magnitude(), terms) * (1 + sumError(terms));
  double smallest = in[0].low > 0 ? std::pow(in[0].low, terms) * (1 - sumError(terms)) : -largest;
  results[0] = Range::between(std::min(smallest, largest), largest);
  results[0].typical = std::pow(in[0].typical, terms);
}
static void reduceProdGrad(const Operands &in, Results results) {
  double terms = in.count(1) / in.count(0);
  double largest = std::pow(in[1].magnitude(), std::max(terms - 1, 0.0)) * (1 + sumError(terms));
  results[0] = product(in[0], Range::between(-largest, largest));
  results[0].typical = in[0].typical * std::pow(in[1].typical, terms - 1);
}
static void extremum(const Operands &in, Results results) {
  Range y = in[0];
  y.peak = 0;
  forgetNorms(y);
  y.norm = in[0].norm;
  y.typical = in[0].typicalPeak;
  results[0] = y;
}
static void extremumGrad(const Operands &in, Results results) {
  results[0] = withZero(in[0]);
  double terms = in.count(1) / in.count(0);
  results[0].norm = in[0].norm * std::sqrt(terms);
  results[0].typical = in[0].typical / std::sqrt(terms);
  results[0].typicalPeak = in[0].typicalPeak;
}
static void cumsum(const Operands &in, Results results) {
  double terms = in.extent(0, in.attributes.GetInt("axis", -1));
  results[0] = sumOf(withZero(in[0]), terms);
  results[0].typical = terms * in[0].typical;
}

void addReductionTransfers(TransferTable &table) {
  table["reduce_sum"] = reduceSum;
  table["reduce_mean"] = reduceMean;
  table["reduce_prod"] = reduceProd;
  table["reduce_prod_grad"] = reduceProdGrad;
  table["reduce_max"] = table["reduce_min"] = extremum;
  table["reduce_max_grad"] = extremumGrad;
  table["cumsum"] = cumsum;
}

} // namespace mpc::ranges
