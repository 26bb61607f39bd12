#include "compiler/dialect/step_signature.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace mpc {

StepSignature::StepSignature(FunctionOpInterface Function)
    : ArgumentOf(Function.getNumResults()), ResultOf(Function.getNumArguments()) {
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
