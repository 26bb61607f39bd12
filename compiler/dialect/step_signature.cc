#include "compiler/dialect/step_signature.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace mpc {

StepSignature::StepSignature(FunctionOpInterface Function)
    : ArgumentOf(Function.getNumResults()), ResultOf(Function.getNumArguments()) {
  llvm::StringMap<unsigned> StateNamed;
  for (unsigned Argument : llvm::seq(Function.getNumArguments()))
    if (StringRef Name = argumentName(Function, Argument); !Name.empty() && isState(argumentRole(Function, Argument)))
      StateNamed[Name] = Argument;
  for (unsigned Result : llvm::seq(Function.getNumResults())) {
    std::optional<Role> Own = resultRole(Function, Result);
    auto Found = isState(Own) ? StateNamed.find(resultName(Function, Result)) : StateNamed.end();
    if (Found == StateNamed.end() || argumentRole(Function, Found->second) != Own)
      continue;
    ArgumentOf[Result] = Found->second;
    ResultOf[Found->second] = Result;
  }
}

} // namespace mpc
