#include "compiler/report/fusion_table.h"

#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/step_signature.h"
#include "compiler/report/function_facts.h"
#include "passes/fusion/fusion_choice.h"

using namespace mlir;

namespace mpc::compiler {

static FusionRow rowOf(FusionOp fusion) {
  FusionRow row;
  for (Operation &op : fusion.getBody().front().without_terminator())
    if (!isa<ViewLikeOpInterface>(op)) {
      row.operations.push_back(mnemonicOf(&op));
      row.cells.push_back(pathOf(&op).str());
    }
  row.path = pathOf(fusion).str();
  for (Value v : fusion->getOperands())
    row.bytes += bytesOf(v);
  for (Value v : fusion->getResults())
    row.bytes += bytesOf(v);
  FusionChoice choice = readFusionChoice(fusion);
  row.bytes_saved = choice.bytesSaved;
  row.left_out.assign(choice.leftOut.begin(), choice.leftOut.end());
  return row;
}

std::int64_t FusionTable::operations() const {
  std::int64_t count = 0;
  for (const FusionRow &row : rows)
    count += static_cast<std::int64_t>(row.operations.size());
  return count;
}

std::int64_t FusionTable::bytes_saved() const {
  std::int64_t bytes = 0;
  for (const FusionRow &row : rows)
    bytes += row.bytes_saved;
  return bytes;
}

absl::StatusOr<FusionTable> TabulateFusion(const Module &target, const std::string &name) {
  absl::StatusOr<func::FuncOp> function = findFunction(target, name);
  if (!function.ok())
    return function.status();
  FusionTable table;
  for (func::FuncOp each : withCalled(*function))
    for (auto fusion : each.getBody().front().getOps<FusionOp>())
      table.rows.push_back(rowOf(fusion));
  return table;
}

} // namespace mpc::compiler
