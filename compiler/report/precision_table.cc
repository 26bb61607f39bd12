#include "compiler/report/precision_table.h"

#include "compiler/dialect/matrix_work.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/state_attributes.h"
#include "compiler/module/module_impl.h"
#include "compiler/report/function_facts.h"
#include "compiler/report/unfused_function.h"

using namespace mlir;

namespace mpc::compiler {

namespace {

void addArgument(PrecisionTable &Table, Value Argument) {
  Role Own = roleOf(Argument).value_or(Role::kInput);
  auto Group = llvm::find_if(Table.arguments, [&](const ArgumentGroup &Known) { return Known.role == Own; });
  if (Group == Table.arguments.end())
    Group = Table.arguments.insert(Group, {Own, 0, 0, 0});
  auto Tensor = dyn_cast<RankedTensorType>(Argument.getType());
  ++Group->count;
  Group->elements += Tensor && Tensor.hasStaticShape() ? Tensor.getNumElements() : 0;
  Group->bytes += bytesOf(Argument);
}

// The compute type is that of the first operand: a norm beside the tensors may be f64 although they are not.
std::string computeType(Operation *Op) {
  return llvm::any_of(Op->getOperands().take_front(1),
                      [](Value V) { return getElementTypeOrSelf(V.getType()).isF64(); })
             ? "f64"
             : "f32";
}

PrecisionRow rowOf(Operation *Op, const FunctionFacts &Facts) {
  PrecisionRow Row{mnemonicOf(Op),
                   pathOf(Op).str(),
                   floatingTypes(Op->getOperands()),
                   floatingTypes(Op->getResults()),
                   computeType(Op),
                   Facts.reasonOf(Op),
                   Facts.isBackward(Op),
                   Facts.isUpdate(Op),
                   0,
                   matrixFlops(Op),
                   false};
  for (Value V : Op->getOperands())
    Row.bytes += bytesOf(V);
  for (Value V : Op->getResults())
    Row.bytes += bytesOf(V);
  Row.low = Row.flops > 0 && isLow(elementOf(Op->getOperand(0)));
  return Row;
}

} // namespace

std::int64_t PrecisionTable::bytes() const {
  std::int64_t Bytes = 0;
  for (const PrecisionRow &Row : rows)
    Bytes += Row.bytes;
  return Bytes;
}

double PrecisionTable::matrix_flops() const {
  double Flops = 0;
  for (const PrecisionRow &Row : rows)
    Flops += Row.flops;
  return Flops;
}

double PrecisionTable::low_matrix_flops() const {
  double Flops = 0;
  for (const PrecisionRow &Row : rows)
    Flops += Row.low ? Row.flops : 0;
  return Flops;
}

absl::StatusOr<PrecisionTable> TabulatePrecision(const Module &Target, const std::string &Name) {
  absl::StatusOr<UnfusedFunction> Function = UnfusedFunction::of(Target, Name);
  if (!Function.ok())
    return Function.status();
  FunctionFacts Facts(Function->get());
  PrecisionTable Table;
  Table.function = Name;
  for (BlockArgument Argument : Function->get().getArguments())
    addArgument(Table, Argument);
  for (Operation *Op : Facts.operations())
    Table.rows.push_back(rowOf(Op, Facts));
  for (CastOp Cast : Facts.casts())
    Table.casts.add(Facts.recordOf(Cast));
  return Table;
}

std::vector<std::string> FunctionNames(const Module &Target) {
  ModuleOp Root = Target.impl().module.get();
  std::vector<std::string> Names;
  for (auto Function : Root.getOps<func::FuncOp>())
    if (!Function.isExternal())
      Names.push_back(Function.getSymName().str());
  return Names;
}

absl::StatusOr<std::string> MainFunction(const Module &Target) {
  std::vector<std::string> Names = FunctionNames(Target);
  for (StringRef Step : {"train_step", "predict"})
    if (llvm::is_contained(Names, Step))
      return Step.str();
  if (Names.empty())
    return absl::NotFoundError("the module has no function with a body");
  // Functions that others call often stand in front of them.
  ModuleOp Root = Target.impl().module.get();
  auto Public = llvm::find_if(Names, [&](StringRef Name) { return Root.lookupSymbol<func::FuncOp>(Name).isPublic(); });
  return Public == Names.end() ? Names.front() : *Public;
}

} // namespace mpc::compiler
