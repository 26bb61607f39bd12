#include "tools/mpc-opt/operation_table.h"

#include <map>

#include "compiler/dialect/dialect.h"
#include "llvm/ADT/StringExtras.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace mpc::opt {

// An operation without operands and attributes: enough to ask what is known by its name.
static OwningOpRef<Operation*> WithoutOperands(RegisteredOperationName name, MLIRContext& context) {
  OperationState state(UnknownLoc::get(&context), name);
  state.addRegion();
  return Operation::create(state);
}

static std::string ImagesText(ImageOpInterface op) {
  auto numbers = [](ArrayRef<unsigned> positions) {
    return llvm::join(llvm::map_range(positions, [](unsigned position) { return std::to_string(position); }), "+");
  };
  return "images " + numbers(op.getImageOperands()) + " -> " + numbers(op.getImageResults());
}

static std::string Line(Operation* op) {
  SmallVector<std::string> facts;
  if (auto amp = dyn_cast<AmpOpInterface>(op)) facts.push_back(std::string("amp ") + ampClassName(amp.getAmpClass()));
  auto add = [&](bool holds, StringRef name) {
    if (holds) facts.push_back(name.str());
  };
  add(op->hasTrait<OpTrait::AlwaysSpeculatableImplTrait>(), "pure");
  add(op->hasTrait<StateUpdate>(), "state update");
  add(op->hasTrait<OpTrait::ConstantLike>(), "constant");
  add(isa<ViewLikeOpInterface>(op), "view");
  add(isa<DifferentiableOpInterface>(op), "differentiable");
  add(isa<FusibleOpInterface>(op), "fusible");
  add(isa<OptimizerOpInterface>(op), "optimizer");
  add(isa<MatrixWorkOpInterface>(op), "matrix work");
  add(isa<ActivationOpInterface>(op), "takes activation");
  add(isa<ReductionOpInterface>(op), "reduction");
  add(isa<LinesOpInterface>(op), "lines along an axis");
  add(isa<AxesOpInterface>(op), "moves along axes");
  if (const std::optional<Phase> phase = ownPhase(op)) facts.push_back("phase " + std::string(PhaseName(*phase)));
  if (auto images = dyn_cast<ImageOpInterface>(op)) facts.push_back(ImagesText(images));
  SmallVector<std::string> properties;
  for (unsigned number = 0; number <= getMaxEnumValForProperty(); ++number)
    if (const auto property = static_cast<Property>(number); has(op, property))
      properties.push_back(stringifyProperty(property).str());
  std::string line = op->getName().stripDialect().str() + ": " + (facts.empty() ? "-" : llvm::join(facts, ", "));
  if (!properties.empty()) line += "; " + llvm::join(properties, ", ");
  return line + "\n";
}

std::string OperationTable() {
  MLIRContext context;
  context.loadDialect<MpcDialect>();
  std::map<std::string, std::string> lines;
  for (RegisteredOperationName name : context.getRegisteredOperationsByDialect(MpcDialect::getDialectNamespace()))
    lines[name.getStringRef().str()] = Line(WithoutOperands(name, context).get());
  std::string table;
  for (const auto& [name, line] : lines) table += line;
  return table;
}

}  // namespace mpc::opt
