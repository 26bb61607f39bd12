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

std::string elementName(Value V) { return typeText(elementOf(V)); }

std::string mnemonicOf(Operation *Op) { return Op->getName().stripDialect().str(); }

std::string floatingTypes(ValueRange Values) {
  SmallVector<std::string> Names;
  for (Value V : Values)
    if (std::string Name = elementName(V); isFloating(V) && !llvm::is_contained(Names, Name))
      Names.push_back(Name);
  return llvm::join(Names, " ");
}

absl::StatusOr<func::FuncOp> findFunction(const Module &Target, const std::string &Name) {
  ModuleOp Root = Target.impl().module.get();
  auto Function = Root.lookupSymbol<func::FuncOp>(Name);
  if (!Function || Function.isExternal())
    return absl::NotFoundError(absl::StrCat("the module has no function @", Name, " with a body"));
  return Function;
}

FunctionFacts::FunctionFacts(func::FuncOp Function) : Function(Function) {
  // Other blocks are unreachable: nothing branches. There, definitions may form cycles.
  for (Operation &Op : Function.getBody().front())
    Op.walk<WalkOrder::PreOrder>([&](Operation *Nested) { visit(Nested); });
}

void FunctionFacts::visit(Operation *Op) {
  if (auto Cast = dyn_cast<CastOp>(Op))
    return Casts.push_back(Cast);
  bool Computes = isa<AmpOpInterface>(Op) && !isa<ConstantOp>(Op) && !has<Property::Movement>(Op);
  if (!Computes || (llvm::none_of(Op->getOperands(), isFloating) && llvm::none_of(Op->getResults(), isFloating)))
    return;
  Operations.push_back(Op);
  Ordinals[Op] = Operations.size();
}

// "update, with unscale and clip_by_norm": what the optimizer has taken over.
static std::string updateReason(OptimizerOpInterface Update) {
  SmallVector<StringRef> Folded;
  if (Update.getUnscale())
    Folded.push_back("unscale");
  if (!Update.getMaxNorm().isZero())
    Folded.push_back("clip_by_norm");
  return Folded.empty() ? "update" : "update, with " + llvm::join(Folded, " and ");
}

bool FunctionFacts::isBackward(Operation *Op) { return isBackwardOp(Op) || has<Property::GradientOp>(Op); }

bool FunctionFacts::isUpdate(Operation *Op) const {
  return !precisionOf(Op) && (Op->hasTrait<StateUpdate>() || has<Property::FollowsUpdate>(Op));
}

bool FunctionFacts::followsForward(Operation *Op) const { return !precisionOf(Op) && !isUpdate(Op) && isBackward(Op); }

std::string FunctionFacts::reasonOf(Operation *Op) const {
  if (PrecisionAttr Precision = precisionOf(Op))
    return ReasonText(Precision);
  if (auto Update = dyn_cast<OptimizerOpInterface>(Op))
    return updateReason(Update);
  if (isUpdate(Op))
    return "update";
  return followsForward(Op) ? "backward" : "";
}

// The value that data movement moves, through all of it; any other value itself.
static Value sourceOf(Value V) {
  while (V.getDefiningOp() && has<Property::Movement>(V.getDefiningOp()))
    V = V.getDefiningOp()->getOperand(0);
  return V;
}

static bool feedsLoss(CastOp Cast) {
  return llvm::any_of(Cast.getY().getUsers(), [](Operation *User) {
    auto Amp = dyn_cast<AmpOpInterface>(User);
    return Amp && Amp.getAmpClass() == AmpClass::Loss;
  });
}

CastKind FunctionFacts::kindOf(CastOp Cast) const {
  Type From = getElementTypeOrSelf(Cast.getX().getType()), To = getElementTypeOrSelf(Cast.getY().getType());
  Value Source = sourceOf(Cast.getX());
  if (Cast.getUser())
    return CastKind::kUser;
  if (!isa<FloatType>(From) || !isa<FloatType>(To))
    return CastKind::kOther;
  if (From != To && widensExactly(From, To))
    return feedsLoss(Cast) ? CastKind::kLoss : CastKind::kWidening;
  if (Operation *Producer = Source.getDefiningOp())
    return isBackward(Producer) ? CastKind::kGradient : CastKind::kActivation;
  return isInput(roleOf(Source)) ? CastKind::kInput : CastKind::kWeight;
}

CastRecord FunctionFacts::recordOf(CastOp Cast) const {
  return {kindOf(Cast), elementName(Cast.getX()), elementName(Cast.getY()), bytesOf(Cast.getX()) + bytesOf(Cast.getY()),
          describe(sourceOf(Cast.getX()))};
}

std::string FunctionFacts::describe(Value V) const {
  if (auto Argument = dyn_cast<BlockArgument>(V)) {
    StringRef Name = nameOf(V);
    return Name.empty() ? "argument " + std::to_string(Argument.getArgNumber()) : Name.str();
  }
  std::string Path = pathOf(V.getDefiningOp()).str();
  return mnemonicOf(V.getDefiningOp()) + (Path.empty() ? "" : " in " + Path);
}

} // namespace mpc::compiler
