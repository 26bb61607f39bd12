#include "compiler/driver/step_compiler.h"

#include "absl/strings/str_cat.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/driver/pass_runner.h"
#include "compiler/lowering/lowering.h"
#include "compiler/module/module_impl.h"
#include "passes/precision/stored_assignment.h"
#include "passes/step/step_wrap.h"
#include "runtime/stopwatch.h"

#include <map>
#include <utility>

using namespace mlir;

namespace mpc::compiler {

namespace {

/// Removes public functions other than \p Keep.
absl::Status keepOnly(ModuleOp Root, llvm::StringRef Keep) {
  bool Found = false;
  for (func::FuncOp Function : llvm::make_early_inc_range(Root.getOps<func::FuncOp>())) {
    if (Function.getSymName() == Keep)
      Found = true;
    else if (Function.isPublic())
      Function.erase();
  }
  if (!Found)
    return absl::NotFoundError(absl::StrCat("the module has no function @", Keep.str()));
  return absl::OkStatus();
}

/// The names of gradients that the loss-scale wrap gives for its records.
std::map<std::string, std::vector<std::string>> gradientNames(func::FuncOp Function) {
  std::map<std::string, std::vector<std::string>> Names;
  if (auto Records = dialectOf(Function).getGradientsAttrHelper().getAttr(Function))
    for (NamedAttribute Record : Records)
      for (Attribute Name : cast<ArrayAttr>(Record.getValue()))
        Names[Record.getName().str()].push_back(cast<StringAttr>(Name).str());
  return Names;
}

func::FuncOp functionOf(const Module &Target, llvm::StringRef Name) {
  return Target.impl().module.get().lookupSymbol<func::FuncOp>(Name);
}

} // namespace

absl::Status StepCompiler::fuse(const CompileOptions &Options) {
  if (Fused && Fused->head_chunks == Options.head_chunks)
    return absl::OkStatus();
  Fused.reset();
  FusedStep Step{Options.head_chunks, Traced.Clone(), {}, {}};
  if (absl::Status Status = keepOnly(Step.module.impl().module.get(), Options.function); !Status.ok())
    return Status;
  if (absl::Status Status = runPasses(Step.module, Options, Stage::Fused, &Step.phases, &Step.remarks); !Status.ok())
    return Status;
  Fused = std::move(Step);
  return absl::OkStatus();
}

absl::StatusOr<CompileResult> StepCompiler::plan(const CompileOptions &Options) {
  ++Plans;
  if (absl::Status Status = fuse(Options); !Status.ok())
    return Status;
  CompileResult Result;
  Result.options = Options;
  Result.final_ir = Fused->module.Clone();
  Result.phases = Fused->phases;
  Result.remarks = Fused->remarks;
  if (absl::Status Status = runPlanning(Result.final_ir, Options, &Result.phases, &Result.remarks); !Status.ok())
    return Status;
  func::FuncOp Function = functionOf(Result.final_ir, Options.function);

  runtime::Stopwatch OfCalls;
  absl::StatusOr<codegen::GeneratedCode> Calls = Code.plan(Function);
  if (!Calls.ok())
    return Calls.status();
  double SecondsOfCalls = OfCalls.seconds();

  runtime::Stopwatch OfLowering;
  bool HasCode = !Calls->calls.empty();
  absl::StatusOr<runtime::Program> Program =
      lowerToProgram(Function, Device, Options.plan, *std::move(Calls), &Result.remarks);
  if (!Program.ok())
    return Program.status();
  Result.program = *std::move(Program);
  addPhase(Result.phases, "lowering", 0, OfLowering.seconds());
  if (HasCode)
    addPhase(Result.phases, "code generation", 0, SecondsOfCalls);

  Result.assignment = readAssignment(Result.final_ir.impl().module.get());
  Result.gradients = gradientNames(Function);
  return Result;
}

absl::Status StepCompiler::generate(CompileResult &Planned) {
  Planned.plans = Plans;
  return Code.generate(functionOf(Planned.final_ir, Planned.program.name), Planned);
}

} // namespace mpc::compiler
