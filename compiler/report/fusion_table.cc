#include "compiler/report/fusion_table.h"

#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/step_signature.h"
#include "compiler/report/function_facts.h"
#include "passes/fusion/fusion_choice.h"

using namespace mlir;

namespace mpc::compiler {

static FusionRow rowOf(FusionOp Fusion) {
  FusionRow Row;
  for (Operation &Op : Fusion.getBody().front().without_terminator())
    if (!isa<ViewLikeOpInterface>(Op)) {
      Row.operations.push_back(mnemonicOf(&Op));
      Row.cells.push_back(pathOf(&Op).str());
    }
  Row.path = pathOf(Fusion).str();
  for (Value V : Fusion->getOperands())
    Row.bytes += bytesOf(V);
  for (Value V : Fusion->getResults())
    Row.bytes += bytesOf(V);
  FusionChoice Choice = readFusionChoice(Fusion);
  Row.bytes_saved = Choice.BytesSaved;
  Row.left_out.assign(Choice.LeftOut.begin(), Choice.LeftOut.end());
  return Row;
}

std::int64_t FusionTable::operations() const {
  std::int64_t Count = 0;
  for (const FusionRow &Row : rows)
    Count += static_cast<std::int64_t>(Row.operations.size());
  return Count;
}

std::int64_t FusionTable::bytes_saved() const {
  std::int64_t Bytes = 0;
  for (const FusionRow &Row : rows)
    Bytes += Row.bytes_saved;
  return Bytes;
}

absl::StatusOr<FusionTable> TabulateFusion(const Module &Target, const std::string &Name) {
  absl::StatusOr<func::FuncOp> Function = findFunction(Target, Name);
  if (!Function.ok())
    return Function.status();
  FusionTable Table;
  for (func::FuncOp Each : withCalled(*Function))
    for (auto Fusion : Each.getBody().front().getOps<FusionOp>())
      Table.rows.push_back(rowOf(Fusion));
  return Table;
}

} // namespace mpc::compiler
