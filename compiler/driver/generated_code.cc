#include "compiler/driver/generated_code.h"

#include "compiler/codegen/link_shared_object.h"
#include "compiler/dialect/step_signature.h"
#include "compiler/driver/pass_runner.h"
#include "compiler/target/targets.h"
#include "runtime/stopwatch.h"
#include "llvm/Support/Error.h"

using namespace mlir;

namespace mpc::compiler {

static bool hasRegions(func::FuncOp function) {
  return llvm::any_of(withCalled(function), [](func::FuncOp each) {
    return each.walk([](FusionOp) { return WalkResult::interrupt(); }).wasInterrupted();
  });
}

static std::string cacheDir(const CompileOptions &options) {
  if (options.cache_dir == "off")
    return "";
  return options.cache_dir.empty() ? codegen::defaultCacheDir() : options.cache_dir;
}

static absl::Status invalid(func::FuncOp function, llvm::Error failure) {
  return absl::InvalidArgumentError(
      absl::StrCat("@", function.getSymName().str(), ": ", llvm::toString(std::move(failure))));
}

absl::Status StepCode::findTarget() {
  if (generator)
    return absl::OkStatus();
  llvm::Expected<codegen::CodeTarget> target = codeTargetOf(device);
  if (!target)
    return absl::UnavailableError(llvm::toString(target.takeError()));
  generator.emplace(*std::move(target), codegen::CodeOptions{cacheDir(options), options.threads});
  return absl::OkStatus();
}

absl::StatusOr<codegen::GeneratedCode> StepCode::make(func::FuncOp function, Maker make) {
  if (absl::Status found = findTarget(); !found.ok())
    return found;
  llvm::Expected<codegen::GeneratedCode> code = ((*generator).*make)(function);
  if (!code)
    return invalid(function, code.takeError());
  return std::move(*code);
}

absl::StatusOr<codegen::GeneratedCode> StepCode::plan(func::FuncOp function) {
  return hasRegions(function) ? make(function, &codegen::CodeGenerator::plan) : codegen::GeneratedCode();
}

absl::Status StepCode::generate(func::FuncOp function, CompileResult &result) {
  if (!hasRegions(function))
    return absl::OkStatus();
  runtime::Stopwatch generating;
  absl::StatusOr<codegen::GeneratedCode> code = make(function, &codegen::CodeGenerator::generate);
  if (!code.ok())
    return code.status();
  result.program.code = std::move(code->blobs);
  const codegen::CodeStatistics &statistics = code->statistics;
  addPhase(result.phases, "code generation", 0, generating.seconds());
  result.phases.push_back({"emit", statistics.emit_seconds, 1});
  result.phases.push_back({"optimise", statistics.optimise_seconds, 1});
  result.phases.push_back({"assemble", statistics.assemble_seconds, 1});
  result.code = {statistics.regions, statistics.distinct, statistics.from_cache, generator->numAssembled()};
  result.remarks.insert(result.remarks.end(), code->remarks.begin(), code->remarks.end());
  return absl::OkStatus();
}

absl::Status LinkGeneratedCode(runtime::Program &program) {
  std::vector<runtime::CodeBlob> objects, code;
  for (const runtime::CodeBlob &blob : program.code)
    (blob.format == "object" ? objects : code).push_back(blob);
  if (objects.empty())
    return absl::OkStatus();
  llvm::Expected<runtime::CodeBlob> linked = codegen::linkSharedObject(objects, program.name);
  if (!linked)
    return absl::FailedPreconditionError(
        absl::StrCat("program \"", program.name, "\": ", llvm::toString(linked.takeError())));
  code.push_back(std::move(*linked));
  program.code = std::move(code);
  return absl::OkStatus();
}

} // namespace mpc::compiler
