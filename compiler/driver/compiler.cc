#include "compiler/driver/compiler.h"

#include "absl/strings/str_cat.h"
#include "compiler/driver/memory_budget.h"
#include "compiler/driver/pass_runner.h"
#include "compiler/driver/step_compiler.h"
#include "runtime/executable.h"

namespace mpc::compiler {

static std::optional<Stage> parseStage(const std::string &Name) {
  if (Name == "traced")
    return Stage::Traced;
  if (Name == "amp")
    return Stage::Amp;
  if (Name == "grad")
    return Stage::Grad;
  if (Name == "final")
    return Stage::Final;
  if (Name == "scheduled")
    return Stage::Scheduled;
  return std::nullopt;
}

absl::Status RunPasses(Module &Target, const CompileOptions &Options, const std::string &StageName,
                       std::vector<PhaseTime> *Phases, std::vector<std::string> *Remarks) {
  std::optional<Stage> Until = parseStage(StageName);
  if (!Until)
    return absl::InvalidArgumentError(
        absl::StrCat("unknown stage '", StageName, "'; choose traced, amp, grad, final or scheduled"));
  if (Options.memory_budget == 0 || (*Until != Stage::Final && *Until != Stage::Scheduled))
    return runPasses(Target, Options, *Until, Phases, Remarks);
  absl::StatusOr<const runtime::Device *> Device = runtime::GetTarget(Options.device, Options.arch);
  if (!Device.ok())
    return Device.status();
  StepCompiler Step(Target, **Device, Options);
  absl::StatusOr<CompileResult> Planned = planWithin(Step, Options);
  if (!Planned.ok())
    return Planned.status();
  return runPasses(Target, Planned->options, *Until, Phases, Remarks);
}

absl::StatusOr<CompileResult> Compile(const Module &Traced, const CompileOptions &Options) {
  absl::StatusOr<const runtime::Device *> Device = runtime::GetTarget(Options.device, Options.arch);
  if (!Device.ok())
    return Device.status();
  StepCompiler Step(Traced, **Device, Options);
  if (Options.memory_budget > 0)
    return compileWithin(Step, Options);
  absl::StatusOr<CompileResult> Result = Step.plan(Options);
  if (!Result.ok())
    return Result;
  if (absl::Status Status = Step.generate(*Result); !Status.ok())
    return Status;
  return Result;
}

} // namespace mpc::compiler
