#include "passes/amp/precision_assignment.h"

#include "passes/amp/label_slice.h"

using namespace mlir;

namespace mpc {

// A type that AMP may change: f64 is for reference graphs, integers are never touched.
static bool isAssignable(Type Type) {
  mlir::Type Element = getElementTypeOrSelf(Type);
  return Element.isF32() || Element.isF16() || Element.isBF16();
}

static bool isLow(Type Element) { return Element && (Element.isF16() || Element.isBF16()); }

static Type elementOf(Value V) { return getElementTypeOrSelf(V.getType()); }

static ScopeAttr scopeOf(Operation *Op) { return Op->getAttrOfType<ScopeAttr>(ScopeAttrName); }

static std::string typeName(Type Type) {
  std::string Text;
  llvm::raw_string_ostream(Text) << Type;
  return Text;
}

static bool isUserCast(Operation *Op) {
  auto Cast = dyn_cast_or_null<CastOp>(Op);
  return Cast && Cast.getUser();
}

// Arithmetic and movement between two pieces of matrix work.
static bool isPointwiseOrReduction(AmpClass Class) {
  return Class == AmpClass::Clear || Class == AmpClass::Infer || Class == AmpClass::Deny;
}

PrecisionAssignment::PrecisionAssignment(ModuleOp Module, const PrecisionOptions &Options)
    : Options(Options), F32(Float32Type::get(Module.getContext())) {
  collectNetwork(Module);
  collectDifferentiated(Module);
  collectLabels(Module);
  Module.walk([&](Operation *Op) { decide(Op); });
  // Users decide whether a norm's y is low, so norms are folded once every other operation is decided. What a norm
  // reads depends on nothing: x comes as it is stored.
  for (Operation *Norm : FoldedNorms)
    foldNorm(Norm, Decisions[Norm]);
}

const OpPrecision *PrecisionAssignment::lookup(Operation *Op) const {
  auto It = Decisions.find(Op);
  return It == Decisions.end() ? nullptr : &It->second;
}

// Without any scope (hand-written IR) every function but the training steps themselves is a network.
void PrecisionAssignment::collectNetwork(ModuleOp Module) {
  bool AnyScope = false;
  Module.walk([&](Operation *Op) {
    ScopeAttr Scope = scopeOf(Op);
    AnyScope |= bool(Scope);
    if (Scope && Scope.getNetwork())
      Network.insert(Op);
  });
  if (AnyScope)
    return;
  for (auto Function : Module.getOps<func::FuncOp>()) {
    bool IsStep = Function.walk([](ValueAndGradOp) { return WalkResult::interrupt(); }).wasInterrupted();
    if (!IsStep)
      Function.walk([&](Operation *Op) { Network.insert(Op); });
  }
}

// A loss written by hand inside the network ends in the differentiated value: the arithmetic behind it (square, mean),
// back to the last matrix work or norm, is f32.
void PrecisionAssignment::collectDifferentiated(ModuleOp Module) {
  Module.walk([&](ValueAndGradOp Step) {
    auto Callee = Module.lookupSymbol<func::FuncOp>(Step.getCallee());
    if (!Callee || Callee.isExternal())
      return;
    auto Return = dyn_cast<func::ReturnOp>(Callee.getBody().front().getTerminator());
    SmallVector<std::pair<Operation *, bool>> Worklist;
    if (Return && Return.getNumOperands() > 0)
      Worklist.push_back({Return.getOperand(0).getDefiningOp(), true});
    while (!Worklist.empty()) {
      auto [Op, GivesValue] = Worklist.pop_back_val();
      auto Amp = dyn_cast_or_null<AmpOpInterface>(Op);
      if (!Amp || !Network.contains(Op) || isa<CastOp>(Op))
        continue;
      if (GivesValue)
        DifferentiatedValue.insert(Op);
      bool New = Differentiated.insert(Op).second;
      if (!isPointwiseOrReduction(Amp.getAmpClass()) || !New)
        continue;
      // Data movement hands the question on to what it moves.
      bool Moves = isa<ReshapeOp, TransposeOp, BroadcastToOp, StopGradientOp, NegOp>(Op);
      for (Value Operand : Op->getOperands()) {
        auto Producer = dyn_cast_or_null<AmpOpInterface>(Operand.getDefiningOp());
        if (Producer && isAssignable(Operand.getType()) && isPointwiseOrReduction(Producer.getAmpClass()))
          Worklist.push_back({Producer, GivesValue && Moves});
        else if (Producer && GivesValue && Moves)
          Worklist.push_back({Producer, true});
      }
    }
  });
}

// Labels never pass through a low type, whatever the network does to them before its loss.
void PrecisionAssignment::collectLabels(ModuleOp Module) {
  Module.walk([&](AmpOpInterface Loss) {
    if (Loss.getAmpClass() != AmpClass::Loss || Loss->getNumOperands() < 2)
      return;
    llvm::SetVector<Operation *> Slice = labelSlice(Loss->getOperand(1));
    Labels.insert(Slice.begin(), Slice.end());
  });
}

bool PrecisionAssignment::followsUserWidening(Operation *Op) const {
  return llvm::any_of(Op->getOperands(), [&](Value Operand) {
    Operation *Producer = Operand.getDefiningOp();
    if (!Producer || !isAssignable(Operand.getType()))
      return false;
    return FollowsUserCast.contains(Producer) || (isUserCast(Producer) && elementOf(Operand).isF32());
  });
}

void PrecisionAssignment::assignTypes(Operation *Op, Type Element, OpPrecision &Precision) const {
  auto Amp = cast<AmpOpInterface>(Op);
  auto Assign = [&](auto Values, ArrayRef<unsigned> StayF32, SmallVectorImpl<Type> &Types) {
    Types.clear();
    for (auto [Index, V] : llvm::enumerate(Values)) {
      bool Pinned = llvm::is_contained(StayF32, Index);
      Types.push_back(!isAssignable(V.getType()) ? elementOf(V) : Pinned ? F32 : Element);
    }
  };
  Assign(Op->getOperands(), Amp.getF32Operands(), Precision.Operands);
  Assign(Op->getResults(), Amp.getF32Results(), Precision.Results);
  // Comparisons read exact values: a cast would only change what they compare.
  if (llvm::none_of(Op->getResults(), [](Value V) { return isa<FloatType>(elementOf(V)); }))
    llvm::fill(Precision.Operands, Type());
}

std::string PrecisionAssignment::levelText() const {
  return Options.Level == AmpLevel::O0 ? "level O0" : Options.Level == AmpLevel::O2 ? "level O2" : "level O3";
}

void PrecisionAssignment::decideLevel(Operation *Op, OpPrecision &Precision) {
  AmpClass Class = cast<AmpOpInterface>(Op).getAmpClass();
  if (Options.Level == AmpLevel::O0) {
    // What tracing gave: f32, or low where a user's cast made every operand low.
    llvm::append_range(Precision.Operands, llvm::map_range(Op->getOperands(), elementOf));
    llvm::append_range(Precision.Results, llvm::map_range(Op->getResults(), elementOf));
    Precision.Reason = levelText();
    return;
  }
  if (Class == AmpClass::Norm && Options.KeepNormsF32) {
    assignTypes(Op, F32, Precision);
    Precision.Operands[0] = Type();
    Precision.Reason = "norm kept f32";
    FoldedNorms.push_back(Op);
    return;
  }
  assignTypes(Op, Options.Low, Precision);
  Precision.Reason = levelText();
}

// ToFloat. Returns false where the operation does not obey it.
bool PrecisionAssignment::applyPin(Operation *Op, AmpClass Class, Type Pin, OpPrecision &Precision) {
  ScopeAttr Scope = scopeOf(Op);
  auto Remark = [&](const Twine &Text) {
    if (RemarkedPaths.insert(StringAttr::get(Op->getContext(), Scope.getPath())).second)
      Remarks.push_back({Op, ("'" + Scope.getPath() + "': " + Text).str()});
  };
  if (isLow(Pin) && (Class == AmpClass::Loss || DifferentiatedValue.contains(Op))) {
    Remark("ToFloat(" + typeName(Pin) + ") is ignored: a loss is f32 at every level");
    return false;
  }
  assignTypes(Op, Pin, Precision);
  Precision.Reason = "ToFloat " + typeName(Pin);
  bool LowAtLevel = Options.Level != AmpLevel::O0 && Network.contains(Op) && Class != AmpClass::Loss &&
                    !(Class == AmpClass::Norm && Options.KeepNormsF32) && !Labels.contains(Op) &&
                    !Differentiated.contains(Op);
  Type OfLevel = LowAtLevel ? Type(Options.Low) : F32;
  if (OfLevel != Pin)
    Remark("ToFloat(" + typeName(Pin) + ") beats " + levelText() + " (" + typeName(OfLevel) + ")");
  return true;
}

void PrecisionAssignment::decide(Operation *Op) {
  auto Amp = dyn_cast<AmpOpInterface>(Op);
  if (!Amp || Op->hasAttr(AmpReasonAttrName))
    return;
  OpPrecision Precision;
  Precision.Compute = llvm::any_of(Op->getOperandTypes(), [](Type T) { return getElementTypeOrSelf(T).isF64(); })
                          ? Type(Float64Type::get(Op->getContext()))
                          : F32;
  if (isUserCast(Op)) {
    Precision.Operands.push_back(Type());
    Precision.Results.push_back(elementOf(Op->getResult(0)));
    Precision.Reason = "user cast";
    Decisions[Op] = std::move(Precision);
    return;
  }
  AmpClass Class = Amp.getAmpClass();
  if (Class == AmpClass::Exempt)
    return;
  bool InNetwork = Network.contains(Op);
  ScopeAttr Scope = scopeOf(Op);
  Type Pin = Scope ? Scope.getPin() : Type();
  if (Pin && applyPin(Op, Class, Pin, Precision)) {
    Decisions[Op] = std::move(Precision);
    return;
  }
  bool F32Pinned = true;
  if (Class == AmpClass::Loss) {
    Precision.Reason = "loss";
  } else if (!InNetwork) {
    return;
  } else if (Labels.contains(Op)) {
    Precision.Reason = "label";
  } else if (Differentiated.contains(Op)) {
    Precision.Reason = "differentiated value";
  } else if (Class != AmpClass::Allow && Options.Level != AmpLevel::O0 && followsUserWidening(Op)) {
    Precision.Reason = "user cast";
    FollowsUserCast.insert(Op);
  } else {
    F32Pinned = false;
    decideLevel(Op, Precision);
  }
  if (F32Pinned)
    assignTypes(Op, F32, Precision);
  Decisions[Op] = std::move(Precision);
}

// Whether the user takes the value low without a loss of its own: low users, and users that take what is stored.
bool PrecisionAssignment::readsLow(OpOperand &Use) const {
  const OpPrecision *User = lookup(Use.getOwner());
  if (!User)
    return false;
  if (auto Cast = dyn_cast<CastOp>(Use.getOwner()))
    return elementOf(Cast.getY()) == Options.Low;
  Type Wanted = User->Operands[Use.getOperandNumber()];
  return !Wanted || Wanted == Options.Low;
}

void PrecisionAssignment::foldNorm(Operation *Op, OpPrecision &Precision) {
  Value Y = Op->getResult(0);
  if (!Y.use_empty() && llvm::all_of(Y.getUses(), [&](OpOperand &Use) { return readsLow(Use); }))
    Precision.Results[0] = Options.Low;
  const OpPrecision *Producer = nullptr;
  if (Operation *Definition = Op->getOperand(0).getDefiningOp())
    Producer = lookup(Definition);
  Type Stored = elementOf(Op->getOperand(0));
  if (Producer)
    Stored = Producer->Results[cast<OpResult>(Op->getOperand(0)).getResultNumber()];
  if (isLow(Stored) || isLow(Precision.Results[0]))
    Precision.Reason = "norm kept f32 (folded)";
}

} // namespace mpc
