#include "compiler/report/unfused_function.h"

#include "compiler/dialect/step_signature.h"
#include "compiler/report/function_facts.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "passes/fusion/unfuse.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <map>

using namespace mlir;

namespace mpc::compiler {

// How often each function that `mpc.repeat` calls runs in a run of \p function.
static llvm::DenseMap<Operation *, uint64_t> countRuns(func::FuncOp function) {
  llvm::DenseMap<Operation *, uint64_t> runs{{function, 1}};
  // Callers come first, so that a count is complete where it is read.
  for (func::FuncOp caller : withCalled(function))
    caller.walk([&](RepeatOp call) {
      uint64_t added = llvm::SaturatingMultiply(runs[caller], uint64_t(call.getCount()));
      runs[call.getFunction()] = llvm::SaturatingAdd(runs[call.getFunction()], added);
    });
  return runs;
}

UnfusedFunction::UnfusedFunction(func::FuncOp function) : copy(function.clone()) {
  openLoops(function);
  takeRegionsApart();
}

// Each function is opened once: calls of calls may be more than anybody can read.
void UnfusedFunction::openLoops(func::FuncOp function) {
  SmallVector<RepeatOp> calls;
  copy->walk([&](RepeatOp call) { calls.push_back(call); });
  if (calls.empty())
    return;
  std::reverse(calls.begin(), calls.end());
  llvm::DenseMap<Operation *, uint64_t> runs = countRuns(function);
  llvm::DenseSet<Operation *> opened;
  while (!calls.empty()) {
    RepeatOp call = calls.pop_back_val();
    // The copy lies in no module.
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(function, call.getCalleeAttr());
    if (!callee || callee.isExternal() || !opened.insert(callee).second)
      continue;
    Loop loop{callee.getSymName().str(), int64_t(std::min(runs.lookup(callee), uint64_t(INT64_MAX)))};
    IRMapping values;
    values.map(callee.getArguments(), call.getInputs());
    OpBuilder builder(call);
    SmallVector<RepeatOp> inner;
    Block &body = callee.getBody().front();
    for (Operation &op : body.without_terminator())
      builder.clone(op, values)->walk([&](Operation *nested) {
        loops[nested] = loop;
        if (auto nestedCall = dyn_cast<RepeatOp>(nested))
          inner.push_back(nestedCall);
      });
    calls.append(inner.rbegin(), inner.rend());
    for (auto [result, given] : llvm::zip(call.getResults(), body.getTerminator()->getOperands()))
      result.replaceAllUsesWith(values.lookup(given));
    loops.erase(call);
    call.erase();
  }
}

void UnfusedFunction::takeRegionsApart() {
  std::map<std::string, unsigned> counts;
  for (auto fusion : llvm::make_early_inc_range(copy->getBody().front().getOps<FusionOp>())) {
    unsigned region = ++counts[loopOf(fusion)];
    for (Operation &op : fusion.getBody().front().without_terminator())
      regions[&op] = region;
    loops.erase(fusion);
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
