#include "compiler/report/message_table.h"

#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/messages.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/step_signature.h"
#include "compiler/report/function_facts.h"
#include "kernels/known_attributes.h"

using namespace mlir;

namespace mpc::compiler {

std::int64_t MessageTable::bytes() const {
  std::int64_t sum = 0;
  for (const MessageRow &row : rows)
    sum += row.bytes;
  return sum;
}

static void addMessages(func::FuncOp function, MessageTable &table) {
  llvm::DenseMap<std::int64_t, size_t> rowOfBucket;
  for (Operation &op : function.getBody().front()) {
    if (!sendsMessage(&op))
      continue;
    table.processes = kernelAttributes(&op).Get(attribute::kProcesses);
    size_t row = table.rows.size();
    if (IntegerAttr bucket = dialectOf(&op).getBucketAttrHelper().getAttr(&op))
      row = rowOfBucket.try_emplace(bucket.getInt(), row).first->second;
    if (row == table.rows.size())
      table.rows.emplace_back();
    table.rows[row].operations.push_back(mnemonicOf(&op));
    table.rows[row].bytes += bytesOf(op.getOperand(0));
  }
}

absl::StatusOr<MessageTable> TabulateMessages(const Module &target, const std::string &name) {
  absl::StatusOr<func::FuncOp> function = findFunction(target, name);
  if (!function.ok())
    return function.status();
  MessageTable table;
  for (func::FuncOp each : withCalled(*function))
    addMessages(each, table);
  return table;
}

} // namespace mpc::compiler
