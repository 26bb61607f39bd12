#include "compiler/report/function_facts.h"

#include "absl/strings/str_cat.h"
#include "compiler/analysis/phases.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/state_attributes.h"
#include "compiler/module/module_impl.h"
#include "compiler/report/precision_reason.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace mpc::compiler {

std::string elementName(Value v) { return typeText(elementOf(v)); }

std::string mnemonicOf(Operation *op) { return op->getName().stripDialect().str(); }

std::string floatingTypes(ValueRange values) {
  SmallVector<std::string> names;
  for (Value v : values)
    if (std::string name = elementName(v); isFloating(v) && !llvm::is_contained(names, name))
      names.push_back(name);
  return llvm::join(names, " ");
}

absl::StatusOr<func::FuncOp> findFunction(const Module &target, const std::string &name) {
  ModuleOp root = target.impl().module.get();
  auto function = root.lookupSymbol<func::FuncOp>(name);
  if (!function || function.isExternal())
    return absl::NotFoundError(absl::StrCat("the module has no function @", name, " with a body"));
  return function;
}

FunctionFacts::FunctionFacts(func::FuncOp function) : function(function) {
  // Other blocks are unreachable: nothing branches. There, definitions may form cycles.
  for (Operation &op : function.getBody().front())
    op.walk<WalkOrder::PreOrder>([&](Operation *nested) { visit(nested); });
}

void FunctionFacts::visit(Operation *op) {
  if (auto cast = dyn_cast<CastOp>(op))
    return casts.push_back(cast);
  bool computes = isa<AmpOpInterface>(op) && !isa<ConstantOp>(op) && !has<Property::Movement>(op);
  if (!computes || (llvm::none_of(op->getOperands(), isFloating) && llvm::none_of(op->getResults(), isFloating)))
    return;
  operations.push_back(op);
  ordinals[op] = operations.size();
}

// "update, with unscale and clip_by_norm": what the optimizer has taken over.
static std::string updateReason(OptimizerOpInterface update) {
  SmallVector<StringRef> folded;
  if (update.getUnscale())
    folded.push_back("unscale");
  if (!update.getMaxNorm().isZero())
    folded.push_back("clip_by_norm");
  return folded.empty() ? "update" : "update, with " + llvm::join(folded, " and ");
}

bool FunctionFacts::isBackward(Operation *op) { return isBackwardOp(op) || has<Property::GradientOp>(op); }

bool FunctionFacts::isUpdate(Operation *op) const {
  return !precisionOf(op) && (op->hasTrait<StateUpdate>() || has<Property::FollowsUpdate>(op));
}

bool FunctionFacts::followsForward(Operation *op) const { return !precisionOf(op) && !isUpdate(op) && isBackward(op); }

std::string FunctionFacts::reasonOf(Operation *op) const {
  if (PrecisionAttr precision = precisionOf(op))
    return ReasonText(precision);
  if (auto update = dyn_cast<OptimizerOpInterface>(op))
    return updateReason(update);
  if (isUpdate(op))
    return "update";
  return followsForward(op) ? "backward" : "";
}

// The value that data movement moves, through all of it; any other value itself.
static Value sourceOf(Value v) {
  while (v.getDefiningOp() && has<Property::Movement>(v.getDefiningOp()))
    v = v.getDefiningOp()->getOperand(0);
  return v;
}

static bool feedsLoss(CastOp cast) {
  return llvm::any_of(cast.getY().getUsers(), [](Operation *user) {
    auto amp = dyn_cast<AmpOpInterface>(user);
    return amp && amp.getAmpClass() == AmpClass::Loss;
  });
}

CastKind FunctionFacts::kindOf(CastOp cast) const {
  Type from = getElementTypeOrSelf(cast.getX().getType()), to = getElementTypeOrSelf(cast.getY().getType());
  Value source = sourceOf(cast.getX());
  if (cast.getUser())
    return CastKind::User;
  if (!isa<FloatType>(from) || !isa<FloatType>(to))
    return CastKind::Other;
  if (from != to && widensExactly(from, to))
    return feedsLoss(cast) ? CastKind::Loss : CastKind::Widening;
  if (Operation *producer = source.getDefiningOp())
    return isBackward(producer) ? CastKind::Gradient : CastKind::Activation;
  return isInput(roleOf(source)) ? CastKind::Input : CastKind::Weight;
}

CastRecord FunctionFacts::recordOf(CastOp cast) const {
  Value source = sourceOf(cast.getX());
  CastRecord record{kindOf(cast), elementName(cast.getX()), elementName(cast.getY()),
                    bytesOf(cast.getX()) + bytesOf(cast.getY()), describe(source)};
  if (Operation *producer = source.getDefiningOp()) {
    record.op = mnemonicOf(producer);
    record.path = pathOf(producer).str();
    record.backward = isBackward(producer);
    record.update = isUpdate(producer);
  } else {
    std::optional<Role> own = roleOf(source);
    record.op = RoleName(own.value_or(Role::kInput));
    record.path = isInput(own) ? "" : nameOf(source).str();
  }
  return record;
}

std::string FunctionFacts::describe(Value v) const {
  if (auto argument = dyn_cast<BlockArgument>(v)) {
    StringRef name = nameOf(v);
    return name.empty() ? "argument " + std::to_string(argument.getArgNumber()) : name.str();
  }
  std::string path = pathOf(v.getDefiningOp()).str();
  return mnemonicOf(v.getDefiningOp()) + (path.empty() ? "" : " in " + path);
}

} // namespace mpc::compiler
