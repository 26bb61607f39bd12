#include "passes/autodiff/flat_body.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace mpc {

namespace {

class Flattener {
public:
  Flattener(FlatBody &flat, SymbolTableCollection &symbols) : flat(flat), symbols(symbols) {}

  /// Appends the operations of \p function, called by \p user on \p arguments; returns its results.
  FailureOr<SmallVector<Value>> append(func::FuncOp function, Operation *user, ValueRange arguments);

private:
  LogicalResult appendCall(func::CallOp call, IRMapping &mapping);

  FlatBody &flat;
  SymbolTableCollection &symbols;
  /// The functions whose bodies are being copied, outermost first.
  SmallVector<func::FuncOp> stack;
};

} // namespace

FailureOr<SmallVector<Value>> Flattener::append(func::FuncOp function, Operation *user, ValueRange arguments) {
  if (llvm::is_contained(stack, function))
    return user->emitOpError() << "cannot be differentiated: function '" << function.getName() << "' calls itself";
  if (function.isExternal())
    return user->emitOpError() << "cannot be differentiated: function '" << function.getName() << "' has no body";
  if (!function.getBody().hasOneBlock() || !isa<func::ReturnOp>(function.getBody().front().getTerminator()))
    return user->emitOpError() << "cannot be differentiated: function '" << function.getName() << "' has control flow";

  stack.push_back(function);
  flat.inlined.insert(function);
  Block &source = function.getBody().front();
  IRMapping mapping;
  mapping.map(source.getArguments(), arguments);
  OpBuilder builder(user->getContext());
  builder.setInsertionPointToEnd(flat.body.get());
  for (Operation &op : source.without_terminator()) {
    if (auto call = dyn_cast<func::CallOp>(op)) {
      if (failed(appendCall(call, mapping)))
        return failure();
      builder.setInsertionPointToEnd(flat.body.get());
      continue;
    }
    builder.clone(op, mapping);
  }
  stack.pop_back();

  SmallVector<Value> results;
  for (Value returned : source.getTerminator()->getOperands())
    results.push_back(mapping.lookup(returned));
  return results;
}

LogicalResult Flattener::appendCall(func::CallOp call, IRMapping &mapping) {
  auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
  SmallVector<Value> arguments;
  for (Value operand : call.getOperands())
    arguments.push_back(mapping.lookup(operand));
  FailureOr<SmallVector<Value>> results = append(callee, call, arguments);
  if (failed(results))
    return failure();
  mapping.map(call.getResults(), *results);
  return success();
}

FailureOr<FlatBody> flattenFunction(func::FuncOp callee, Operation *user, SymbolTableCollection &symbols) {
  FlatBody flat;
  flat.body = std::make_unique<Block>();
  for (BlockArgument argument : callee.isExternal() ? ArrayRef<BlockArgument>() : callee.getArguments())
    flat.body->addArgument(argument.getType(), argument.getLoc());
  SmallVector<Value> arguments(flat.body->args_begin(), flat.body->args_end());
  FailureOr<SmallVector<Value>> results = Flattener(flat, symbols).append(callee, user, arguments);
  if (failed(results))
    return failure();
  flat.results = std::move(*results);
  return flat;
}

SmallVector<Value> splice(FlatBody &flat, Operation *place, ValueRange operands) {
  SmallVector<Value> results(flat.results);
  for (auto [argument, operand] : llvm::zip_equal(flat.body->getArguments(), operands)) {
    llvm::replace(results, Value(argument), operand);
    argument.replaceAllUsesWith(operand);
  }
  place->getBlock()->getOperations().splice(place->getIterator(), flat.body->getOperations());
  return results;
}

} // namespace mpc
