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
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/operation_names.h"
#include "compiler/dialect/target_model.h"
#include "passes/passes.h"
#include "passes/precision/lost_numbers.h"
#include "passes/precision/precision_assignment.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_AMPPASS
#include "passes/passes.h.inc"

namespace {

// Casts of values, one for each (value, type).
class CastMap {
public:
  explicit CastMap(ModuleOp module) : builder(module.getContext()) {}

  // The value in element type `element`. `user` is the first user in program order.
  Value get(Value v, Type element, Operation *user) {
    auto source = cast<RankedTensorType>(v.getType());
    Value &cast = casts[{v, element}];
    if (cast)
      return cast;
    if (Operation *definition = v.getDefiningOp())
      builder.setInsertionPointAfter(definition);
    else if (Operation *inBlock = v.getParentBlock()->findAncestorOpInBlock(*user))
      builder.setInsertionPoint(inBlock);
    else
      builder.setInsertionPointToStart(v.getParentBlock());
    cast = CastOp::create(builder, v.getLoc(), source.clone(element), v);
    return cast;
  }

private:
  OpBuilder builder;
  llvm::DenseMap<std::pair<Value, Type>, Value> casts;
};

class AmpPass : public impl::AmpPassBase<AmpPass> {
public:
  using AmpPassBase::AmpPassBase;

  void runOnOperation() override {
    std::optional<PrecisionOptions> options = parseOptions();
    if (!options)
      return signalPassFailure();
    for (const std::string &path : options->lists.unmatchedPaths(getOperation()))
      emitRemark(getOperation().getLoc()) << "list entry '" << path << "' is no operation and matches no Cell path"
                                          << "; the nearest operation is '" << nearestOperation(path) << "'";
    PrecisionAssignment assignment(getOperation(), *options);
    if (!assignment.getFailure().empty()) {
      getOperation().emitError() << assignment.getFailure();
      return signalPassFailure();
    }
    for (const auto &[op, text] : assignment.getRemarks())
      emitRemark(op->getLoc()) << text;
    apply(assignment);
    if (!assignment.getStored().empty())
      writeAssignment(getOperation(), assignment.getStored());
  }

private:
  // Emits an error and returns nullopt for a word that is not understood.
  std::optional<PrecisionOptions> parseOptions() {
    PrecisionOptions options;
    llvm::Expected<AmpLevel> known = parseAmpLevel(level);
    if (!known)
      return fail(known.takeError());
    options.level = *known;
    FailureOr<FloatType> low = lowType();
    if (failed(low))
      return std::nullopt;
    options.low = *low;
    llvm::Expected<bool> keep = parseKeepNormsF32(keepBatchNormFp32, options.level);
    if (!keep)
      return fail(keep.takeError());
    options.keepNormsF32 = *keep;
    llvm::Expected<PrecisionLists> lists = PrecisionLists::create(&getContext(), allow, deny, infer, clear);
    if (!lists)
      return fail(lists.takeError());
    options.lists = std::move(*lists);
    if (llvm::Error refused = options.costs.give(bytesPerSecond, lowFlops, f32Flops, secondsPerOperation))
      return fail(std::move(refused));
    return options;
  }

  // The type that `dtype` names; for "auto" the one that the target computes in natively. Emits errors.
  FailureOr<FloatType> lowType() {
    if (dtype == "auto") {
      FailureOr<std::unique_ptr<TargetModel>> target = targetModelOf(getOperation());
      if (failed(target))
        return failure();
      return cast<FloatType>(toType(&getContext(), (*target)->nativeLowType()));
    }
    llvm::Expected<FloatType> named = parseLowType(&getContext(), dtype);
    if (named)
      return *named;
    fail(named.takeError());
    return failure();
  }

  std::nullopt_t fail(llvm::Error error) {
    getOperation().emitError() << llvm::toString(std::move(error));
    return std::nullopt;
  }

  void apply(const PrecisionAssignment &assignment) {
    // The type that every use wants, taken before any result changes its type. Undecided operations (steps, returns,
    // the loss outside the network) keep what they had.
    SmallVector<std::pair<OpOperand *, Type>> wanted;
    SmallVector<Operation *> decided;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      const OpPrecision *precision = assignment.lookup(op);
      if (precision)
        decided.push_back(op);
      for (OpOperand &use : op->getOpOperands()) {
        Type element = precision ? precision->operands[use.getOperandNumber()] : elementOf(use.get());
        if (element)
          wanted.push_back({&use, element});
      }
    });
    for (Operation *op : decided) {
      const OpPrecision *precision = assignment.lookup(op);
      for (auto [result, element] : llvm::zip_equal(op->getResults(), precision->results))
        result.setType(cast<RankedTensorType>(result.getType()).clone(element));
      setPrecision(op, toAttribute(op, *precision));
      unmarkDifferentiated(op);
      auto low = op->getNumResults() > 0 ? dyn_cast<FloatType>(elementOf(op->getResult(0))) : FloatType();
      if (std::optional<double> lost = isLow(low) ? lostScalar(op, low) : std::nullopt)
        remarkLost(op, *lost, low);
    }
    CastMap casts(getOperation());
    for (auto [use, element] : wanted)
      if (elementOf(use->get()) != element)
        castUse(*use, element, casts);
  }

  void castUse(OpOperand &use, Type element, CastMap &casts) {
    auto low = cast<FloatType>(element);
    if (std::optional<double> lost = isLow(low) ? lostElement(use, low) : std::nullopt)
      remarkLost(use.getOwner(), *lost, low);
    use.set(casts.get(use.get(), element, use.getOwner()));
  }

  static void remarkLost(Operation *op, double lost, FloatType low) {
    ScopeAttr scope = scopeOf(op);
    emitRemark(op->getLoc()) << (scope ? "'" + scope.getPath().str() + "': " : std::string()) << constantText(lost)
                             << " becomes zero or infinite in " << low
                             << "; a Cell path in deny_add keeps its operations f32";
  }
};

} // namespace

} // namespace mpc
