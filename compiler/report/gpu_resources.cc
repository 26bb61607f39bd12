#include "compiler/report/gpu_resources.h"

#include "absl/strings/str_cat.h"
#include "compiler/codegen/code_generator.h"
#include "compiler/codegen/ptx_resources.h"
#include "compiler/dialect/step_signature.h"
#include "compiler/report/function_facts.h"

using namespace mlir;

namespace mpc::compiler {

namespace {

/// The kernels of one distinct region: several regions may share them.
struct CodeResources {
  llvm::StringMap<std::int64_t> instructions;
  llvm::StringMap<codegen::KernelResources> assembled;
};

} // namespace

static CodeResources resourcesOf(const runtime::CodeBlob &blob, const std::string &architecture, llvm::StringRef ptxas,
                                 GpuResources &table) {
  llvm::StringRef ptx(reinterpret_cast<const char *>(blob.bytes.data()), blob.bytes.size());
  CodeResources code;
  code.instructions = codegen::instructionCounts(ptx);
  if (ptxas.empty())
    return code;
  if (auto assembled = codegen::assembledResources(ptx, architecture, ptxas))
    code.assembled = std::move(*assembled);
  else
    table.not_assembled.try_emplace(architecture, llvm::StringRef(llvm::toString(assembled.takeError())).trim().str());
  return code;
}

static FusionResources rowOf(const codegen::GeneratedCall &call, const CodeResources &code) {
  FusionResources row;
  row.kernels = static_cast<std::int64_t>(call.stages.size());
  for (const codegen::Stage &stage : call.stages) {
    row.instructions += code.instructions.lookup(stage.function);
    auto known = code.assembled.find(stage.function);
    if (known == code.assembled.end())
      continue;
    if (!row.assembled)
      row.assembled.emplace();
    FusionResources::Assembled &most = *row.assembled;
    const codegen::KernelResources &kernel = known->second;
    most.registers = std::max(most.registers, kernel.registers);
    most.spill_bytes += kernel.spill_bytes;
    most.stack_bytes = std::max(most.stack_bytes, kernel.stack_bytes);
    most.shared_bytes = std::max(most.shared_bytes, kernel.shared_bytes);
  }
  return row;
}

static llvm::Error tabulate(func::FuncOp function, llvm::StringRef architecture, llvm::StringRef ptxas,
                            GpuResources &table) {
  llvm::Expected<codegen::CodeTarget> target = codegen::gpuTarget(architecture);
  if (!target)
    return target.takeError();
  llvm::Expected<codegen::GeneratedCode> code =
      codegen::generateCode(function, *target, {codegen::defaultCacheDir(), /*threads=*/0});
  if (!code)
    return code.takeError();
  llvm::StringMap<CodeResources> byKernel;
  for (const runtime::CodeBlob &blob : code->blobs)
    byKernel["generated." + blob.name] = resourcesOf(blob, architecture.str(), ptxas, table);
  std::size_t number = 0;
  for (func::FuncOp each : withCalled(function))
    for (auto fusion : each.getBody().front().getOps<FusionOp>()) {
      const codegen::GeneratedCall &call = code->calls[fusion];
      FusionResources &row = table.rows.emplace_back(rowOf(call, byKernel[call.kernel]));
      row.region = ++number;
      row.architecture = architecture.str();
    }
  return llvm::Error::success();
}

absl::StatusOr<GpuResources> TabulateGpuResources(const Module &target, const std::string &name,
                                                  const std::string &architecture) {
  absl::StatusOr<func::FuncOp> function = findFunction(target, name);
  if (!function.ok())
    return function.status();
  GpuResources table;
  llvm::Expected<std::string> ptxas = codegen::findPtxas();
  if (!ptxas)
    table.no_ptxas = llvm::toString(ptxas.takeError());
  if (llvm::Error failure = tabulate(*function, architecture, table.no_ptxas.empty() ? *ptxas : "", table))
    return absl::InternalError(absl::StrCat("@", name, ": ", llvm::toString(std::move(failure))));
  return table;
}

} // namespace mpc::compiler
