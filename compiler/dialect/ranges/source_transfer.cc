// What values begin from: constants, random numbers, counts; and the table of all operations.
#include "compiler/dialect/ranges/interval.h"
#include "kernels/known_attributes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;

namespace mpc::ranges {

using Results = MutableArrayRef<Range>;

static double valueOf(const APFloat &element) {
  APFloat wide = element;
  bool losesInfo;
  wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  return wide.convertToDouble();
}

/// The range of the elements of \p elements: of one alone where all are equal.
template <typename Elements, typename Value> static Range rangeOf(const Elements &elements, const Value &value) {
  Range range = Range::between(Range::kUnbounded, -Range::kUnbounded);
  range.least = Range::kUnbounded;
  double squares = 0, count = 0;
  for (const auto &element : elements) {
    double x = value(element);
    if (!std::isfinite(x))
      return Range();
    range.low = std::min(range.low, x);
    range.high = std::max(range.high, x);
    if (x != 0)
      range.least = std::min(range.least, std::abs(x));
    squares += x * x;
    ++count;
  }
  if (count == 0)
    return Range();
  range.peak = range.typicalPeak = range.magnitude();
  range.typical = std::sqrt(squares / count);
  return range;
}

static void constant(const Operands &in, Results results) {
  auto elements = in.op->getAttrOfType<mlir::DenseElementsAttr>("value");
  if (!elements)
    return;
  bool isFloat = isa<mlir::FloatType>(elements.getElementType());
  auto ofInteger = [](const APInt &element) {
    return element.getBitWidth() == 1 ? double(element.getZExtValue()) : double(element.getSExtValue());
  };
  if (elements.isSplat())
    results[0] = Range::exactly(isFloat ? valueOf(elements.getSplatValue<APFloat>())
                                        : ofInteger(elements.getSplatValue<APInt>()));
  else
    results[0] =
        isFloat ? rangeOf(elements.getValues<APFloat>(), valueOf) : rangeOf(elements.getValues<APInt>(), ofInteger);
  if (!std::isfinite(results[0].magnitude()))
    results[0] = Range();
}

/// No draw of the generator is further from the mean than this, in deviations. It is sqrt(2 log 2^32): Box and Muller's
/// method reads uniform numbers of 32 bits.
static constexpr double kFurthestNormal = 6.661;
/// The chance that a fibre of normal numbers has a larger norm than its bound. The bound of n numbers is
/// sqrt(n) + sqrt(2 log(1 / chance)): norms are 1-Lipschitz functions of them (Borell 1975; Tsirelson, Ibragimov and
/// Sudakov 1976).
static constexpr double kLogOfChance = 13 * 2.302585;

static void random(const Operands &in, Results results) {
  double a = in.attributes.GetDouble("a"), b = in.attributes.Get(attribute::kUpper);
  std::optional<Distribution> distribution = ParseEnum<Distribution>(in.attributes.GetString("distribution"));
  if (!distribution)
    return;
  if (distribution == Distribution::kUniform) {
    results[0] = Range::between(std::min(a, b), std::max(a, b));
    results[0].typical = std::sqrt((a * a + a * b + b * b) / 3);
    results[0].typicalPeak = results[0].magnitude();
    return;
  }
  double deviation = std::abs(b);
  double furthest = (distribution == Distribution::kNormal ? kFurthestNormal : 2.0) * deviation;
  Range y = Range::between(a - furthest, a + furthest);
  y.typical = inSquares(a, deviation);
  ArrayRef<int64_t> shape = in.resultShape();
  if (distribution == Distribution::kNormal && !shape.empty()) {
    double count = in.resultCount();
    auto norm = [&](double terms) {
      double fibres = count / std::max(terms, 1.0);
      return std::abs(a) * std::sqrt(terms) +
             deviation * (std::sqrt(terms) + std::sqrt(2 * (kLogOfChance + std::log(fibres))));
    };
    y.rowNorm = norm(double(shape.back()));
    if (shape.size() >= 2)
      y.columnNorm = norm(double(shape[shape.size() - 2]));
    y.sampleNorm = norm(count / double(shape.front()));
    y.norm = norm(count);
  }
  results[0] = y;
}

static void iota(const Operands &in, Results results) {
  double start = double(in.attributes.GetInt("start")), step = double(in.attributes.GetInt("step", 1));
  ArrayRef<int64_t> shape = in.resultShape();
  int64_t axis = in.attributes.Get(attribute::kLastAxis);
  double extent = shape.empty() ? 1 : double(shape[size_t(axis < 0 ? axis + int64_t(shape.size()) : axis)]);
  double last = start + step * (extent - 1);
  results[0] = Range::between(std::min(start, last), std::max(start, last));
  results[0].least = 1;
  results[0].typical = results[0].magnitude();
}

// An unscaled gradient is what it is without a scale. It is f32, and read by optimizers alone.
static void unscale(const Operands &in, Results results) {
  if (in[1].low <= 0)
    return;
  results[0] = product(in[0], Range::between(1 / in[1].high, 1 / in[1].low));
  results[0].typical = in[0].typical / in[1].typical;
}

static void addSources(TransferTable &table) {
  table["constant"] = constant;
  table["random"] = random;
  table["iota"] = iota;
  table["unscale"] = unscale;
}
void addSourceTransfers(TransferTable &table) { addSources(table); }

static const TransferTable &allTransfers() {
  static const TransferTable table = [] {
    TransferTable all;
    addElementwiseTransfers(all);
    addGradientTransfers(all);
    addProductTransfers(all);
    addConvolutionTransfers(all);
    addPoolingTransfers(all);
    addNormTransfers(all);
    addSoftmaxTransfers(all);
    addLossTransfers(all);
    addMovementTransfers(all);
    addReductionTransfers(all);
    addSourceTransfers(all);
    return all;
  }();
  return table;
}

Transfer transferOf(StringRef name) { return allTransfers().lookup(name); }

bool isLeftUnbounded(StringRef name) {
  static const StringSet<> known{
      // Optimizers, and what else moves state.
      "sgd", "momentum", "adam", "adam_weight_decay", "adamw", "lamb", "increment", "accumulate_gradient",
      "next_micro_step", "batch_norm_running_update", "update_loss_scale",
      // Checks and norms of gradients.
      "all_finite", "check_finite", "merge_checks", "all_of", "any_of", "global_norm", "sum_of_squares", "clip_by_norm",
      "tensor_statistics",
      // Integers.
      "argmax", "int_add", "int_sub", "int_mul", "int_floor_div", "int_mod", "int_maximum", "int_minimum", "int_neg",
      "int_abs", "all_reduce_max", "process_rank",
      // Operations that hold or call others: the analysis looks into those that have a region.
      "fusion", "guarded_update", "yield", "value_and_grad", "backward", "custom_vjp", "repeat"};
  return known.contains(name);
}

} // namespace mpc::ranges
