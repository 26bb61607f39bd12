#include "compiler/driver/step_compiler.h"

#include "absl/strings/str_cat.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/driver/pass_runner.h"
#include "compiler/lowering/lowering.h"
#include "compiler/module/module_impl.h"
#include "passes/precision/stored_assignment.h"
#include "runtime/stopwatch.h"

#include <map>
#include <utility>

using namespace mlir;

namespace mpc::compiler {

namespace {

/// Removes public functions other than \p keep.
absl::Status keepOnly(ModuleOp root, llvm::StringRef keep) {
  bool found = false;
  for (func::FuncOp function : llvm::make_early_inc_range(root.getOps<func::FuncOp>())) {
    if (function.getSymName() == keep)
      found = true;
    else if (function.isPublic())
      function.erase();
  }
  if (!found)
    return absl::NotFoundError(absl::StrCat("the module has no function @", keep.str()));
  return absl::OkStatus();
}

/// The names of gradients that the loss-scale wrap gives for its records.
std::map<std::string, std::vector<std::string>> gradientNames(func::FuncOp function) {
  std::map<std::string, std::vector<std::string>> names;
  if (auto records = dialectOf(function).getGradientsAttrHelper().getAttr(function))
    for (NamedAttribute record : records)
      for (Attribute name : cast<ArrayAttr>(record.getValue()))
        names[record.getName().str()].push_back(cast<StringAttr>(name).str());
  return names;
}

func::FuncOp functionOf(const Module &target, llvm::StringRef name) {
  return target.impl().module.get().lookupSymbol<func::FuncOp>(name);
}

} // namespace

absl::Status StepCompiler::fuse(const CompileOptions &options) {
  if (fused && fused->head_chunks == options.head_chunks)
    return absl::OkStatus();
  fused.reset();
  FusedStep step{options.head_chunks, traced.Clone(), {}, {}};
  if (absl::Status status = keepOnly(step.module.impl().module.get(), options.function); !status.ok())
    return status;
  if (absl::Status status = runPasses(step.module, options, Stage::Fused, &step.phases, &step.remarks); !status.ok())
    return status;
  fused = std::move(step);
  return absl::OkStatus();
}

absl::StatusOr<CompileResult> StepCompiler::plan(const CompileOptions &options) {
  ++plans;
  if (absl::Status status = fuse(options); !status.ok())
    return status;
  CompileResult result;
  result.options = options;
  result.final_ir = fused->module.Clone();
  result.phases = fused->phases;
  result.remarks = fused->remarks;
  if (absl::Status status = runPlanning(result.final_ir, options, &result.phases, &result.remarks); !status.ok())
    return status;
  func::FuncOp function = functionOf(result.final_ir, options.function);

  runtime::Stopwatch ofCalls;
  absl::StatusOr<codegen::GeneratedCode> calls = code.plan(function);
  if (!calls.ok())
    return calls.status();
  double secondsOfCalls = ofCalls.seconds();

  runtime::Stopwatch ofLowering;
  bool hasCode = !calls->calls.empty();
  absl::StatusOr<runtime::Program> program =
      lowerToProgram(function, device, options.plan, *std::move(calls), &result.remarks);
  if (!program.ok())
    return program.status();
  result.program = *std::move(program);
  addPhase(result.phases, "lowering", 0, ofLowering.seconds());
  if (hasCode)
    addPhase(result.phases, "code generation", 0, secondsOfCalls);

  result.assignment = readAssignment(result.final_ir.impl().module.get());
  result.gradients = gradientNames(function);
  return result;
}

absl::Status StepCompiler::generate(CompileResult &planned) {
  planned.plans = plans;
  return code.generate(functionOf(planned.final_ir, planned.program.name), planned);
}

} // namespace mpc::compiler
