#include "compiler/report/unfused_function.h"

#include "compiler/report/function_facts.h"
#include "passes/fusion/unfuse.h"

using namespace mlir;

namespace mpc::compiler {

UnfusedFunction::UnfusedFunction(func::FuncOp function) : copy(function.clone()) {
  unsigned region = 0;
  for (auto fusion : llvm::make_early_inc_range(copy->getBody().front().getOps<FusionOp>())) {
    ++region;
    for (Operation &op : fusion.getBody().front().without_terminator())
      regions[&op] = region;
    unfuse(fusion);
  }
}

absl::StatusOr<UnfusedFunction> UnfusedFunction::create(const Module &target, const std::string &name) {
  absl::StatusOr<func::FuncOp> function = findFunction(target, name);
  if (!function.ok())
    return function.status();
  return UnfusedFunction(*function);
}

} // namespace mpc::compiler
