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
  llvm::StringMap<std::int64_t> Instructions;
  llvm::StringMap<codegen::KernelResources> Assembled;
};

} // namespace

static CodeResources resourcesOf(const runtime::CodeBlob &Blob, const std::string &Architecture, llvm::StringRef Ptxas,
                                 GpuResources &Table) {
  llvm::StringRef Ptx(reinterpret_cast<const char *>(Blob.bytes.data()), Blob.bytes.size());
  CodeResources Code;
  Code.Instructions = codegen::instructionCounts(Ptx);
  if (Ptxas.empty())
    return Code;
  if (auto Assembled = codegen::assembledResources(Ptx, Architecture, Ptxas))
    Code.Assembled = std::move(*Assembled);
  else
    Table.not_assembled.try_emplace(Architecture, llvm::StringRef(llvm::toString(Assembled.takeError())).trim().str());
  return Code;
}

static RegionResources rowOf(const codegen::GeneratedCall &Call, const CodeResources &Code) {
  RegionResources Row;
  Row.kernels = static_cast<std::int64_t>(Call.stages.size());
  for (const codegen::Stage &Stage : Call.stages) {
    Row.instructions += Code.Instructions.lookup(Stage.function);
    auto Known = Code.Assembled.find(Stage.function);
    if (Known == Code.Assembled.end())
      continue;
    if (!Row.assembled)
      Row.assembled.emplace();
    RegionResources::Assembled &Most = *Row.assembled;
    const codegen::KernelResources &Kernel = Known->second;
    Most.registers = std::max(Most.registers, Kernel.registers);
    Most.spill_bytes += Kernel.spill_bytes;
    Most.stack_bytes = std::max(Most.stack_bytes, Kernel.stack_bytes);
    Most.shared_bytes = std::max(Most.shared_bytes, Kernel.shared_bytes);
  }
  return Row;
}

static llvm::Error tabulate(func::FuncOp Function, llvm::StringRef Architecture, llvm::StringRef Ptxas,
                            GpuResources &Table) {
  llvm::Expected<codegen::CodeTarget> Target = codegen::gpuTarget(Architecture);
  if (!Target)
    return Target.takeError();
  llvm::Expected<codegen::GeneratedCode> Code =
      codegen::generateCode(Function, *Target, {codegen::defaultCacheDir(), /*threads=*/0});
  if (!Code)
    return Code.takeError();
  llvm::StringMap<CodeResources> ByKernel;
  for (const runtime::CodeBlob &Blob : Code->blobs)
    ByKernel["generated." + Blob.name] = resourcesOf(Blob, Architecture.str(), Ptxas, Table);
  std::size_t Number = 0;
  for (func::FuncOp Each : withCalled(Function))
    for (auto Fusion : Each.getBody().front().getOps<FusionOp>()) {
      const codegen::GeneratedCall &Call = Code->calls[Fusion];
      RegionResources &Row = Table.rows.emplace_back(rowOf(Call, ByKernel[Call.kernel]));
      Row.region = ++Number;
      Row.architecture = Architecture.str();
    }
  return llvm::Error::success();
}

absl::StatusOr<GpuResources> TabulateGpuResources(const Module &Target, const std::string &Name,
                                                  const std::string &Architecture) {
  absl::StatusOr<func::FuncOp> Function = findFunction(Target, Name);
  if (!Function.ok())
    return Function.status();
  GpuResources Table;
  llvm::Expected<std::string> Ptxas = codegen::findPtxas();
  if (!Ptxas)
    Table.no_ptxas = llvm::toString(Ptxas.takeError());
  if (llvm::Error Failure = tabulate(*Function, Architecture, Table.no_ptxas.empty() ? *Ptxas : "", Table))
    return absl::InternalError(absl::StrCat("@", Name, ": ", llvm::toString(std::move(Failure))));
  return Table;
}

} // namespace mpc::compiler
