// Applies the precision assignment: result types, casts at uses, and the reasons.
//
//   %y = mpc.matmul %x, %w : ...
//   %z = mpc.softmax %y : tensor<2x3xf32>
// becomes, with level=O1,
//   %0 = mpc.cast %x : (tensor<2x4xf32>) -> tensor<2x4xf16>
//   %1 = mpc.cast %w : ...
//   %y = mpc.matmul %0, %1 as <f16, class "allow"> : ...
//   %2 = mpc.cast %y : (tensor<2x3xf16>) -> tensor<2x3xf32>
//   %z = mpc.softmax %2 as <f32, class "deny"> : tensor<2x3xf32>
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/operation_names.h"
#include "passes/passes.h"
#include "passes/precision/precision_assignment.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_AMPPASS
#include "passes/passes.h.inc"

namespace {

// Casts of values, one for each (value, type).
class CastMap {
public:
  explicit CastMap(ModuleOp Module) : Builder(Module.getContext()) {}

  // The value in element type `Element`. `User` is the first user in program order.
  Value get(Value V, Type Element, Operation *User) {
    auto Source = cast<RankedTensorType>(V.getType());
    Value &Cast = Casts[{V, Element}];
    if (Cast)
      return Cast;
    if (Operation *Definition = V.getDefiningOp())
      Builder.setInsertionPointAfter(Definition);
    else if (Operation *InBlock = V.getParentBlock()->findAncestorOpInBlock(*User))
      Builder.setInsertionPoint(InBlock);
    else
      Builder.setInsertionPointToStart(V.getParentBlock());
    Cast = CastOp::create(Builder, V.getLoc(), Source.clone(Element), V);
    return Cast;
  }

private:
  OpBuilder Builder;
  llvm::DenseMap<std::pair<Value, Type>, Value> Casts;
};

// The first element that is a finite non-zero number and would become zero or infinite in `Low`.
std::optional<APFloat> lostInCast(ConstantOp Constant, FloatType Low) {
  auto Elements = dyn_cast<DenseFPElementsAttr>(Constant.getValue());
  if (!Elements)
    return std::nullopt;
  for (APFloat Element : Elements) {
    APFloat Rounded = Element;
    bool LosesInfo = false;
    Rounded.convert(Low.getFloatSemantics(), APFloat::rmNearestTiesToEven, &LosesInfo);
    if (Element.isFiniteNonZero() && !Rounded.isFiniteNonZero())
      return Element;
    if (Elements.isSplat())
      break;
  }
  return std::nullopt;
}

class AmpPass : public impl::AmpPassBase<AmpPass> {
public:
  using AmpPassBase::AmpPassBase;

  void runOnOperation() override {
    std::optional<PrecisionOptions> Options = parseOptions();
    if (!Options)
      return signalPassFailure();
    for (const std::string &Path : Options->Lists.unmatchedPaths(getOperation()))
      emitRemark(getOperation().getLoc()) << "list entry '" << Path << "' is no operation and matches no Cell path"
                                          << "; the nearest operation is '" << nearestOperation(Path) << "'";
    PrecisionAssignment Assignment(getOperation(), *Options);
    if (!Assignment.failure().empty()) {
      getOperation().emitError() << Assignment.failure();
      return signalPassFailure();
    }
    for (const auto &[Op, Text] : Assignment.remarks())
      emitRemark(Op->getLoc()) << Text;
    apply(Assignment);
    if (!Assignment.stored().empty())
      writeAssignment(getOperation(), Assignment.stored());
  }

private:
  // Emits an error and returns nullopt for a word that is not understood.
  std::optional<PrecisionOptions> parseOptions() {
    PrecisionOptions Options;
    llvm::Expected<AmpLevel> Level = parseAmpLevel(level);
    if (!Level)
      return fail(Level.takeError());
    Options.Level = *Level;
    llvm::Expected<FloatType> Low = parseLowType(&getContext(), dtype);
    if (!Low)
      return fail(Low.takeError());
    Options.Low = *Low;
    llvm::Expected<bool> Keep = parseKeepNormsF32(keepBatchNormFp32, Options.Level);
    if (!Keep)
      return fail(Keep.takeError());
    Options.KeepNormsF32 = *Keep;
    llvm::Expected<PrecisionLists> Lists = PrecisionLists::create(&getContext(), allow, deny, infer, clear);
    if (!Lists)
      return fail(Lists.takeError());
    Options.Lists = std::move(*Lists);
    Options.Costs = costs();
    return Options;
  }

  CostModel costs() const {
    CostModel Costs;
    const std::pair<double *, double> Given[] = {{&Costs.BytesPerSecond, bytesPerSecond},
                                                 {&Costs.LowFlops, lowFlops},
                                                 {&Costs.F32Flops, f32Flops},
                                                 {&Costs.SecondsPerOperation, secondsPerOperation}};
    for (const auto &[Field, Rate] : Given)
      if (Rate > 0)
        *Field = Rate;
    return Costs;
  }

  std::nullopt_t fail(llvm::Error Error) {
    getOperation().emitError() << llvm::toString(std::move(Error));
    return std::nullopt;
  }

  void apply(const PrecisionAssignment &Assignment) {
    // The type that every use wants, taken before any result changes its type. Undecided operations (steps, returns,
    // the loss outside the network) keep what they had.
    SmallVector<std::pair<OpOperand *, Type>> Wanted;
    SmallVector<Operation *> Decided;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *Op) {
      const OpPrecision *Precision = Assignment.lookup(Op);
      if (Precision)
        Decided.push_back(Op);
      for (OpOperand &Use : Op->getOpOperands()) {
        Type Element = Precision ? Precision->Operands[Use.getOperandNumber()] : elementOf(Use.get());
        if (Element)
          Wanted.push_back({&Use, Element});
      }
    });
    for (Operation *Op : Decided) {
      const OpPrecision *Precision = Assignment.lookup(Op);
      for (auto [Result, Element] : llvm::zip_equal(Op->getResults(), Precision->Results))
        Result.setType(cast<RankedTensorType>(Result.getType()).clone(Element));
      setPrecision(Op, toAttribute(Op, *Precision));
    }
    CastMap Casts(getOperation());
    for (auto [Use, Element] : Wanted)
      if (elementOf(Use->get()) != Element)
        castUse(*Use, Element, Casts);
  }

  void castUse(OpOperand &Use, Type Element, CastMap &Casts) {
    auto Constant = Use.get().getDefiningOp<ConstantOp>();
    auto Low = cast<FloatType>(Element);
    if (std::optional<APFloat> Lost = Constant && Low.getWidth() == 16 ? lostInCast(Constant, Low) : std::nullopt) {
      SmallString<16> Text;
      Lost->toString(Text, 6);
      ScopeAttr Scope = scopeOf(Use.getOwner());
      emitRemark(Use.getOwner()->getLoc()) << (Scope ? "'" + Scope.getPath().str() + "': " : std::string())
                                           << "constant " << Text << " becomes zero or infinite in " << Element;
    }
    Use.set(Casts.get(Use.get(), Element, Use.getOwner()));
  }
};

} // namespace

} // namespace mpc
