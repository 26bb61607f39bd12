// Proves what AMP promises: f32 losses and statistics, untouched labels. The IR stays as it is.
//
//   %low = mpc.cast %labels : (tensor<2x4xf32>) -> tensor<2x4xbf16>
//   %wide = mpc.cast %low : (tensor<2x4xbf16>) -> tensor<2x4xf32>
//   %loss = mpc.mse %x, %wide : ...
// is an error with a note at the first cast.
//   error: 'mpc.mse' op ... reads floating labels that passed through 'bf16'
//   note: the cast is here
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "passes/passes.h"
#include "passes/precision/label_slice.h"
#include "passes/precision/network_regions.h"
#include "passes/precision/op_precision.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_VERIFYPRECISIONPASS
#include "passes/passes.h.inc"

namespace {

bool isF32(Type Type) {
  mlir::Type Element = getElementTypeOrSelf(Type);
  return Element.isF32() || Element.isF64();
}

std::string where(Operation *Op) {
  ScopeAttr Scope = scopeOf(Op);
  return Scope ? " in '" + Scope.getPath().str() + "'" : std::string();
}

class VerifyPrecisionPass : public impl::VerifyPrecisionPassBase<VerifyPrecisionPass> {
public:
  using VerifyPrecisionPassBase::VerifyPrecisionPassBase;

  void runOnOperation() override {
    llvm::Expected<AmpLevel> Level = parseAmpLevel(level);
    llvm::Expected<PrecisionLists> Lists = PrecisionLists::create(&getContext(), allow, deny, infer, clear);
    if (!Level || !Lists) {
      getOperation().emitError() << llvm::toString(llvm::joinErrors(Level.takeError(), Lists.takeError()));
      return signalPassFailure();
    }
    bool Failed = false;
    NetworkRegions Regions(getOperation());
    getOperation().walk([&](AmpOpInterface Op) {
      Failed |= failed(verify(Op));
      if (Regions.isInNetwork(Op) && isSolved(levelOf(Op, *Level)))
        Failed |= failed(verifyDeny(Op, *Lists));
    });
    if (Failed)
      signalPassFailure();
    markAllAnalysesPreserved();
  }

private:
  static AmpLevel levelOf(Operation *Op, AmpLevel OfModule) {
    ScopeAttr Scope = scopeOf(Op);
    return Scope && !Scope.getLevel().empty() ? llvm::cantFail(parseAmpLevel(Scope.getLevel())) : OfModule;
  }

  // O1 and auto: an operation of class Deny reads and writes f32 unless the user said otherwise.
  static LogicalResult verifyDeny(AmpOpInterface Op, const PrecisionLists &Lists) {
    ScopeAttr Scope = scopeOf(Op);
    bool UserSaysSo = (Scope && isLow(Scope.getPin())) || Lists.lookup(Op).has_value();
    if (Op.getAmpClass() != AmpClass::Deny || UserSaysSo)
      return success();
    SmallVector<Value> Values(Op->getOperands());
    llvm::append_range(Values, Op->getResults());
    for (Value V : Values)
      if (isLow(elementOf(V)))
        return Op->emitOpError() << "has a value of type " << V.getType() << where(Op)
                                 << "; its class computes, reads and writes f32 at O1 and auto";
    return success();
  }

  static LogicalResult verify(AmpOpInterface Op) {
    if (failed(verifyPinned(Op)))
      return failure();
    bool HasLabels = Op.getAmpClass() == AmpClass::Loss && Op->getNumOperands() > 1;
    return HasLabels ? verifyLabels(Op, Op->getOperand(1)) : success();
  }

  // The operands and results that the operation itself declares f32.
  static LogicalResult verifyPinned(AmpOpInterface Op) {
    StringRef What = Op.getAmpClass() == AmpClass::Loss ? "losses" : "norm parameters and statistics";
    for (unsigned Index : Op.getF32Operands())
      if (Index < Op->getNumOperands() && isFloating(Op->getOperand(Index)) && !isF32(Op->getOperand(Index).getType()))
        return Op->emitOpError() << "operand " << Index << where(Op) << " is " << Op->getOperand(Index).getType()
                                 << "; " << What << " are f32 at every level";
    for (unsigned Index : Op.getF32Results())
      if (!isF32(Op->getResult(Index).getType()))
        return Op->emitOpError() << "result " << Index << where(Op) << " is " << Op->getResult(Index).getType() << "; "
                                 << What << " are f32 at every level";
    return success();
  }

  static LogicalResult verifyLabels(AmpOpInterface Loss, Value Labels) {
    for (Operation *Op : labelSlice(Labels)) {
      auto Cast = dyn_cast<CastOp>(Op);
      if (!Cast || Cast.getUser() || !isFloating(Cast.getY()))
        continue;
      if (!isFloating(Cast.getX()))
        return (Loss.emitOpError() << where(Loss) << " reads integer labels that were cast to "
                                   << Cast.getY().getType())
                   .attachNote(Cast.getLoc())
               << "the cast is here";
      if (isF32(Cast.getX().getType()) && !isF32(Cast.getY().getType()))
        return (Loss.emitOpError() << where(Loss) << " reads floating labels that passed through "
                                   << getElementTypeOrSelf(Cast.getY().getType()))
                   .attachNote(Cast.getLoc())
               << "the cast is here";
    }
    return success();
  }
};

} // namespace

} // namespace mpc
