// Makes a training step return what low slots would round.
//
//   func.func private @forward(%x: ..., %w: ...) -> tensor<f32> {
//     %y = mpc.matmul %x, %w : ...
//     ...
//   %l, %dw = mpc.value_and_grad @forward(%x, %w) seed(%one) {wrt = [1]} : ...
//   return %l, %dw : ...
// becomes, for the result of the product alone,
//   func.func private @forward(%x: ..., %w: ..., %z: ...) -> (tensor<f32>, tensor<2x3xf32>) {
//     %y = mpc.matmul %x, %w : ...
//     %p = mpc.add %y, %z : ...
//     ... with %p for %y; returns %p as well
//   %zeros = mpc.constant ...
//   %l, %v, %dw, %dv = mpc.value_and_grad @forward(%x, %w, %zeros) seed(%one) {wrt = [1, 2]} : ...
//   return %l, %dw, %v, %dv : ...
#include "passes/precision/slot_probes.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/state_attributes.h"
#include "passes/precision/op_precision.h"
#include "passes/precision/stored_assignment.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace mpc {

namespace {

// A value at all of its uses, or at one of several.
using Place = std::pair<Value, OpOperand *>;

class SlotProber {
public:
  explicit SlotProber(ValueAndGradOp request)
      : request(request), step(request->getParentOfType<func::FuncOp>()), network(request.getFunction()) {}

  // The step calls the network once, and so may call it with more arguments.
  bool canProbe() {
    if (!step || !network || !step.getBody().hasOneBlock() || !network.getBody().hasOneBlock())
      return false;
    std::optional<SymbolTable::UseRange> uses = SymbolTable::getSymbolUses(network, network->getParentOp());
    return uses && llvm::hasSingleElement(*uses);
  }

  SlotProbes run(const AssignmentNames &names, ArrayRef<std::string> open) {
    llvm::StringMap<AmpOpInterface> operations;
    for (auto op : network.getBody().getOps<AmpOpInterface>())
      if (op.getAmpClass() != AmpClass::Exempt)
        operations[names.slotOf(op)] = op;
    SlotProbes probes;
    for (const std::string &slot : open)
      if (auto op = operations.lookup(slot))
        probes.slots.push_back({slot, pointsOf(op)});
    addPoints();
    probes.points = static_cast<std::int64_t>(places.size());
    return probes;
  }

private:
  std::vector<SlotPoint> pointsOf(AmpOpInterface op) {
    std::vector<SlotPoint> points;
    const AmpClass ampClass = op.getAmpClass();
    const bool moves = ampClass == AmpClass::Clear;
    for (OpOperand &use : op->getOpOperands()) {
      // Constants have exact low copies, or scalar ones that stay f32.
      const bool isRounded = isAssignable(use.get()) && !use.get().getDefiningOp<ConstantOp>() &&
                             !llvm::is_contained(op.getF32Operands(), use.getOperandNumber());
      if (isRounded && ampClass != AmpClass::Norm)
        points.push_back({placeOf({use.get(), use.get().hasOneUse() ? nullptr : &use}), true, !moves});
    }
    for (OpResult result : op->getResults())
      if (isAssignable(result) && !result.use_empty() &&
          !llvm::is_contained(op.getF32Results(), result.getResultNumber()))
        points.push_back({placeOf({result, nullptr}), !moves, true});
    return points;
  }

  std::int64_t placeOf(Place place) { return places.insert({place, places.size()}).first->second; }

