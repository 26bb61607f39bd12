#include "passes/precision/precision_graph.h"

#include "compiler/dialect/state_attributes.h"
#include "passes/precision/precision_cut.h"
#include "passes/precision/precision_hull.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SetVector.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace mpc {

namespace {

// Seconds become integers: a cut compares sums, which must not depend on their order.
constexpr double defaultUnitsPerSecond = 1e15;

class PrecisionGraph {
public:
  PrecisionGraph(const DecidedOperations &decided, OpenOperations &open, const CostModel &costs,
                 double unitsPerSecond = defaultUnitsPerSecond)
      : decided(decided), open(open), costs(costs), unitsPerSecond(unitsPerSecond) {
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

  // The slots that nothing has decided, with their nodes.
  SmallVector<std::pair<Operation *, unsigned>> undecided() const {
    SmallVector<std::pair<Operation *, unsigned>> result;
    for (const auto &[op, slot] : open)
      if (!slot.isLow)
        result.push_back({op, slots.lookup(op)});
    return result;
  }

  // The nodes that write or read the value as it is stored, or as a cast of it is.
  SmallVector<unsigned> nodesOf(Value v) const {
    SmallVector<unsigned> nodes{producer(v)};
    for (OpOperand &use : v.getUses())
      if (std::optional<unsigned> slot = consumer(use))
        nodes.push_back(*slot);
    return nodes;
  }

  PrecisionCut &getCut() { return cut; }

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

private:
  // The units are at most the cut's limit; the sum then reaches the limit, which is an error. The same happens where
  // rates of 0 make the time infinite or NaN.
  std::int64_t toUnits(double seconds) const {
    double units = seconds * unitsPerSecond;
    constexpr double limit = PrecisionCut::costLimit;
    return std::abs(units) < limit ? std::llround(units) : PrecisionCut::costLimit;
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
      func::FuncOp network = step.getFunction();
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
  double unitsPerSecond;
  PrecisionCut cut;
  llvm::DenseMap<Operation *, unsigned> slots;
  llvm::DenseSet<Value> parameters;
  unsigned alwaysLow = 0, alwaysF32 = 0;
  bool inSeconds = false;
};

using NodeSet = llvm::SmallSetVector<unsigned, 8>;

// Values that hold the same elements, or some of them: where one is rounded, rounding the others changes nothing.
struct RoundedTogether {
  NodeSet nodes;
  double error = 0;
};

class SlotErrorShares {
public:
  SlotErrorShares(const PrecisionGraph &graph, const OpenOperations &open, const AssignmentNames &names,
                  const SlotErrors &errors) {
    llvm::EquivalenceClasses<void *> classes;
    SmallVector<std::pair<Value, double>> moved;
    for (const auto &[op, node] : graph.undecided()) {
      slots.push_back({node, errorOf(names.slotOf(op), errors)});
      if (open.lookup(op).ampClass != AmpClass::Clear)
        continue;
      movement.insert(node);
      Value first;
      SmallVector<Value> touched(op->getOperands());
      touched.append(op->result_begin(), op->result_end());
      for (Value v : touched)
        if (isAssignable(v)) {
          first = first ? first : v;
          classes.unionSets(first.getAsOpaquePointer(), v.getAsOpaquePointer());
          values.push_back(v);
        }
      if (first)
        moved.push_back({first, slots.back().second});
    }
    for (Value v : values) {
      RoundedTogether &group = groups[classes.getLeaderValue(v.getAsOpaquePointer())];
      for (unsigned node : graph.nodesOf(v))
        group.nodes.insert(node);
    }
    for (const auto &[v, error] : moved) {
      RoundedTogether &group = groups[classes.getLeaderValue(v.getAsOpaquePointer())];
      group.error = std::max(group.error, error);
    }
  }

  // Sets of nodes and the error that is made where one of a set is low.
  SmallVector<std::pair<NodeSet, double>> shares() const {
    SmallVector<std::pair<NodeSet, double>> result;
    for (const auto &[leader, group] : groups)
      result.push_back({group.nodes, group.error});
    for (const auto &[node, error] : slots) {
      if (movement.contains(node))
        continue;
      double left = error;
      for (const auto &[leader, group] : groups)
        left -= group.nodes.contains(node) ? group.error : 0;
      NodeSet itself;
      itself.insert(node);
      result.push_back({itself, std::max(left, 0.0)});
    }
    return result;
  }

private:
  static double errorOf(const std::string &name, const SlotErrors &errors) {
    auto known = errors.find(name);
    return known == errors.end() ? 0 : known->second;
  }

  SmallVector<std::pair<unsigned, double>> slots;
  llvm::DenseSet<unsigned> movement;
  SmallVector<Value> values;
  llvm::MapVector<void *, RoundedTogether> groups;
};

// What is made where the nodes of `low` are low.
double errorWhereLow(ArrayRef<std::pair<NodeSet, double>> shares, const std::vector<bool> &low) {
  double sum = 0;
  for (const auto &[nodes, error] : shares)
    if (llvm::any_of(nodes, [&](unsigned node) { return low[node]; }))
      sum += error;
  return sum;
}

// The most units a sum of `total` may be split into, each part rounded up.
double unitsOf(double total, std::size_t parts) {
  return total > 0 ? (static_cast<double>(hullLimit - 1) - static_cast<double>(parts)) / total : 0;
}

} // namespace

llvm::Expected<std::int64_t> solveByCut(ModuleOp module, const DecidedOperations &decided, OpenOperations &open,
                                        const CostModel &costs) {
  PrecisionGraph graph(decided, open, costs);
  graph.addValues(module);
  return graph.solve();
}

llvm::Expected<AssignmentFrontier> findFrontier(ModuleOp module, const DecidedOperations &decided, OpenOperations &open,
                                                const CostModel &costs, const AssignmentNames &names,
                                                const FrontierErrors &errors) {
  PrecisionGraph finest(decided, open, costs);
  finest.addValues(module);
  AssignmentFrontier frontier;
  for (const auto &[op, node] : finest.undecided()) {
    frontier.open.push_back(names.slotOf(op));
    if (open.lookup(op).level != AmpLevel::Auto)
      return llvm::createStringError("a frontier of time and error is for level auto, whose costs are seconds: '" +
                                     frontier.open.back() + "' is at level " +
                                     ampLevelName(open.lookup(op).level).str());
  }
  if (errors.weighed.empty() || frontier.open.empty())
    return frontier;
  const std::int64_t total = finest.getCut().getTotalTime();
  if (total >= PrecisionCut::costLimit)
    return finest.tooLarge();
  // Units are whole femtoseconds where their sum lets them.
  const double perSecond =
      defaultUnitsPerSecond * std::min(1.0, static_cast<double>(hullLimit) / 2 / std::max<double>(total, 1));
  PrecisionGraph graph(decided, open, costs, perSecond);
  graph.addValues(module);
  const auto shares = SlotErrorShares(graph, open, names, errors.weighed).shares();
  const auto otherShares = SlotErrorShares(graph, open, names, errors.other).shares();
  double allErrors = 0;
  for (const auto &[nodes, error] : shares)
    allErrors += error;
  const double perError = unitsOf(allErrors, shares.size());
  for (const auto &[nodes, error] : shares)
    graph.getCut().addError(nodes.getArrayRef(), static_cast<std::int64_t>(std::ceil(error * perError)));
  for (const HullPoint &corner : findLowerHull(graph.getCut())) {
    FrontierAssignment assignment;
    for (const auto &[op, node] : graph.undecided())
      assignment.slots[names.slotOf(op)] = corner.low[node] ? typeText(open.lookup(op).low) : "f32";
    assignment.seconds = static_cast<double>(corner.time) / perSecond;
    assignment.error = perError > 0 ? static_cast<double>(corner.error) / perError : 0;
    assignment.otherError = errorWhereLow(otherShares, corner.low);
    frontier.assignments.push_back(std::move(assignment));
  }
  return frontier;
}

} // namespace mpc
