#include "compiler/report/range_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/ranges/transfer.h"
#include "compiler/dialect/state_attributes.h"
#include "compiler/module/module_impl.h"
#include "compiler/ranges/loss_scale.h"
#include "compiler/report/function_facts.h"

#include <cmath>
#include <set>

using namespace mlir;

namespace mpc::compiler {

static constexpr size_t kChainLength = 8;

static ranges::Range toRange(const KnownRange &known) {
  ranges::Range range = ranges::Range::between(known.low, known.high);
  range.rowNorm = known.row_norm;
  range.columnNorm = known.column_norm;
  range.sampleNorm = known.sample_norm;
  range.norm = known.norm;
  if (known.typical)
    range.typical = *known.typical;
  return range;
}

static ranges::Assumptions toAssumptions(ModuleOp root, const RangeAssumptions &given) {
  ranges::Assumptions assumptions;
  if (auto init = root.lookupSymbol<func::FuncOp>("init_state"))
    assumptions.state = ranges::initialState(init);
  for (const auto &[name, known] : given.state)
    assumptions.state[name] = toRange(known);
  if (given.inputs)
    assumptions.inputs = toRange(*given.inputs);
  assumptions.lossScale =
      given.loss_scale > 0 ? ranges::Range::exactly(given.loss_scale) : ranges::Range::between(1, 0x1p126);
  return assumptions;
}

static absl::StatusOr<func::FuncOp> find(const Module &module, const std::string &name) {
  absl::StatusOr<func::FuncOp> function = findFunction(module, name);
  if (!function.ok())
    return function.status();
  if (!function->getBody().hasOneBlock())
    return absl::FailedPreconditionError(absl::StrCat("ranges: @", name, " has control flow"));
  bool asks = false;
  function->walk([&](Operation *op) { asks |= has<Property::GradientRequest>(op); });
  if (asks)
    return absl::FailedPreconditionError(
        absl::StrCat("ranges: @", name, " asks for gradients that autodiff has not made yet; choose the stage grad"));
  return function;
}

static RangeVerdict verdictOf(ranges::Verdict verdict) {
  switch (verdict) {
  case ranges::Verdict::Cannot:
    return RangeVerdict::Cannot;
  case ranges::Verdict::May:
    return RangeVerdict::May;
  case ranges::Verdict::Will:
    return RangeVerdict::Will;
  }
  return RangeVerdict::May;
}

static std::string describe(Operation *op) {
  llvm::StringRef path = pathOf(op);
  return absl::StrCat(mnemonicOf(op), path.empty() ? "" : " in ", path.str());
}

/// "[-6.5, 6.5]".
static std::string interval(double low, double high) { return absl::StrFormat("[%.4g, %.4g]", low, high); }

static RangeRow rowOf(const ranges::RangeAnalysis &analysis, const ranges::LowTensor &tensor) {
  Operation *op = tensor.value.getDefiningOp();
  RangeRow row;
  row.op = mnemonicOf(op);
  row.path = pathOf(op).str();
  if (isa<CastOp>(op)) {
    Operation *source = op->getOperand(0).getDefiningOp();
    row.of = (source ? pathOf(source) : mpc::nameOf(op->getOperand(0))).str();
  }
  row.type = elementName(tensor.value);
  row.result = cast<OpResult>(tensor.value).getResultNumber();
  row.backward = isMarkedBackward(op);
  row.scaled = analysis.rangeOf(tensor.value).isScaled;
  row.low = tensor.exact.low;
  row.high = tensor.exact.high;
  row.peak = tensor.exact.peak;
  row.expected = tensor.exact.typicalPeak;
  row.overflow = verdictOf(tensor.overflow);
  row.underflow = verdictOf(tensor.underflow);
  if (row.overflow != RangeVerdict::Will)
    return row;
  for (Operation *link : analysis.chainOf(tensor.value, kChainLength)) {
    const ranges::Range &range = link == op ? tensor.exact : analysis.rangeOf(link->getResult(0));
    row.chain.push_back(absl::StrCat(describe(link), ": ", elementName(link->getResult(0)), " in ",
                                     interval(range.low, range.high),
                                     range.peak > 0 ? absl::StrFormat(", one at least %.4g in size", range.peak) : ""));
  }
  return row;
}

absl::StatusOr<RangeTable> TabulateRanges(const Module &module, const std::string &name,
                                          const RangeAssumptions &given) {
  absl::StatusOr<func::FuncOp> function = find(module, name);
  if (!function.ok())
    return function.status();
  ranges::Assumptions assumptions = toAssumptions(module.impl().module.get(), given);
  ranges::RangeAnalysis analysis(*function, assumptions);

  RangeTable table;
  table.function = name;
  table.loss_scale = given.loss_scale;
  for (const ranges::LowTensor &tensor : analysis.lowTensors())
    table.rows.push_back(rowOf(analysis, tensor));

  std::set<std::string> unbounded;
  function->walk([&](Operation *op) {
    llvm::StringRef operation = op->getName().stripDialect();
    if (isa<MpcDialect>(op->getDialect()) && !ranges::transferOf(operation) && !ranges::isLeftUnbounded(operation))
      unbounded.insert(operation.str());
  });
  table.unbounded.assign(unbounded.begin(), unbounded.end());

  assumptions.lossScale = ranges::Range::exactly(1);
  ranges::RangeAnalysis unscaled(*function, assumptions);
  ranges::DerivedScale derived = ranges::deriveLossScale(unscaled);
  table.derived_scale = derived.scale;
  table.derived_from = derived.largest ? describe(derived.largest.getDefiningOp()) : "";
  table.derived_peak = derived.peak;
  table.unknown = derived.unknown;
  return table;
}

} // namespace mpc::compiler
