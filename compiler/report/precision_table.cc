#include "compiler/report/precision_table.h"

#include "absl/strings/str_cat.h"
#include "compiler/dialect/matrix_work.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/state_attributes.h"
#include "compiler/module/module_impl.h"
#include "compiler/report/function_facts.h"
#include "compiler/report/unfused_function.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <limits>

using namespace mlir;

namespace mpc::compiler {

namespace {

void addArgument(PrecisionTable &table, Value argument) {
  Role own = roleOf(argument).value_or(Role::kInput);
  auto group = llvm::find_if(table.arguments, [&](const ArgumentGroup &known) { return known.role == own; });
  if (group == table.arguments.end())
    group = table.arguments.insert(group, {own, 0, 0, 0});
  auto tensor = dyn_cast<RankedTensorType>(argument.getType());
  ++group->count;
  group->elements += tensor && tensor.hasStaticShape() ? tensor.getNumElements() : 0;
  group->bytes += bytesOf(argument);
}

// The compute type is that of the first operand: a norm beside the tensors may be f64 although they are not.
std::string computeType(Operation *op) {
  return llvm::any_of(op->getOperands().take_front(1),
                      [](Value v) { return getElementTypeOrSelf(v.getType()).isF64(); })
             ? "f64"
             : "f32";
}

/// \p bytes of one run in \p runs of them; at most the largest number.
std::int64_t bytesOfRuns(std::int64_t bytes, std::int64_t runs) {
  std::uint64_t all = llvm::SaturatingMultiply(std::uint64_t(bytes), std::uint64_t(runs));
  return std::int64_t(std::min(all, std::uint64_t(std::numeric_limits<std::int64_t>::max())));
}

PrecisionRow rowOf(Operation *op, const FunctionFacts &facts, const UnfusedFunction &function) {
  PrecisionRow row{mnemonicOf(op),
                   pathOf(op).str(),
                   floatingTypes(op->getOperands()),
                   floatingTypes(op->getResults()),
                   computeType(op),
                   facts.reasonOf(op),
                   facts.isBackward(op),
                   facts.isUpdate(op),
                   0,
                   matrixFlops(op),
                   false};
  for (Value v : op->getOperands())
    row.bytes += bytesOf(v);
  for (Value v : op->getResults())
    row.bytes += bytesOf(v);
  row.loop = function.loopOf(op);
  row.runs = function.runsOf(op);
  row.bytes = bytesOfRuns(row.bytes, row.runs);
  row.flops *= double(row.runs);
  row.low = row.flops > 0 && isLow(elementOf(op->getOperand(0)));
  return row;
}

} // namespace

std::string PrecisionRow::types() const {
  return absl::StrCat(inputs.empty() ? "-" : inputs, " -> ", outputs.empty() ? "-" : outputs);
}

const char *DirectionName(bool backward, bool update) {
  if (update)
    return "update";
  return backward ? "backward" : "forward";
}

std::int64_t PrecisionTable::bytes() const {
  std::int64_t bytes = 0;
  for (const PrecisionRow &row : rows)
    bytes += row.bytes;
  return bytes;
}

double PrecisionTable::matrix_flops() const {
  double flops = 0;
  for (const PrecisionRow &row : rows)
    flops += row.flops;
  return flops;
}

double PrecisionTable::low_matrix_flops() const {
  double flops = 0;
  for (const PrecisionRow &row : rows)
    flops += row.low ? row.flops : 0;
  return flops;
}

absl::StatusOr<PrecisionTable> TabulatePrecision(const Module &target, const std::string &name) {
  absl::StatusOr<UnfusedFunction> function = UnfusedFunction::create(target, name);
  if (!function.ok())
    return function.status();
  FunctionFacts facts(function->get());
  PrecisionTable table;
  table.function = name;
  for (BlockArgument argument : function->get().getArguments())
    addArgument(table, argument);
  for (Operation *op : facts.getOperations())
    table.rows.push_back(rowOf(op, facts, *function));
  for (CastOp cast : facts.getCasts()) {
    table.cast_records.push_back(facts.recordOf(cast));
    CastRecord &record = table.cast_records.back();
    record.bytes = bytesOfRuns(record.bytes, function->runsOf(cast));
    table.casts.add(table.cast_records.back());
  }
  return table;
}

std::vector<std::string> FunctionNames(const Module &target) {
  ModuleOp root = target.impl().module.get();
  std::vector<std::string> names;
  for (auto function : root.getOps<func::FuncOp>())
    if (!function.isExternal())
      names.push_back(function.getSymName().str());
  return names;
}

absl::StatusOr<std::string> MainFunction(const Module &target) {
  std::vector<std::string> names = FunctionNames(target);
  for (StringRef step : {"train_step", "predict"})
    if (llvm::is_contained(names, step))
      return step.str();
  if (names.empty())
    return absl::NotFoundError("the module has no function with a body");
  // Functions that others call often stand in front of them.
  ModuleOp root = target.impl().module.get();
  auto publicName =
      llvm::find_if(names, [&](StringRef name) { return root.lookupSymbol<func::FuncOp>(name).isPublic(); });
  return publicName == names.end() ? names.front() : *publicName;
}

} // namespace mpc::compiler
