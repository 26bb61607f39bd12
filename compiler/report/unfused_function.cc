#include "compiler/report/unfused_function.h"

#include "compiler/report/function_facts.h"
#include "passes/fusion/unfuse.h"

using namespace mlir;

namespace mpc::compiler {

UnfusedFunction::UnfusedFunction(func::FuncOp Function) : Copy(Function.clone()) {
  unsigned Region = 0;
  for (auto Fusion : llvm::make_early_inc_range(Copy->getBody().front().getOps<FusionOp>())) {
    ++Region;
    for (Operation &Op : Fusion.getBody().front().without_terminator())
      Regions[&Op] = Region;
    unfuse(Fusion);
  }
}

absl::StatusOr<UnfusedFunction> UnfusedFunction::of(const Module &Target, const std::string &Name) {
  absl::StatusOr<func::FuncOp> Function = findFunction(Target, Name);
  if (!Function.ok())
    return Function.status();
  return UnfusedFunction(*Function);
}

} // namespace mpc::compiler
