#include "passes/autodiff/flat_body.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace mpc {

namespace {

class Flattener {
public:
  Flattener(FlatBody &Flat, SymbolTableCollection &Symbols) : Flat(Flat), Symbols(Symbols) {}

  /// Appends the operations of \p Function, called by \p User on \p Arguments; returns its results.
  FailureOr<SmallVector<Value>> append(func::FuncOp Function, Operation *User, ValueRange Arguments);

private:
  LogicalResult appendCall(func::CallOp Call, IRMapping &Mapping);

  FlatBody &Flat;
  SymbolTableCollection &Symbols;
  /// The functions whose bodies are being copied, outermost first.
  SmallVector<func::FuncOp> Stack;
};

} // namespace

FailureOr<SmallVector<Value>> Flattener::append(func::FuncOp Function, Operation *User, ValueRange Arguments) {
  if (llvm::is_contained(Stack, Function))
    return User->emitOpError() << "cannot be differentiated: function '" << Function.getName() << "' calls itself";
  if (Function.isExternal())
    return User->emitOpError() << "cannot be differentiated: function '" << Function.getName() << "' has no body";
  if (!Function.getBody().hasOneBlock() || !isa<func::ReturnOp>(Function.getBody().front().getTerminator()))
    return User->emitOpError() << "cannot be differentiated: function '" << Function.getName() << "' has control flow";

  Stack.push_back(Function);
  Flat.Inlined.insert(Function);
  Block &Source = Function.getBody().front();
  IRMapping Mapping;
  Mapping.map(Source.getArguments(), Arguments);
  OpBuilder Builder(User->getContext());
  Builder.setInsertionPointToEnd(Flat.Body.get());
  for (Operation &Op : Source.without_terminator()) {
    if (auto Call = dyn_cast<func::CallOp>(Op)) {
      if (failed(appendCall(Call, Mapping)))
        return failure();
      Builder.setInsertionPointToEnd(Flat.Body.get());
      continue;
    }
    Builder.clone(Op, Mapping);
  }
  Stack.pop_back();

  SmallVector<Value> Results;
  for (Value Returned : Source.getTerminator()->getOperands())
    Results.push_back(Mapping.lookup(Returned));
  return Results;
}

LogicalResult Flattener::appendCall(func::CallOp Call, IRMapping &Mapping) {
  auto Callee = Symbols.lookupNearestSymbolFrom<func::FuncOp>(Call, Call.getCalleeAttr());
  SmallVector<Value> Arguments;
  for (Value Operand : Call.getOperands())
    Arguments.push_back(Mapping.lookup(Operand));
  FailureOr<SmallVector<Value>> Results = append(Callee, Call, Arguments);
  if (failed(Results))
    return failure();
  Mapping.map(Call.getResults(), *Results);
  return success();
}

FailureOr<FlatBody> flattenFunction(func::FuncOp Callee, Operation *User, SymbolTableCollection &Symbols) {
  FlatBody Flat;
  Flat.Body = std::make_unique<Block>();
  for (BlockArgument Argument : Callee.isExternal() ? ArrayRef<BlockArgument>() : Callee.getArguments())
    Flat.Body->addArgument(Argument.getType(), Argument.getLoc());
  SmallVector<Value> Arguments(Flat.Body->args_begin(), Flat.Body->args_end());
  FailureOr<SmallVector<Value>> Results = Flattener(Flat, Symbols).append(Callee, User, Arguments);
  if (failed(Results))
    return failure();
  Flat.Results = std::move(*Results);
  return Flat;
}

SmallVector<Value> splice(FlatBody &Flat, Operation *Place, ValueRange Operands) {
  SmallVector<Value> Results(Flat.Results);
  for (auto [Argument, Operand] : llvm::zip_equal(Flat.Body->getArguments(), Operands)) {
    llvm::replace(Results, Value(Argument), Operand);
    Argument.replaceAllUsesWith(Operand);
  }
  Place->getBlock()->getOperations().splice(Place->getIterator(), Flat.Body->getOperations());
  return Results;
}

} // namespace mpc
