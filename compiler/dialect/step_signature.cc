#include "compiler/dialect/step_signature.h"
#include "compiler/dialect/dialect.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace mpc {

bool isSequence(Operation *op) {
  return isa<func::FuncOp>(op) && op->hasAttr(MpcDialect::SequenceAttrHelper::getNameStr());
}

SmallVector<func::FuncOp> calleesFirst(ArrayRef<func::FuncOp> functions) {
  // A function whose callees are being looked at, without recursion: IR that is not verified may call as deep as it is
  // long.
  struct Visit {
    func::FuncOp function;
    SmallVector<func::FuncOp> left;
  };
  llvm::DenseSet<func::FuncOp> seen;
  SmallVector<func::FuncOp> done;
  SymbolTableCollection symbols;
  SmallVector<Visit> open;
  auto begin = [&](func::FuncOp called) {
    if (!called || !seen.insert(called).second)
      return;
    Visit next{called, {}};
    called.walk([&](RepeatOp call) {
      next.left.push_back(symbols.lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr()));
    });
    std::reverse(next.left.begin(), next.left.end());
    open.push_back(std::move(next));
  };
  for (func::FuncOp function : functions) {
    begin(function);
    while (!open.empty()) {
      if (open.back().left.empty())
        done.push_back(open.pop_back_val().function);
      else
        begin(open.back().left.pop_back_val());
    }
  }
  return done;
}

SmallVector<func::FuncOp> withCalled(func::FuncOp function) {
  SmallVector<func::FuncOp> called = calleesFirst(function);
  std::reverse(called.begin(), called.end());
  return called;
}

StepSignature::StepSignature(FunctionOpInterface function)
    : arguments(function.getNumResults()), results(function.getNumArguments()) {
  if (isSequence(function)) {
    for (unsigned result : llvm::seq(function.getNumResults()))
      arguments[result] = results[result] = result;
    return;
  }
  llvm::StringMap<unsigned> stateNamed;
  for (unsigned argument : llvm::seq(function.getNumArguments()))
    if (isState(argumentRole(function, argument)))
      stateNamed[argumentName(function, argument)] = argument;
  for (unsigned result : llvm::seq(function.getNumResults())) {
    if (!isState(resultRole(function, result)))
      continue;
    unsigned argument = stateNamed.at(resultName(function, result));
    arguments[result] = argument;
    results[argument] = result;
  }
}

} // namespace mpc
