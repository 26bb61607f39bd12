#include "passes/memory/recompute_marks.h"

#include "compiler/analysis/phases.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "llvm/ADT/MapVector.h"

#include <map>

using namespace mlir;

namespace mpc {

std::optional<int64_t> markedCall(Operation *Op) {
  auto Fusion = dyn_cast<FusionOp>(Op);
  if (!Fusion) {
    IntegerAttr Call = recomputeCallOf(Op);
    return Call ? std::optional<int64_t>(Call.getInt()) : std::nullopt;
  }
  std::optional<int64_t> Common;
  for (Operation &Nested : Fusion.getBody().front().without_terminator()) {
    std::optional<int64_t> Call = markedCall(&Nested);
    if (!Call && isMovementOrCast(&Nested))
      continue;
    if (!Call || (Common && Common != Call))
      return std::nullopt;
    Common = Call;
  }
  return Common;
}

// "net/block" of "net/block/conv1" and "net/block/conv2".
static StringRef commonPath(StringRef A, StringRef B) {
  size_t Common = 0;
  for (size_t Index = 0; Index <= std::min(A.size(), B.size()); ++Index) {
    bool EndsA = Index == A.size() || A[Index] == '/', EndsB = Index == B.size() || B[Index] == '/';
    if (EndsA && EndsB)
      Common = Index;
    if (Index == A.size() || Index == B.size() || A[Index] != B[Index])
      break;
  }
  return A.take_front(Common);
}

void addCalls(Block &Body, llvm::function_ref<std::optional<int64_t>(Operation *)> CallOf, Recomputation &Chosen) {
  llvm::MapVector<Operation *, int64_t> Calls; // in the order of the block
  std::map<int64_t, StringRef> Paths;
  for (Operation &Op : Body.without_terminator()) {
    if (isBackwardOp(&Op) || isa<ConstantOp>(Op) || Op.hasTrait<StateUpdate>())
      continue;
    std::optional<int64_t> Call = CallOf(&Op);
    if (Call) {
      auto [Path, New] = Paths.try_emplace(*Call, pathOf(&Op));
      if (!New)
        Path->second = commonPath(Path->second, pathOf(&Op));
    } else if (isMovementOrCast(&Op)) {
      Operation *Source = Op.getOperand(0).getDefiningOp();
      if (auto Known = Source ? Calls.find(Source) : Calls.end(); Known != Calls.end())
        Call = Known->second;
    }
    if (Call)
      Calls[&Op] = *Call;
  }
  for (auto [Op, Call] : Calls)
    for (Value Result : Op->getResults()) {
      auto IsInside = [&](OpOperand &Use) {
        auto Known = Calls.find(Use.getOwner());
        return isReadBackward(Use) || (Known != Calls.end() && Known->second == Call);
      };
      if (llvm::all_of(Result.getUses(), IsInside))
        Chosen.add(Result, Paths[Call]);
    }
}

} // namespace mpc
