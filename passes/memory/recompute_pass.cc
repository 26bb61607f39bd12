// Puts copies of forward operations into the backward pass: what Cells ask for, then what a memory budget needs.
//
//   %y = mpc.gelu %x {mpc.recompute = 1} : tensor<4x8xf32>
//   %z = mpc.matmul %y, %w {mpc.recompute = 1} : ...
//   %dw = mpc.matmul %y, %dz {mpc.backward, transpose_a = true} : ...
// becomes
//   %y = mpc.gelu %x {mpc.recompute = 1} : tensor<4x8xf32>
//   %z = mpc.matmul %y, %w {mpc.recompute = 1} : ...
//   %y2 = mpc.gelu %x {mpc.backward, mpc.recomputed} : tensor<4x8xf32>
//   %dw = mpc.matmul %y2, %dz {mpc.backward, transpose_a = true} : ...
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "passes/function_body.h"
#include "passes/memory/recompute_candidates.h"
#include "passes/memory/recompute_marks.h"
#include "passes/passes.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_RECOMPUTEPASS
#include "passes/passes.h.inc"

namespace {

/// How many Cells a remark about a budget names.
constexpr size_t NamedCells = 8;

std::string describe(const Recomputation::Summary &Summary) {
  return llvm::formatv("{0} operation{1} run{2} again in the backward pass, {3} bytes less are kept for it",
                       Summary.Operations, Summary.Operations == 1 ? "" : "s", Summary.Operations == 1 ? "s" : "",
                       Summary.BytesSaved);
}

class RecomputePass : public impl::RecomputePassBase<RecomputePass> {
public:
  using RecomputePassBase::RecomputePassBase;

  void runOnOperation() override {
    if (candidates < 0) {
      getOperation().emitError() << "candidates of mpc-recompute must not be negative, got " << candidates.getValue();
      return signalPassFailure();
    }
    Block *Body = onlyBlock(getOperation());
    if (!Body)
      return;
    Recomputation Marked(*Body);
    addCalls(*Body, markedCall, Marked);
    Marked.apply();
    for (const auto &[Cell, Summary] : Marked.summaries())
      getOperation().emitRemark() << "recompute: " << (Cell.empty() ? "(no Cell)" : Cell) << ": " << describe(Summary);
    if (candidates > 0 && !isFitted())
      giveUp(*Body, candidates);
  }

private:
  bool isFitted() { return dialectOf(getOperation()).getRecomputeCandidatesAttrHelper().isAttrPresent(getOperation()); }

  void giveUp(Block &Body, unsigned Count) {
    CheapCandidates Cheap(Body);
    CellCandidates Cells(Body);
    int64_t Counts[] = {Cheap.size(), Cells.size()};
    dialectOf(getOperation())
        .getRecomputeCandidatesAttrHelper()
        .setAttr(getOperation(), DenseI64ArrayAttr::get(&getContext(), Counts));
    Recomputation Chosen(Body);
    if (Count <= Cheap.size()) {
      Cheap.add(Count, Chosen);
      Chosen.apply();
      return report(Chosen);
    }
    Cells.add(Body, Count - Cheap.size(), Chosen);
    Chosen.apply();
    report(Chosen);
    CheapCandidates Rest(Body);
    Recomputation Others(Body);
    Rest.add(Rest.size(), Others);
    Others.apply();
    report(Others);
  }

  void report(const Recomputation &Chosen) {
    Recomputation::Summary Total;
    std::string Cells;
    for (auto [Index, Entry] : llvm::enumerate(Chosen.summaries())) {
      Total.Operations += Entry.second.Operations;
      Total.BytesSaved += Entry.second.BytesSaved;
      if (Index < NamedCells)
        Cells += (Index ? ", " : "") + (Entry.first.empty() ? "(no Cell)" : Entry.first.str());
    }
    if (Chosen.summaries().size() > NamedCells)
      Cells += llvm::formatv(" and {0} more", Chosen.summaries().size() - NamedCells);
    if (Total.Operations > 0)
      getOperation().emitRemark() << "recompute for the memory budget: " << describe(Total) << ": " << Cells;
  }
};

} // namespace

} // namespace mpc
