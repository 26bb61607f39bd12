// Puts copies of forward operations into the backward pass: what Cells ask for, then what a memory budget needs.
//
//   %y = mpc.gelu %x {mpc.recompute = 1} : tensor<4x8xf32>
//   %z = mpc.matmul %y, %w {mpc.recompute = 1} : ...
//   %dw = mpc.matmul %y, %dz {transpose_a = true} backward : ...
// becomes
//   %y = mpc.gelu %x {mpc.recompute = 1} : tensor<4x8xf32>
//   %z = mpc.matmul %y, %w {mpc.recompute = 1} : ...
//   %y2 = mpc.gelu %x {mpc.recomputed} backward : tensor<4x8xf32>
//   %dw = mpc.matmul %y2, %dz {transpose_a = true} backward : ...
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
constexpr size_t namedCells = 8;

std::string describe(const Recomputation::Summary &summary) {
  return llvm::formatv("{0} operation{1} run{2} again in the backward pass, {3} bytes less are kept for it",
                       summary.operations, summary.operations == 1 ? "" : "s", summary.operations == 1 ? "s" : "",
                       summary.bytesSaved);
}

class RecomputePass : public impl::RecomputePassBase<RecomputePass> {
public:
  using RecomputePassBase::RecomputePassBase;

  void runOnOperation() override {
    if (candidates < 0) {
      getOperation().emitError() << "candidates of mpc-recompute must not be negative, got " << candidates.getValue();
      return signalPassFailure();
    }
    Block *body = onlyBlock(getOperation());
    if (!body)
      return;
    Recomputation marked(*body);
    addCalls(*body, markedCall, marked);
    marked.apply();
    for (const auto &[cell, summary] : marked.getSummaries())
      getOperation().emitRemark() << "recompute: " << (cell.empty() ? "(no cell)" : cell) << ": " << describe(summary);
    if (candidates > 0 && !isFitted())
      giveUp(*body, candidates);
  }

private:
  bool isFitted() { return dialectOf(getOperation()).getRecomputeCandidatesAttrHelper().isAttrPresent(getOperation()); }

  void giveUp(Block &body, unsigned count) {
    CheapCandidates cheap(body);
    CellCandidates cells(body);
    int64_t counts[] = {cheap.size(), cells.size()};
    dialectOf(getOperation())
        .getRecomputeCandidatesAttrHelper()
        .setAttr(getOperation(), DenseI64ArrayAttr::get(&getContext(), counts));
    Recomputation chosen(body);
    if (count <= cheap.size()) {
      cheap.add(count, chosen);
      chosen.apply();
      return report(chosen);
    }
    cells.add(body, count - cheap.size(), chosen);
    chosen.apply();
    report(chosen);
    CheapCandidates rest(body);
    Recomputation others(body);
    rest.add(rest.size(), others);
    others.apply();
    report(others);
  }

  void report(const Recomputation &chosen) {
    Recomputation::Summary total;
    std::string cells;
    for (auto [index, entry] : llvm::enumerate(chosen.getSummaries())) {
      total.operations += entry.second.operations;
      total.bytesSaved += entry.second.bytesSaved;
      if (index < namedCells)
        cells += (index ? ", " : "") + (entry.first.empty() ? "(no Cell)" : entry.first.str());
    }
    if (chosen.getSummaries().size() > namedCells)
      cells += llvm::formatv(" and {0} more", chosen.getSummaries().size() - namedCells);
    if (total.operations > 0)
      getOperation().emitRemark() << "recompute for the memory budget: " << describe(total) << ": " << cells;
  }
};

} // namespace

} // namespace mpc
