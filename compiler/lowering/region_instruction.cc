#include "compiler/lowering/region_instruction.h"

#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/operation_attributes.h"
#include "runtime/generated_call.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace mpc::compiler {

bool isKnownTensor(Type T) {
  auto Tensor = dyn_cast<RankedTensorType>(T);
  return Tensor && Tensor.hasStaticShape() && toDType(Tensor.getElementType());
}

runtime::Instruction loneInstruction(Operation *Op, llvm::function_ref<runtime::ValueId(Value)> IdOf) {
  runtime::Instruction Result;
  Result.kernel = Op->getName().stripDialect().str();
  Result.attributes = kernelAttributes(Op);
  for (Value Operand : Op->getOperands())
    Result.inputs.push_back(IdOf(Operand));
  // A kernel leaves out what nobody reads.
  for (Value Output : Op->getResults())
    Result.outputs.push_back(Output.use_empty() ? runtime::kNoValue : IdOf(Output));
  return Result;
}

// Elements times operations: what the operations would be worth apart.
static std::int64_t workOf(FusionOp Fusion) {
  std::int64_t Work = 0;
  for (Operation &Op : Fusion.getBody().front().without_terminator()) {
    std::int64_t Largest = 0;
    for (Value Operand : Op.getOperands())
      Largest = std::max(Largest, cast<RankedTensorType>(Operand.getType()).getNumElements());
    for (Value Output : Op.getResults())
      Largest = std::max(Largest, cast<RankedTensorType>(Output.getType()).getNumElements());
    Work += Largest;
  }
  return Work;
}

// The Cell path of the region, or else of its first operation with a scope.
static std::string pathOfRegion(FusionOp Fusion) {
  if (ScopeAttr Scope = scopeOf(Fusion))
    return Scope.getPath().str();
  for (Operation &Op : Fusion.getBody().front())
    if (ScopeAttr Scope = scopeOf(&Op))
      return Scope.getPath().str();
  return "";
}

// "relu_grad, batch_norm_train_grad": each operation but views, in order.
static std::string operationsOf(FusionOp Fusion) {
  SmallVector<StringRef> Names;
  for (Operation &Op : Fusion.getBody().front().without_terminator())
    if (!isa<ViewLikeOpInterface>(Op))
      Names.push_back(Op.getName().stripDialect());
  return llvm::join(Names, ", ");
}

runtime::Instruction regionInstruction(FusionOp Fusion, const codegen::GeneratedCall &Call,
                                       const std::vector<RegionAlias> &Aliases) {
  std::vector<std::int64_t> Blocks, Threads, SharedBytes, Pairs;
  for (const codegen::Stage &Stage : Call.stages) {
    Blocks.push_back(Stage.blocks);
    Threads.push_back(Stage.threads);
    SharedBytes.push_back(Stage.shared_bytes);
  }
  for (auto [Output, Input] : Aliases) {
    Pairs.push_back(Output);
    Pairs.push_back(Input);
  }
  runtime::Instruction Result;
  Result.kernel = Call.kernel;
  Result.scope = pathOfRegion(Fusion);
  Result.workspace_bytes = Call.workspace_bytes;
  Result.attributes.Set(runtime::kBlocksAttribute, std::move(Blocks));
  Result.attributes.Set(runtime::kThreadsAttribute, std::move(Threads));
  Result.attributes.Set(runtime::kSharedBytesAttribute, std::move(SharedBytes));
  Result.attributes.Set(runtime::kWorkAttribute, workOf(Fusion));
  Result.attributes.Set(runtime::kOperationsAttribute, operationsOf(Fusion));
  if (!Pairs.empty())
    Result.attributes.Set(runtime::kAliasesAttribute, std::move(Pairs));
  return Result;
}

} // namespace mpc::compiler
