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
#include "passes/precision/network_parts.h"
#include "passes/precision/op_precision.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_VERIFYPRECISIONPASS
#include "passes/passes.h.inc"

namespace {

bool isF32(Type type) {
  mlir::Type element = getElementTypeOrSelf(type);
  return element.isF32() || element.isF64();
}

std::string where(Operation *op) {
  ScopeAttr scope = scopeOf(op);
  return scope ? " in '" + scope.getPath().str() + "'" : std::string();
}

class VerifyPrecisionPass : public impl::VerifyPrecisionPassBase<VerifyPrecisionPass> {
public:
  using VerifyPrecisionPassBase::VerifyPrecisionPassBase;

  void runOnOperation() override {
    llvm::Expected<AmpLevel> known = parseAmpLevel(level);
    llvm::Expected<PrecisionLists> lists = PrecisionLists::create(&getContext(), allow, deny, infer, clear);
    if (!known || !lists) {
      getOperation().emitError() << llvm::toString(llvm::joinErrors(known.takeError(), lists.takeError()));
      return signalPassFailure();
    }
    bool hasFailed = false;
    NetworkParts regions(getOperation());
    getOperation().walk([&](AmpOpInterface op) {
      hasFailed |= failed(verify(op));
      if (regions.isInNetwork(op) && isSolved(levelOf(op, *known)))
        hasFailed |= failed(verifyDeny(op, *lists));
    });
    if (hasFailed)
      signalPassFailure();
    markAllAnalysesPreserved();
  }

private:
  static AmpLevel levelOf(Operation *op, AmpLevel ofModule) {
    ScopeAttr scope = scopeOf(op);
    return scope && !scope.getLevel().empty() ? llvm::cantFail(parseAmpLevel(scope.getLevel())) : ofModule;
  }

  // O1 and auto: an operation of class Deny reads and writes f32 unless the user said otherwise.
  static LogicalResult verifyDeny(AmpOpInterface op, const PrecisionLists &lists) {
    ScopeAttr scope = scopeOf(op);
    bool userSaysSo = (scope && isLow(scope.getPin())) || lists.lookup(op).has_value();
    if (op.getAmpClass() != AmpClass::Deny || userSaysSo)
      return success();
    SmallVector<Value> values(op->getOperands());
    llvm::append_range(values, op->getResults());
    for (Value v : values)
      if (isLow(elementOf(v)))
        return op->emitOpError() << "has a value of type " << v.getType() << where(op)
                                 << "; its class computes, reads and writes f32 at O1 and auto";
    return success();
  }

  static LogicalResult verify(AmpOpInterface op) {
    if (failed(verifyPinned(op)))
      return failure();
    bool hasLabels = op.getAmpClass() == AmpClass::Loss && op->getNumOperands() > 1;
    return hasLabels ? verifyLabels(op, op->getOperand(1)) : success();
  }

  // The operands and results that the operation itself declares f32.
  static LogicalResult verifyPinned(AmpOpInterface op) {
    StringRef what = op.getAmpClass() == AmpClass::Loss ? "losses" : "norm parameters and statistics";
    for (unsigned index : op.getF32Operands())
      if (index < op->getNumOperands() && isFloating(op->getOperand(index)) && !isF32(op->getOperand(index).getType()))
        return op->emitOpError() << "operand " << index << where(op) << " is " << op->getOperand(index).getType()
                                 << "; " << what << " are f32 at every level";
    for (unsigned index : op.getF32Results())
      if (!isF32(op->getResult(index).getType()))
        return op->emitOpError() << "result " << index << where(op) << " is " << op->getResult(index).getType() << "; "
                                 << what << " are f32 at every level";
    return success();
  }

  static LogicalResult verifyLabels(AmpOpInterface loss, Value labels) {
    for (Operation *op : labelSlice(labels)) {
      auto cast = dyn_cast<CastOp>(op);
      if (!cast || cast.getUser() || !isFloating(cast.getY()))
        continue;
      if (!isFloating(cast.getX()))
        return (loss.emitOpError() << where(loss) << " reads integer labels that were cast to "
                                   << cast.getY().getType())
                   .attachNote(cast.getLoc())
               << "the cast is here";
      if (isF32(cast.getX().getType()) && !isF32(cast.getY().getType()))
        return (loss.emitOpError() << where(loss) << " reads floating labels that passed through "
                                   << getElementTypeOrSelf(cast.getY().getType()))
                   .attachNote(cast.getLoc())
               << "the cast is here";
    }
    return success();
  }
};

} // namespace

} // namespace mpc