  // Uses that have a place of their own read the sum of that place. It adds to the sum of the whole value, if any.
  void addPoints() {
    Operation *returned = network.getBody().front().getTerminator();
    const unsigned lossAndAux = network.getNumResults();
    SmallVector<Value> sums(places.size());
    for (const bool ofOneUse : {true, false})
      for (const auto &[place, index] : places)
        if ((place.second != nullptr) == ofOneUse)
          sums[index] = addZeroInput(place);
    SmallVector<Value> zeros;
    OpBuilder builder(request);
    for (Value sum : sums) {
      (void)network.insertResult(network.getNumResults(), sum.getType(), {});
      returned->insertOperands(returned->getNumOperands(), sum);
    }
    SmallVector<Value> inputs(request.getInputs());
    SmallVector<std::int64_t> wrt(request.getWrt());
    for (unsigned argument = inputs.size(); argument < network.getNumArguments(); ++argument) {
      auto type = cast<RankedTensorType>(network.getArgument(argument).getType());
      wrt.push_back(argument);
      inputs.push_back(ConstantOp::create(builder, request.getLoc(), type,
                                          DenseElementsAttr::get(type, builder.getZeroAttr(type.getElementType()))));
    }
    SmallVector<Type> types(network.getResultTypes());
    for (std::int64_t position : wrt)
      types.push_back(inputs[position].getType());
    auto probed = ValueAndGradOp::create(builder, request.getLoc(), types, request.getCallee(), inputs,
                                         request.getSeed(), wrt, request.getLossId());
    probed->setDiscardableAttrs(request->getDiscardableAttrDictionary());
    replaceRequest(probed, lossAndAux, sums.size());
  }

  // The sum of the place's value and a new argument of the network.
  Value addZeroInput(const Place &place) {
    auto [v, use] = place;
    (void)network.insertArgument(network.getNumArguments(), v.getType(), {}, v.getLoc());
    argumentOf.push_back(place);
    OpBuilder builder(network.getContext());
    if (use)
      builder.setInsertionPoint(use->getOwner());
    else if (Operation *definition = v.getDefiningOp())
      builder.setInsertionPointAfter(definition);
    else
      builder.setInsertionPointToStart(&network.getBody().front());
    auto sum = AddOp::create(builder, v.getLoc(), v.getType(), v, network.getArguments().back());
    if (use)
      use->set(sum);
    else
      v.replaceAllUsesExcept(sum, sum);
    return sum;
  }

  void replaceRequest(ValueAndGradOp probed, unsigned lossAndAux, std::size_t points) {
    const unsigned gradients = request.getNumResults() - lossAndAux;
    for (unsigned i = 0; i < lossAndAux; ++i)
      request.getResult(i).replaceAllUsesWith(probed.getResult(i));
    for (unsigned i = 0; i < gradients; ++i)
      request.getResult(lossAndAux + i).replaceAllUsesWith(probed.getResult(lossAndAux + points + i));
    request.erase();
    const unsigned firstCotangent = lossAndAux + points + gradients;
    for (unsigned place = 0; place < points; ++place) {
      // Arguments were added in another order than places have.
      const auto argument = llvm::find(argumentOf, places.begin()[place].first) - argumentOf.begin();
      appendOutput(probed.getResult(lossAndAux + place), "value." + std::to_string(place));
      appendOutput(probed.getResult(firstCotangent + argument), "cotangent." + std::to_string(place));
    }
  }

  void appendOutput(Value v, const std::string &name) {
    (void)step.insertResult(step.getNumResults(), v.getType(),
                            describedBy(makeState(step.getContext(), Role::kOutput, name)));
    Operation *returned = step.getBody().front().getTerminator();
    returned->insertOperands(returned->getNumOperands(), v);
  }

  ValueAndGradOp request;
  func::FuncOp step, network;
  llvm::MapVector<Place, std::int64_t> places;
  SmallVector<Place> argumentOf; ///< by the arguments that were added
};

} // namespace

SlotProbes probeSlots(ModuleOp module, ArrayRef<std::string> open) {
  SmallVector<ValueAndGradOp> requests;
  module.walk([&](Operation *op) {
    if (auto request = dyn_cast<ValueAndGradOp>(op))
      requests.push_back(request);
  });
  if (requests.size() != 1)
    return {};
  SlotProber prober(requests.front());
  return prober.canProbe() ? prober.run(AssignmentNames(module), open) : SlotProbes{};
}

} // namespace mpc
