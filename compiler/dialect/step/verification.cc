// Verifies what requests for gradients, calls and guarded updates promise beside their types.
#include "compiler/dialect/inference_support.h"
#include "compiler/dialect/step_signature.h"
#include "runtime/program.h"

using namespace mlir;

namespace mpc {

// The function that an operation calls; emits an error and returns null where there is none.
template <typename CallOp> static func::FuncOp findCallee(CallOp Op, SymbolTableCollection &Symbols) {
  auto Callee = Symbols.lookupNearestSymbolFrom<func::FuncOp>(Op, Op.getCalleeAttr());
  if (!Callee)
    Op.emitOpError() << "calls '" << Op.getCallee() << "', which is not a function of this module";
  return Callee;
}

// Whether the inputs and results of an operation are those of the function that it calls.
template <typename CallOp> static LogicalResult verifySignature(CallOp Op, func::FuncOp Callee) {
  if (llvm::equal(Callee.getArgumentTypes(), Op.getInputs().getTypes()) &&
      llvm::equal(Callee.getResultTypes(), Op.getResultTypes()))
    return success();
  return Op.emitOpError() << "maps (" << Op.getInputs().getTypes() << ") to (" << Op.getResultTypes() << "), but '"
                          << Op.getCallee() << "' is " << Callee.getFunctionType();
}

static LogicalResult verifySeed(Operation *Op, RankedTensorType Seed, RankedTensorType Loss) {
  if (Seed.getRank() == 0 || Seed.getShape() == Loss.getShape())
    return success();
  return Op->emitOpError() << "seed is " << Seed << "; it must be a scalar or have the loss's shape "
                           << shapeText(Loss.getShape());
}

LogicalResult ValueAndGradOp::verifySymbolUses(SymbolTableCollection &Symbols) {
  func::FuncOp Callee = findCallee(*this, Symbols);
  if (!Callee)
    return failure();
  FunctionType Type = Callee.getFunctionType();
  if (Type.getInputs() != ArrayRef<mlir::Type>(llvm::to_vector(getInputs().getTypes())))
    return emitOpError() << "passes operands (" << getInputs().getTypes() << ") to '" << getCallee()
                         << "', which takes (" << Type.getInputs() << ")";
  if (Type.getNumResults() == 0)
    return emitOpError() << "needs a function that returns a loss; '" << getCallee() << "' returns nothing";
  size_t Forward = Type.getNumResults();
  if (getNumResults() != Forward + getWrt().size())
    return emitOpError() << "has " << getNumResults() << " results, expected " << Forward << " of '" << getCallee()
                         << "' and " << getWrt().size() << " gradients";
  for (auto [Index, Expected] : llvm::enumerate(Type.getResults()))
    if (getResult(Index).getType() != Expected)
      return emitOpError() << "result " << Index << " is " << getResult(Index).getType() << ", '" << getCallee()
                           << "' returns " << Expected;
  for (auto [Index, Position] : llvm::enumerate(getWrt()))
    if (getResult(Forward + Index).getType() != getInputs()[Position].getType())
      return emitOpError() << "gradient " << Index << " is " << getResult(Forward + Index).getType() << ", operand "
                           << Position << " is " << getInputs()[Position].getType();
  return success();
}

LogicalResult ValueAndGradOp::verify() {
  for (int64_t Position : getWrt()) {
    if (Position < 0 || Position >= int64_t(getInputs().size()))
      return emitOpError() << "wrt names operand " << Position << " of " << getInputs().size();
    if (!isFloating(getInputs()[Position]))
      return emitOpError() << "wrt names operand " << Position << " of type " << getInputs()[Position].getType()
                           << "; only floating operands have gradients";
  }
  if (getNumResults() == 0)
    return emitOpError() << "has no loss";
  auto Loss = dyn_cast<RankedTensorType>(getResult(0).getType());
  auto Seed = cast<RankedTensorType>(getSeed().getType());
  if (!Loss || !isFloating(getResult(0)))
    return emitOpError() << "differentiates the first result, which must be floating, got " << getResult(0).getType();
  return verifySeed(*this, Seed, Loss);
}

LogicalResult BackwardOp::verify() {
  auto Loss = cast<RankedTensorType>(getLoss().getType());
  auto Seed = cast<RankedTensorType>(getSeed().getType());
  if (failed(verifySeed(*this, Seed, Loss)))
    return failure();
  if (getWrt().size() != getGradients().size())
    return emitOpError() << "has " << getGradients().size() << " results for " << getWrt().size()
                         << " operands to differentiate by; the counts must agree";
  for (auto [Index, Operand, Gradient] : llvm::enumerate(getWrt(), getGradients()))
    if (Operand.getType() != Gradient.getType())
      return emitOpError() << "gradient " << Index << " is " << Gradient.getType() << ", its operand is "
                           << Operand.getType();
  return success();
}

func::FuncOp RepeatOp::getFunction() {
  return SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(getOperation(), getCalleeAttr());
}

LogicalResult RepeatOp::verifySymbolUses(SymbolTableCollection &Symbols) {
  auto Callee = findCallee(*this, Symbols);
  if (!Callee)
    return failure();
  if (!isSequence(Callee) || Callee.isExternal())
    return emitOpError() << "calls '" << getCallee() << "', which has no "
                         << (Callee.isExternal() ? "body" : MpcDialect::SequenceAttrHelper::getNameStr());
  if (failed(verifySignature(*this, Callee)))
    return failure();
  auto Caller = (*this)->getParentOfType<func::FuncOp>();
  if (Caller && llvm::is_contained(withCalled(Callee), Caller))
    return emitOpError() << "calls '" << getCallee() << "', which calls '" << Caller.getSymName() << "' again";
  return success();
}

LogicalResult RepeatOp::verify() {
  auto Count = static_cast<int64_t>(getCount());
  if (Count < 1 || Count > runtime::kMostRuns)
    return emitOpError() << "calls its function " << Count << " times; 1 is the least, " << runtime::kMostRuns
                         << " the most";
  if (getNumResults() == 0)
    return emitOpError() << "has no results, so that it computes nothing";
  return success();
}

LogicalResult CustomVjpOp::verifySymbolUses(SymbolTableCollection &Symbols) {
  auto Lookup = [&](FlatSymbolRefAttr Name) { return Symbols.lookupNearestSymbolFrom<func::FuncOp>(*this, Name); };
  func::FuncOp Callee = Lookup(getCalleeAttr()), Rule = Lookup(getVjpAttr());
  if (!Callee || !Rule)
    return emitOpError() << "names '" << (Callee ? getVjp() : getCallee())
                         << "', which is not a function of this module";
  if (failed(verifySignature(*this, Callee)))
    return failure();
  SmallVector<Type> Taken(getInputs().getTypes()), Returned;
  llvm::append_range(Taken, getResultTypes());
  llvm::append_range(Taken, getResultTypes());
  for (Value Input : getInputs())
    if (isFloating(Input))
      Returned.push_back(Input.getType());
  if (!llvm::equal(Rule.getArgumentTypes(), Taken) || !llvm::equal(Rule.getResultTypes(), Returned))
    return emitOpError() << "needs a rule '" << getVjp() << "' from inputs, outputs and cotangents (" << Taken
                         << ") to one cotangent a floating input (" << Returned << "), got " << Rule.getFunctionType();
  return success();
}

LogicalResult AllReduceOp::verify() {
  if (getProcesses() != 1)
    return emitOpError() << "sums over " << getProcesses() << " processes; a Program runs in one";
  if (getX().getType() != getY().getType())
    return emitOpError() << "gives " << getY().getType() << " of " << getX().getType() << "; the sum keeps the type";
  return success();
}

LogicalResult GuardedUpdateOp::verify() {
  if (cast<RankedTensorType>(getCondition().getType()).getRank() != 0)
    return emitOpError() << "condition must be a scalar, got " << getCondition().getType();
  auto Yield = cast<YieldOp>(getBody().front().getTerminator());
  if (Yield.getValues().size() != getNumResults() || getOld().size() != getNumResults())
    return emitOpError() << "has " << getNumResults() << " results, " << Yield.getValues().size()
                         << " yielded values and " << getOld().size() << " old values; the counts must agree";
  for (auto [Result, New, Old] : llvm::zip_equal(getResults(), Yield.getValues(), getOld()))
    if (Result.getType() != New.getType() || Result.getType() != Old.getType())
      return resultError(cast<OpResult>(Result)) << ", yielded " << New.getType() << ", old " << Old.getType();
  for (Operation &Op : getBody().front().without_terminator()) {
    bool Allowed = Op.hasTrait<StateUpdate>() || has<Property::PreparesUpdate>(&Op);
    if (!Allowed)
      return (emitOpError() << "may hold only updates of state, unscale, clip_by_norm, casts and constants")
                 .attachNote(Op.getLoc())
             << "'" << Op.getName() << "' is none of these";
  }
  return success();
}

} // namespace mpc
