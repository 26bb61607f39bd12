#include "passes/precision/precision_graph.h"

#include "compiler/dialect/state_attributes.h"
#include "passes/precision/precision_cut.h"

#include <cmath>

using namespace mlir;

namespace mpc {

namespace {

// Seconds become integers: a cut compares sums, which must not depend on their order.
constexpr double unitsPerSecond = 1e15;

// The units are at most the cut's limit; the sum then reaches the limit, which is an error. The same happens where
// rates of 0 make the time infinite or NaN.
std::int64_t toUnits(double seconds) {
  double units = seconds * unitsPerSecond;
  constexpr double limit = PrecisionCut::costLimit;
  return std::abs(units) < limit ? std::llround(units) : PrecisionCut::costLimit;
}

class PrecisionGraph {
public:
  PrecisionGraph(const DecidedOperations &decided, OpenOperations &open, const CostModel &costs)
      : decided(decided), open(open), costs(costs) {
    inSeconds = llvm::any_of(open, [](const auto &entry) { return entry.second.level == AmpLevel::Auto; });
    alwaysLow = cut.addNode(PrecisionCut::Pin::Low);
    alwaysF32 = cut.addNode(PrecisionCut::Pin::F32);
    for (const auto &[op, slot] : open)
      slots[op] = addNode(op, slot);
  }

  void addValues(ModuleOp module) {
    collectParameters(module);
    module.walk([&](Operation *op) {
      for (Region &nested : op->getRegions())
        for (Block &body : nested)
          for (BlockArgument argument : body.getArguments())
            addValue(argument);
      for (OpResult result : op->getResults())
        addValue(result);
    });
  }

  llvm::Expected<std::int64_t> solve() {
    if (!cut.solve())
      return tooLarge();
    for (auto &[op, slot] : open) {
      if (slot.isLow)
        continue;
      bool low = cut.isLow(slots[op]);
      slot.decideBy(slot.ampClass != AmpClass::Allow ? PrecisionRule::Cut
                    : low                            ? PrecisionRule::LowPays
                                                     : PrecisionRule::LowDoesNotPay,
                    low);
    }
    return cut.getCost();
  }

private:
  llvm::Error tooLarge() const {
    std::string text;
    llvm::raw_string_ostream stream(text);
    stream << "the minimum cut over " << open.size() << " operations takes costs below 2^61 ";
    if (inSeconds)
      stream << "fs together; by bytes-per-second = " << costs.bytesPerSecond << ", low-flops = " << costs.lowFlops
             << ", f32-flops = " << costs.f32Flops << " and seconds-per-operation = " << costs.secondsPerOperation
             << " they add up to more: give higher rates, or choose another level than auto";
    else
      stream << "elements together, but the values that a cast may read have more: choose another level than O1";
    return llvm::createStringError(text);
  }

  unsigned addNode(Operation *op, const OpenOperation &slot) {
    if (slot.isLow)
      return cut.addNode(*slot.isLow ? PrecisionCut::Pin::Low : PrecisionCut::Pin::F32);
    if (slot.level == AmpLevel::Auto)
      return cut.addNode(PrecisionCut::Pin::None, toUnits(costs.secondsSavedByLow(op)));
    return cut.addNode();
  }

  unsigned fixed(Type element) const { return isLow(element) ? alwaysLow : alwaysF32; }

  unsigned producer(Value v) const {
    auto result = dyn_cast<OpResult>(v);
    if (!result)
      return fixed(elementOf(v));
    Operation *op = result.getOwner();
    if (auto slot = slots.find(op); slot != slots.end())
      return llvm::is_contained(cast<AmpOpInterface>(op).getF32Results(), result.getResultNumber()) ? alwaysF32
                                                                                                    : slot->second;
    if (auto it = decided.find(op); it != decided.end())
      return fixed(it->second.results[result.getResultNumber()]);
    return fixed(elementOf(v));
  }

  // Nullopt where the operand is read as it is stored.
  std::optional<unsigned> consumer(OpOperand &use) const {
    Operation *op = use.getOwner();
    unsigned index = use.getOperandNumber();
    if (auto slot = slots.find(op); slot != slots.end()) {
      auto amp = cast<AmpOpInterface>(op);
      if (llvm::is_contained(amp.getF32Operands(), index))
        return alwaysF32;
      return amp.getAmpClass() == AmpClass::Norm ? std::nullopt : std::optional(slot->second);
    }
    auto it = decided.find(op);
    if (it == decided.end())
      return fixed(elementOf(use.get()));
    if (Type element = it->second.operands[index])
      return fixed(element);
    // A user's cast is shared with whoever else needs that type.
    if (auto cast = dyn_cast<CastOp>(op))
      return isAssignable(cast.getY()) ? std::optional(fixed(elementOf(cast.getY()))) : std::nullopt;
    // A kept norm reads f32 as far as the cut knows; its fold comes later.
    bool keptNorm = cast<AmpOpInterface>(op).getAmpClass() == AmpClass::Norm;
    return keptNorm ? std::optional(alwaysF32) : std::nullopt;
  }

  void addValue(Value v) {
    if (!isAssignable(v))
      return;
    SmallVector<unsigned> consumers;
    for (OpOperand &use : v.getUses())
      if (std::optional<unsigned> slot = consumer(use))
        consumers.push_back(*slot);
    cut.addValue(producer(v), consumers, weight(v));
  }

  std::int64_t weight(Value v) const {
    // The low copy of a constant is another constant.
    if (v.getDefiningOp<ConstantOp>())
      return 0;
    if (!inSeconds)
      return cast<RankedTensorType>(v.getType()).getNumElements();
    return toUnits(parameters.contains(v) ? costs.lowCopySeconds(v) : costs.castSeconds(v));
  }

  // A step names its parameters; the network that it differentiates only receives them.
  void collectParameters(ModuleOp module) {
    for (auto function : module.getOps<func::FuncOp>())
      for (BlockArgument argument : function.getArguments())
        if (roleOf(argument) == Role::kParameter)
          parameters.insert(argument);
    module.walk([&](ValueAndGradOp step) {
      auto network = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(step, step.getCalleeAttr());
      if (!network || network.isExternal())
        return;
      for (auto [operand, argument] : llvm::zip_equal(step.getInputs(), network.getArguments()))
        if (parameters.contains(operand))
          parameters.insert(argument);
    });
  }

  const DecidedOperations &decided;
  OpenOperations &open;
  const CostModel &costs;
  PrecisionCut cut;
  llvm::DenseMap<Operation *, unsigned> slots;
  llvm::DenseSet<Value> parameters;
  unsigned alwaysLow = 0, alwaysF32 = 0;
  bool inSeconds = false;
};

} // namespace

llvm::Expected<std::int64_t> solveByCut(ModuleOp module, const DecidedOperations &decided, OpenOperations &open,
                                        const CostModel &costs) {
  PrecisionGraph graph(decided, open, costs);
  graph.addValues(module);
  return graph.solve();
}

} // namespace mpc
