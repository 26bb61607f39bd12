#include "compiler/dialect/step_signature.h"
#include "compiler/dialect/dialect.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace mpc {

bool isSequence(Operation *Op) {
  return isa<func::FuncOp>(Op) && Op->hasAttr(MpcDialect::SequenceAttrHelper::getNameStr());
}

SmallVector<func::FuncOp> withCalled(func::FuncOp Function) {
  // A function whose callees are being looked at, without recursion: IR that is not verified may call as deep as it is
  // long.
  struct Visit {
    func::FuncOp Function;
    SmallVector<func::FuncOp> Left;
  };
  llvm::DenseSet<func::FuncOp> Seen;
  SmallVector<func::FuncOp> CalleesFirst;
  SmallVector<Visit> Open;
  auto Begin = [&](func::FuncOp Called) {
    if (!Called || !Seen.insert(Called).second)
      return;
    Visit New{Called, {}};
    Called.walk([&](RepeatOp Call) { New.Left.push_back(Call.getFunction()); });
    std::reverse(New.Left.begin(), New.Left.end());
    Open.push_back(std::move(New));
  };
  Begin(Function);
  while (!Open.empty()) {
    if (Open.back().Left.empty())
      CalleesFirst.push_back(Open.pop_back_val().Function);
    else
      Begin(Open.back().Left.pop_back_val());
  }
  std::reverse(CalleesFirst.begin(), CalleesFirst.end());
  return CalleesFirst;
}

StepSignature::StepSignature(FunctionOpInterface Function)
    : ArgumentOf(Function.getNumResults()), ResultOf(Function.getNumArguments()) {
  if (isSequence(Function)) {
    for (unsigned Result : llvm::seq(Function.getNumResults()))
      ArgumentOf[Result] = ResultOf[Result] = Result;
    return;
  }
  llvm::StringMap<unsigned> StateNamed;
  for (unsigned Argument : llvm::seq(Function.getNumArguments()))
    if (isState(argumentRole(Function, Argument)))
      StateNamed[argumentName(Function, Argument)] = Argument;
  for (unsigned Result : llvm::seq(Function.getNumResults())) {
    if (!isState(resultRole(Function, Result)))
      continue;
    unsigned Argument = StateNamed.at(resultName(Function, Result));
    ArgumentOf[Result] = Argument;
    ResultOf[Argument] = Result;
  }
}

} // namespace mpc
