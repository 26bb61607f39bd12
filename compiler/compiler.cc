#include "compiler/compiler.h"

#include "compiler/diagnostics.h"
#include "compiler/fusion_default.h"
#include "compiler/generated_code.h"
#include "compiler/lowering/lowering.h"
#include "compiler/memory_budget.h"
#include "compiler/memory_order.h"
#include "compiler/module_impl.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "passes/amp/step_wrap.h"
#include "passes/amp/stored_assignment.h"
#include "passes/pipelines.h"
#include "runtime/executable.h"

#include <chrono>

using namespace mlir;

namespace mpc::compiler {

namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point Start) { return std::chrono::duration<double>(Clock::now() - Start).count(); }

/// Measures each pass; passes on several functions add up.
class PassTimer : public PassInstrumentation {
public:
  explicit PassTimer(std::vector<PhaseTime> &Phases) : Phases(Phases) {}
  void runBeforePass(Pass *, Operation *) override { Starts.push_back(Clock::now()); }
  void runAfterPass(Pass *P, Operation *) override { record(P); }
  void runAfterPassFailed(Pass *P, Operation *) override { record(P); }

private:
  void record(Pass *P) {
    double Seconds = secondsSince(Starts.back());
    Starts.pop_back();
    // Adaptors hold the passes of nested functions and only add their own bookkeeping.
    if (P->getArgument().empty())
      return;
    std::string Name = P->getArgument().str();
    for (PhaseTime &Phase : Phases)
      if (Phase.depth == 1 && Phase.name == Name) {
        Phase.seconds += Seconds;
        return;
      }
    Phases.push_back({Name, Seconds, 1});
  }

  std::vector<PhaseTime> &Phases;
  llvm::SmallVector<Clock::time_point> Starts;
};

std::optional<Stage> parseStage(const std::string &Name) {
  if (Name == "traced")
    return Stage::Traced;
  if (Name == "amp")
    return Stage::Amp;
  if (Name == "grad")
    return Stage::Grad;
  if (Name == "final")
    return Stage::Final;
  return std::nullopt;
}

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

/// What the loss-scale wrap says of its records.
std::map<std::string, std::vector<std::string>> gradientNames(func::FuncOp Function) {
  std::map<std::string, std::vector<std::string>> Names;
  if (auto Records = Function->getAttrOfType<DictionaryAttr>(GradientsAttrName))
    for (NamedAttribute Record : Records)
      for (Attribute Name : cast<ArrayAttr>(Record.getValue()))
        Names[Record.getName().str()].push_back(cast<StringAttr>(Name).str());
  return Names;
}

} // namespace

absl::Status RunPasses(Module &Target, const CompileOptions &Options, const std::string &StageName,
                       std::vector<PhaseTime> *Phases, std::vector<std::string> *Remarks) {
  std::optional<Stage> Until = parseStage(StageName);
  if (!Until)
    return absl::InvalidArgumentError(
        absl::StrCat("unknown stage '", StageName, "'; choose traced, amp, grad or final"));
  ModuleOp Root = Target.impl().module.get();
  MLIRContext *Context = Target.impl().context.get();
  TrainPipelineOptions Pipeline;
  Pipeline.level = Options.level;
  Pipeline.dtype = Options.dtype;
  Pipeline.keepBatchNormFp32 = Options.keep_batchnorm_fp32;
  Pipeline.lossScale = Options.loss_scale;
  Pipeline.skip = Options.skip;
  Pipeline.unscale = Options.unscale;
  Pipeline.numLosses = Options.num_losses;
  Pipeline.accumulationSteps = Options.accumulation_steps;
  Pipeline.masterWeights = Options.master_weights;
  Pipeline.allow = Options.allow;
  Pipeline.deny = Options.deny;
  Pipeline.infer = Options.infer;
  Pipeline.clear = Options.clear;
  Pipeline.bytesPerSecond = Options.rates.bytes_per_second;
  Pipeline.lowFlops = Options.rates.low_flops;
  Pipeline.f32Flops = Options.rates.f32_flops;
  Pipeline.secondsPerOperation = Options.rates.seconds_per_operation;
  if (!Options.assignment.empty())
    writeAssignment(Root, Options.assignment);
  Pipeline.instrument = Options.instrument;
  Pipeline.fusion = Options.fusion.value_or(FusesByDefault(Options.device));
  Pipeline.device = Options.device;
  Pipeline.convStatistics = Options.conv_statistics;
  Pipeline.headChunks = Options.head_chunks;
  Pipeline.recompute = Options.recompute;
  Pipeline.stage = *Until;

  DiagnosticCollector Diagnostics(Context);
  std::vector<PhaseTime> PassTimes;
  PassManager Manager(Context);
  Manager.enableVerifier(true);
  Manager.addInstrumentation(std::make_unique<PassTimer>(PassTimes));
  buildTrainPipeline(Manager, Pipeline);
  Clock::time_point Start = Clock::now();
  LogicalResult Result = Manager.run(Root);
  if (Phases) {
    Phases->push_back({"passes", secondsSince(Start), 0});
    Phases->insert(Phases->end(), PassTimes.begin(), PassTimes.end());
  }
  if (Remarks)
    Remarks->insert(Remarks->end(), Diagnostics.remarks().begin(), Diagnostics.remarks().end());
  return succeeded(Result) ? absl::OkStatus() : Diagnostics.status("a pass failed without saying why");
}

// The passes ask which kernels there are; whether steps are fused unasked goes by the name.
static CompileOptions forBackend(CompileOptions Options, const runtime::Device &Device) {
  Options.fusion = Options.fusion.value_or(FusesByDefault(Options.device));
  Options.device = std::string(Device.backend());
  return Options;
}

absl::StatusOr<CompileResult> Compile(const Module &Traced, const CompileOptions &Options) {
  if (Options.memory_budget > 0)
    return CompileWithin(Traced, Options);
  absl::StatusOr<const runtime::Device *> Device = runtime::GetTarget(Options.device, Options.arch);
  if (!Device.ok())
    return Device.status();
  CompileResult Result;
  Result.final_ir = Traced.Clone();
  ModuleOp Root = Result.final_ir.impl().module.get();
  if (absl::Status Status = keepOnly(Root, Options.function); !Status.ok())
    return Status;
  if (absl::Status Status =
          RunPasses(Result.final_ir, forBackend(Options, **Device), "final", &Result.phases, &Result.remarks);
      !Status.ok())
    return Status;
  Clock::time_point BeforeOrder = Clock::now();
  lowerPeak(Root.lookupSymbol<func::FuncOp>(Options.function), **Device, Options.plan);
  Result.phases.push_back({"schedule", secondsSince(BeforeOrder), 0});
  absl::StatusOr<codegen::GeneratedCode> Code =
      generateCodeFor(Root.lookupSymbol<func::FuncOp>(Options.function), **Device, Options, Result);
  if (!Code.ok())
    return Code.status();
  Clock::time_point Start = Clock::now();
  absl::StatusOr<runtime::Program> Program = lowerToProgram(Root.lookupSymbol<func::FuncOp>(Options.function), **Device,
                                                            Options.plan, *std::move(Code), &Result.remarks);
  if (!Program.ok())
    return Program.status();
  Result.phases.push_back({"lowering", secondsSince(Start), 0});
  Result.program = *std::move(Program);
  Result.assignment = readAssignment(Root);
  Result.gradients = gradientNames(Root.lookupSymbol<func::FuncOp>(Options.function));
  return Result;
}

} // namespace mpc::compiler
