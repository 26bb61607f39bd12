#include "passes/precision/slot_graph.h"

#include "compiler/dialect/state_attributes.h"
#include "passes/precision/precision_cut.h"

#include <cmath>

using namespace mlir;

namespace mpc {

namespace {

// Seconds become integers: a cut compares sums, which must not depend on their order.
constexpr double UnitsPerSecond = 1e15;

// The units are at most the cut's limit; the sum then reaches the limit, which is an error. The same happens where
// rates of 0 make the time infinite or NaN.
std::int64_t toUnits(double Seconds) {
  double Units = Seconds * UnitsPerSecond;
  constexpr double Limit = PrecisionCut::CostLimit;
  return std::abs(Units) < Limit ? std::llround(Units) : PrecisionCut::CostLimit;
}

class SlotGraph {
public:
  SlotGraph(const DecidedOperations &Decided, OpenOperations &Open, const CostModel &Costs)
      : Decided(Decided), Open(Open), Costs(Costs) {
    InSeconds = llvm::any_of(Open, [](const auto &Entry) { return Entry.second.Level == AmpLevel::Auto; });
    AlwaysLow = Cut.addSlot(PrecisionCut::Pin::Low);
    AlwaysF32 = Cut.addSlot(PrecisionCut::Pin::F32);
    for (const auto &[Op, Slot] : Open)
      Slots[Op] = addSlot(Op, Slot);
  }

  void addValues(ModuleOp Module) {
    collectParameters(Module);
    Module.walk([&](Operation *Op) {
      for (Region &Nested : Op->getRegions())
        for (Block &Body : Nested)
          for (BlockArgument Argument : Body.getArguments())
            addValue(Argument);
      for (OpResult Result : Op->getResults())
        addValue(Result);
    });
  }

  llvm::Expected<std::int64_t> solve() {
    if (!Cut.solve())
      return tooLarge();
    for (auto &[Op, Slot] : Open) {
      if (Slot.IsLow)
        continue;
      bool Low = Cut.isLow(Slots[Op]);
      Slot.decideBy(Slot.Class != AmpClass::Allow ? PrecisionRule::Cut
                    : Low                         ? PrecisionRule::LowPays
                                                  : PrecisionRule::LowDoesNotPay,
                    Low);
    }
    return Cut.cost();
  }

private:
  llvm::Error tooLarge() const {
    std::string Text;
    llvm::raw_string_ostream Stream(Text);
    Stream << "the minimum cut over " << Open.size() << " operations takes costs below 2^61 ";
    if (InSeconds)
      Stream << "fs together; by bytes-per-second = " << Costs.BytesPerSecond << ", low-flops = " << Costs.LowFlops
             << ", f32-flops = " << Costs.F32Flops << " and seconds-per-operation = " << Costs.SecondsPerOperation
             << " they add up to more: give higher rates, or choose another level than auto";
    else
      Stream << "elements together, but the values that a cast may read have more: choose another level than O1";
    return llvm::createStringError(Text);
  }

  unsigned addSlot(Operation *Op, const OpenOperation &Slot) {
    if (Slot.IsLow)
      return Cut.addSlot(*Slot.IsLow ? PrecisionCut::Pin::Low : PrecisionCut::Pin::F32);
    if (Slot.Level == AmpLevel::Auto)
      return Cut.addSlot(PrecisionCut::Pin::None, toUnits(Costs.secondsSavedByLow(Op)));
    return Cut.addSlot();
  }

  unsigned fixed(Type Element) const { return isLow(Element) ? AlwaysLow : AlwaysF32; }

  unsigned producer(Value V) const {
    auto Result = dyn_cast<OpResult>(V);
    if (!Result)
      return fixed(elementOf(V));
    Operation *Op = Result.getOwner();
    if (auto Slot = Slots.find(Op); Slot != Slots.end())
      return llvm::is_contained(cast<AmpOpInterface>(Op).getF32Results(), Result.getResultNumber()) ? AlwaysF32
                                                                                                    : Slot->second;
    if (auto It = Decided.find(Op); It != Decided.end())
      return fixed(It->second.Results[Result.getResultNumber()]);
    return fixed(elementOf(V));
  }

  // Nullopt where the operand is read as it is stored.
  std::optional<unsigned> consumer(OpOperand &Use) const {
    Operation *Op = Use.getOwner();
    unsigned Index = Use.getOperandNumber();
    if (auto Slot = Slots.find(Op); Slot != Slots.end()) {
      auto Amp = cast<AmpOpInterface>(Op);
      if (llvm::is_contained(Amp.getF32Operands(), Index))
        return AlwaysF32;
      return Amp.getAmpClass() == AmpClass::Norm ? std::nullopt : std::optional(Slot->second);
    }
    auto It = Decided.find(Op);
    if (It == Decided.end())
      return fixed(elementOf(Use.get()));
    if (Type Element = It->second.Operands[Index])
      return fixed(Element);
    // A user's cast is shared with whoever else needs that type.
    if (auto Cast = dyn_cast<CastOp>(Op))
      return isAssignable(Cast.getY()) ? std::optional(fixed(elementOf(Cast.getY()))) : std::nullopt;
    // A kept norm reads f32 as far as the cut knows; its fold comes later.
    bool KeptNorm = cast<AmpOpInterface>(Op).getAmpClass() == AmpClass::Norm;
    return KeptNorm ? std::optional(AlwaysF32) : std::nullopt;
  }

  void addValue(Value V) {
    if (!isAssignable(V))
      return;
    SmallVector<unsigned> Consumers;
    for (OpOperand &Use : V.getUses())
      if (std::optional<unsigned> Slot = consumer(Use))
        Consumers.push_back(*Slot);
    Cut.addValue(producer(V), Consumers, weight(V));
  }

  std::int64_t weight(Value V) const {
    // The low copy of a constant is another constant.
    if (V.getDefiningOp<ConstantOp>())
      return 0;
    if (!InSeconds)
      return cast<RankedTensorType>(V.getType()).getNumElements();
    return toUnits(Parameters.contains(V) ? Costs.shadowSeconds(V) : Costs.castSeconds(V));
  }

  // A step names its parameters; the network that it differentiates only receives them.
  void collectParameters(ModuleOp Module) {
    for (auto Function : Module.getOps<func::FuncOp>())
      for (BlockArgument Argument : Function.getArguments())
        if (roleOf(Argument) == Role::kParameter)
          Parameters.insert(Argument);
    Module.walk([&](ValueAndGradOp Step) {
      auto Network = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(Step, Step.getCalleeAttr());
      if (!Network || Network.isExternal())
        return;
      for (auto [Operand, Argument] : llvm::zip_equal(Step.getInputs(), Network.getArguments()))
        if (Parameters.contains(Operand))
          Parameters.insert(Argument);
    });
  }

  const DecidedOperations &Decided;
  OpenOperations &Open;
  const CostModel &Costs;
  PrecisionCut Cut;
  llvm::DenseMap<Operation *, unsigned> Slots;
  llvm::DenseSet<Value> Parameters;
  unsigned AlwaysLow = 0, AlwaysF32 = 0;
  bool InSeconds = false;
};

} // namespace

llvm::Expected<std::int64_t> solveByCut(ModuleOp Module, const DecidedOperations &Decided, OpenOperations &Open,
                                        const CostModel &Costs) {
  SlotGraph Graph(Decided, Open, Costs);
  Graph.addValues(Module);
  return Graph.solve();
}

} // namespace mpc
