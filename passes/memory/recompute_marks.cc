#include "passes/memory/recompute_marks.h"

#include "compiler/analysis/block_dependences.h"
#include "compiler/analysis/phases.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "llvm/ADT/MapVector.h"

#include <map>

using namespace mlir;

namespace mpc {

std::optional<int64_t> markedCall(Operation *op) {
  auto fusion = dyn_cast<FusionOp>(op);
  if (!fusion) {
    IntegerAttr call = recomputeCallOf(op);
    return call ? std::optional<int64_t>(call.getInt()) : std::nullopt;
  }
  std::optional<int64_t> common;
  for (Operation &nested : fusion.getBody().front().without_terminator()) {
    std::optional<int64_t> call = markedCall(&nested);
    if (!call && isMovementOrCast(&nested))
      continue;
    if (!call || (common && common != call))
      return std::nullopt;
    common = call;
  }
  return common;
}

// "net/block" of "net/block/conv1" and "net/block/conv2".
static StringRef commonPath(StringRef a, StringRef b) {
  size_t common = 0;
  for (size_t index = 0; index <= std::min(a.size(), b.size()); ++index) {
    bool endsA = index == a.size() || a[index] == '/', endsB = index == b.size() || b[index] == '/';
    if (endsA && endsB)
      common = index;
    if (index == a.size() || index == b.size() || a[index] != b[index])
      break;
  }
  return a.take_front(common);
}

void addCalls(Block &body, llvm::function_ref<std::optional<int64_t>(Operation *)> callOf, Recomputation &chosen) {
  llvm::MapVector<Operation *, int64_t> calls; // in the order of the block
  std::map<int64_t, StringRef> paths;
  for (Operation &op : body.without_terminator()) {
    if (isBackwardOp(&op) || isa<ConstantOp>(op) || !mayRunAgain(&op))
      continue;
    std::optional<int64_t> call = callOf(&op);
    if (call) {
      auto [path, isNew] = paths.try_emplace(*call, pathOf(&op));
      if (!isNew)
        path->second = commonPath(path->second, pathOf(&op));
    } else if (isMovementOrCast(&op)) {
      Operation *source = op.getOperand(0).getDefiningOp();
      if (auto known = source ? calls.find(source) : calls.end(); known != calls.end())
        call = known->second;
    }
    if (call)
      calls[&op] = *call;
  }
  for (auto [op, call] : calls)
    for (Value result : op->getResults()) {
      auto isInside = [&](OpOperand &use) {
        auto known = calls.find(use.getOwner());
        return isReadBackward(use) || (known != calls.end() && known->second == call);
      };
      if (llvm::all_of(result.getUses(), isInside))
        chosen.add(result, paths[call]);
    }
}

} // namespace mpc
