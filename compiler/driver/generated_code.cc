#include "compiler/driver/generated_code.h"

#include "compiler/codegen/link_shared_object.h"
#include "compiler/dialect/step_signature.h"
#include "compiler/driver/pass_runner.h"
#include "compiler/target/targets.h"
#include "runtime/stopwatch.h"
#include "llvm/Support/Error.h"

using namespace mlir;

namespace mpc::compiler {

static bool hasRegions(func::FuncOp Function) {
  return llvm::any_of(withCalled(Function), [](func::FuncOp Each) {
    return Each.walk([](FusionOp) { return WalkResult::interrupt(); }).wasInterrupted();
  });
}

static std::string cacheDir(const CompileOptions &Options) {
  if (Options.cache_dir == "off")
    return "";
  return Options.cache_dir.empty() ? codegen::defaultCacheDir() : Options.cache_dir;
}

static absl::Status invalid(func::FuncOp Function, llvm::Error Failure) {
  return absl::InvalidArgumentError(
      absl::StrCat("@", Function.getSymName().str(), ": ", llvm::toString(std::move(Failure))));
}

absl::Status StepCode::findTarget() {
  if (Generator)
    return absl::OkStatus();
  llvm::Expected<codegen::CodeTarget> Target = codeTargetOf(Device);
  if (!Target)
    return absl::UnavailableError(llvm::toString(Target.takeError()));
  Generator.emplace(*std::move(Target), codegen::CodeOptions{cacheDir(Options), Options.threads});
  return absl::OkStatus();
}

absl::StatusOr<codegen::GeneratedCode> StepCode::make(func::FuncOp Function, Maker Make) {
  if (absl::Status Found = findTarget(); !Found.ok())
    return Found;
  llvm::Expected<codegen::GeneratedCode> Code = ((*Generator).*Make)(Function);
  if (!Code)
    return invalid(Function, Code.takeError());
  return std::move(*Code);
}

absl::StatusOr<codegen::GeneratedCode> StepCode::plan(func::FuncOp Function) {
  return hasRegions(Function) ? make(Function, &codegen::CodeGenerator::plan) : codegen::GeneratedCode();
}

absl::Status StepCode::generate(func::FuncOp Function, CompileResult &Result) {
  if (!hasRegions(Function))
    return absl::OkStatus();
  runtime::Stopwatch Generating;
  absl::StatusOr<codegen::GeneratedCode> Code = make(Function, &codegen::CodeGenerator::generate);
  if (!Code.ok())
    return Code.status();
  Result.program.code = std::move(Code->blobs);
  const codegen::CodeStatistics &Statistics = Code->statistics;
  addPhase(Result.phases, "code generation", 0, Generating.seconds());
  Result.phases.push_back({"emit", Statistics.emit_seconds, 1});
  Result.phases.push_back({"optimise", Statistics.optimise_seconds, 1});
  Result.phases.push_back({"assemble", Statistics.assemble_seconds, 1});
  Result.code = {Statistics.regions, Statistics.distinct, Statistics.from_cache, Generator->numAssembled()};
  Result.remarks.insert(Result.remarks.end(), Code->remarks.begin(), Code->remarks.end());
  return absl::OkStatus();
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
