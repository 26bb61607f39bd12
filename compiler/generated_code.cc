#include "compiler/generated_code.h"

#include "compiler/codegen/link_shared_object.h"
#include "llvm/Support/Error.h"

#include <chrono>

using namespace mlir;

namespace mpc::compiler {

static bool hasRegions(func::FuncOp Function) {
  return Function.walk([](FusionOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

static llvm::Expected<codegen::CodeTarget> targetOf(const runtime::Device &Device) {
  if (Device.backend() == "cpu")
    return codegen::hostTarget();
  return codegen::gpuTarget(llvm::StringRef(Device.arch().data(), Device.arch().size()));
}

static std::string cacheDir(const CompileOptions &Options) {
  if (Options.cache_dir == "off")
    return "";
  return Options.cache_dir.empty() ? codegen::defaultCacheDir() : Options.cache_dir;
}

absl::StatusOr<codegen::GeneratedCode> generateCodeFor(func::FuncOp Function, const runtime::Device &Device,
                                                       const CompileOptions &Options, CompileResult &Result) {
  if (!hasRegions(Function))
    return codegen::GeneratedCode();
  auto Start = std::chrono::steady_clock::now();
  llvm::Expected<codegen::CodeTarget> Target = targetOf(Device);
  if (!Target)
    return absl::UnavailableError(llvm::toString(Target.takeError()));
  llvm::Expected<codegen::GeneratedCode> Code =
      codegen::generateCode(Function, *Target, {cacheDir(Options), Options.threads});
  if (!Code)
    return absl::InvalidArgumentError(
        absl::StrCat("@", Function.getSymName().str(), ": ", llvm::toString(Code.takeError())));
  double Seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - Start).count();
  const codegen::CodeStatistics &Statistics = Code->statistics;
  Result.phases.push_back({"code generation", Seconds, 0});
  Result.phases.push_back({"emit", Statistics.emit_seconds, 1});
  Result.phases.push_back({"optimise", Statistics.optimise_seconds, 1});
  Result.phases.push_back({"assemble", Statistics.assemble_seconds, 1});
  Result.code = {Statistics.regions, Statistics.distinct, Statistics.from_cache};
  Result.remarks.insert(Result.remarks.end(), Code->remarks.begin(), Code->remarks.end());
  return std::move(*Code);
}

absl::Status LinkGeneratedCode(runtime::Program &Program) {
  std::vector<runtime::CodeBlob> Objects, Code;
  for (const runtime::CodeBlob &Blob : Program.code)
    (Blob.format == "object" ? Objects : Code).push_back(Blob);
  if (Objects.empty())
    return absl::OkStatus();
  llvm::Expected<runtime::CodeBlob> Linked = codegen::linkSharedObject(Objects, Program.name);
  if (!Linked)
    return absl::FailedPreconditionError(
        absl::StrCat("program \"", Program.name, "\": ", llvm::toString(Linked.takeError())));
  Code.push_back(std::move(*Linked));
  Program.code = std::move(Code);
  return absl::OkStatus();
}

} // namespace mpc::compiler
