// Data movement: the same elements in other places.
#include "compiler/dialect/ranges/interval.h"
#include "kernels/known_attributes.h"

using namespace llvm;

namespace mpc::ranges {

using Results = MutableArrayRef<Range>;

static void reshape(const Operands &in, Results results) {
  ArrayRef<int64_t> from = in.shape(0), to = in.resultShape();
  Range y = in[0];
  forgetNorms(y);
  y.norm = in[0].norm;
  if (!from.empty() && !to.empty()) {
    if (from.back() == to.back())
      y.rowNorm = in[0].rowNorm;
    if (from.front() == to.front())
      y.sampleNorm = in[0].sampleNorm;
  }
  results[0] = y;
}

static void transpose(const Operands &in, Results results) {
  std::vector<int64_t> permutation = in.attributes.GetInts("permutation");
  int64_t rank = int64_t(permutation.size());
  Range y = in[0];
  forgetNorms(y);
  y.norm = in[0].norm;
  // The norm of the operand's fibres along an axis.
  auto along = [&](int64_t axis) {
    return axis == rank - 1 ? in[0].rowNorm : axis == rank - 2 ? in[0].columnNorm : Range::kUnbounded;
  };
  if (rank >= 1 && permutation[0] == 0)
    y.sampleNorm = in[0].sampleNorm;
  if (rank >= 1)
    y.rowNorm = along(permutation[size_t(rank - 1)]);
  if (rank >= 2)
    y.columnNorm = along(permutation[size_t(rank - 2)]);
  results[0] = y;
}

static void broadcastTo(const Operands &in, Results results) {
  results[0] = broadcast(in[0], in.shape(0), in.resultShape());
}

static void concat(const Operands &in, Results results) {
  int64_t rank = int64_t(in.resultShape().size()), axis = in.attributes.GetInt("axis", 0);
  if (axis < 0)
    axis += rank;
  Range y = in[0];
  double squares = y.norm * y.norm, samples = y.sampleNorm, rows = y.rowNorm;
  for (size_t i = 1; i < in.size(); ++i) {
    y = hull(y, in[i]);
    y.peak = std::max(y.peak, in[i].peak);
    squares += in[i].norm * in[i].norm;
    samples = std::max(samples, in[i].sampleNorm);
    rows = std::max(rows, in[i].rowNorm);
  }
  forgetNorms(y);
  y.norm = std::sqrt(squares);
  if (axis == 0 && rank >= 2)
    y.sampleNorm = samples;
  if (axis < rank - 1)
    y.rowNorm = rows;
  results[0] = y;
}

// Parts of a tensor have no larger norms.
static void parts(const Operands &in, Results results) {
  for (Range &result : results) {
    result = in[0];
    result.peak = 0;
  }
}

static void pad(const Operands &in, Results results) {
  double value = in.attributes.GetDouble("value");
  Range y = hull(in[0], Range::exactly(value));
  y.peak = in[0].peak;
  y.least = value == 0 ? in[0].least : std::min(in[0].least, std::abs(value));
  y.typical = std::max(in[0].typical, std::abs(value));
  if (value == 0)
    takeNorms(y, in[0]);
  results[0] = y;
}

static void gather(const Operands &in, Results results) {
  if (mayLeave(in[1], in.extent(0, 0)))
    return;
  Range y = in[0];
  forgetNorms(y);
  if (in.shape(0).size() >= 2)
    y.rowNorm = in[0].rowNorm;
  y.peak = 0;
  results[0] = y;
}
/// How often a row is expected to be taken, of \p rows that \p taken are taken of. A frequent one is taken more often.
static double expectedUses(double taken, double rows) { return std::max(1.0, std::sqrt(taken * taken / rows)); }

static void gatherGrad(const Operands &in, Results results) {
  double taken = in.count(1), rows = double(in.resultShape()[0]);
  Range dtable = sumOf(withZero(in[0]), taken);
  limit(dtable, times(in[0].norm, std::sqrt(taken)) * (1 + sumError(taken)));
  dtable.typical = in[0].typical * expectedUses(taken, rows);
  results[0] = dtable;
}
static void scatterAdd(const Operands &in, Results results) {
  double taken = in.count(1);
  Range added = sumOf(withZero(in[2]), taken);
  Range y = Range::between(in[0].low + added.low, in[0].high + added.high);
  widen(y, y.magnitude() * sumError(taken));
  y.typical = inSquares(in[0].typical, in[2].typical * expectedUses(taken, in.extent(0, 0)));
  results[0] = y;
}
static void oneHot(const Operands &in, Results results) {
  double on = in.attributes.Get(attribute::kOn), off = in.attributes.GetDouble("off");
  Range y = hull(Range::exactly(on), Range::exactly(off));
  y.least = std::min(on == 0 ? Range::kUnbounded : std::abs(on), off == 0 ? Range::kUnbounded : std::abs(off));
  results[0] = y;
}

static void ordered(const Operands &in, Results results) {
  results[0] = in[0];
  results[0].peak = 0;
  // Their place along another axis does not change.
  if (in.shape(0).size() > 1)
    forgetNorms(results[0]);
}
static void topKGrad(const Operands &in, Results results) {
  results[0] = withZero(in[0]);
  results[0].least = in[0].least;
  results[0].norm = in[0].norm;
  results[0].typical = in[0].typical;
  results[0].typicalPeak = in[0].typicalPeak;
}

static double processesOf(const Operands &in) { return double(in.attributes.Get(attribute::kProcesses)); }
static void sumOverProcesses(const Operands &in, Results results) {
  Range y = sumOf(in[0], processesOf(in));
  y.typical = in[0].typical * processesOf(in);
  results[0] = y;
}
static void gatherOverProcesses(const Operands &in, Results results) {
  Range y = in[0];
  forgetNorms(y);
  y.peak = 0;
  results[0] = y;
}
static void wait(const Operands &in, Results results) { results[0] = in[0]; }

void addMovementTransfers(TransferTable &table) {
  const std::pair<StringRef, Transfer> known[] = {{"reshape", reshape},
                                                  {"transpose", transpose},
                                                  {"broadcast_to", broadcastTo},
                                                  {"concat", concat},
                                                  {"split", parts},
                                                  {"slice", parts},
                                                  {"pad", pad},
                                                  {"gather", gather},
                                                  {"gather_grad", gatherGrad},
                                                  {"scatter_add", scatterAdd},
                                                  {"one_hot", oneHot},
                                                  {"sort", ordered},
                                                  {"top_k", ordered},
                                                  {"top_k_grad", topKGrad},
                                                  {"all_reduce", sumOverProcesses},
                                                  {"all_reduce_start", sumOverProcesses},
                                                  {"all_reduce_wait", wait},
                                                  {"all_gather", gatherOverProcesses}};
  for (auto [name, transfer] : known)
    table[name] = transfer;
}

} // namespace mpc::ranges
