#include "compiler/lowering/fusion_instruction.h"

#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/operation_attributes.h"
#include "runtime/generated_call.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace mpc::compiler {

bool isKnownTensor(Type t) {
  auto tensor = dyn_cast<RankedTensorType>(t);
  return tensor && tensor.hasStaticShape() && toDType(tensor.getElementType());
}

runtime::Instruction loneInstruction(Operation *op, llvm::function_ref<runtime::ValueId(Value)> idOf) {
  runtime::Instruction result;
  result.kernel = kernelName(op);
  result.attributes = kernelAttributes(op);
  for (Value operand : op->getOperands())
    result.inputs.push_back(idOf(operand));
  // A kernel leaves out what nobody reads.
  for (Value output : op->getResults())
    result.outputs.push_back(output.use_empty() ? runtime::kNoValue : idOf(output));
  return result;
}

// Elements times operations: what the operations would be worth apart.
static std::int64_t workOf(FusionOp fusion) {
  std::int64_t work = 0;
  for (Operation &op : fusion.getBody().front().without_terminator()) {
    std::int64_t largest = 0;
    for (Value operand : op.getOperands())
      largest = std::max(largest, cast<RankedTensorType>(operand.getType()).getNumElements());
    for (Value output : op.getResults())
      largest = std::max(largest, cast<RankedTensorType>(output.getType()).getNumElements());
    work += largest;
  }
  return work;
}

// The Cell path of the region, or else of its first operation with a scope.
static std::string pathOfRegion(FusionOp fusion) {
  if (ScopeAttr scope = scopeOf(fusion))
    return scope.getPath().str();
  for (Operation &op : fusion.getBody().front())
    if (ScopeAttr scope = scopeOf(&op))
      return scope.getPath().str();
  return "";
}

// "relu_grad, batch_norm_train_grad": each operation but views, in order.
static std::string operationsOf(FusionOp fusion) {
  SmallVector<StringRef> names;
  for (Operation &op : fusion.getBody().front().without_terminator())
    if (!isa<ViewLikeOpInterface>(op))
      names.push_back(op.getName().stripDialect());
  return llvm::join(names, ", ");
}

runtime::Instruction fusionInstruction(FusionOp fusion, const codegen::GeneratedCall &call,
                                       const std::vector<FusionAlias> &aliases) {
  std::vector<std::int64_t> blocks, threads, sharedBytes, pairs;
  for (const codegen::Stage &stage : call.stages) {
    blocks.push_back(stage.blocks);
    threads.push_back(stage.threads);
    sharedBytes.push_back(stage.shared_bytes);
  }
  for (auto [output, input] : aliases) {
    pairs.push_back(output);
    pairs.push_back(input);
  }
  runtime::Instruction result;
  result.kernel = call.kernel;
  result.scope = pathOfRegion(fusion);
  result.workspace_bytes = call.workspace_bytes;
  result.attributes.Set(runtime::kBlocksAttribute, std::move(blocks));
  result.attributes.Set(runtime::kThreadsAttribute, std::move(threads));
  result.attributes.Set(runtime::kSharedBytesAttribute, std::move(sharedBytes));
  result.attributes.Set(runtime::kWorkAttribute, workOf(fusion));
  result.attributes.Set(runtime::kOperationsAttribute, operationsOf(fusion));
  if (!pairs.empty())
    result.attributes.Set(runtime::kAliasesAttribute, std::move(pairs));
  return result;
}

} // namespace mpc::compiler
