#include "compiler/driver/compiler.h"

#include "absl/strings/str_cat.h"
#include "compiler/driver/memory_budget.h"
#include "compiler/driver/pass_runner.h"
#include "compiler/driver/step_compiler.h"
#include "runtime/executable.h"

namespace mpc::compiler {

static std::optional<Stage> parseStage(const std::string &name) {
  if (name == "traced")
    return Stage::Traced;
  if (name == "amp")
    return Stage::Amp;
  if (name == "grad")
    return Stage::Grad;
  if (name == "final")
    return Stage::Final;
  if (name == "scheduled")
    return Stage::Scheduled;
  return std::nullopt;
}

absl::Status RunPasses(Module &target, const CompileOptions &options, const std::string &stageName,
                       std::vector<PhaseTime> *phases, std::vector<std::string> *remarks) {
  std::optional<Stage> until = parseStage(stageName);
  if (!until)
    return absl::InvalidArgumentError(
        absl::StrCat("unknown stage '", stageName, "'; choose traced, amp, grad, final or scheduled"));
  if (options.memory_budget == 0 || (*until != Stage::Final && *until != Stage::Scheduled))
    return runPasses(target, options, *until, phases, remarks);
  absl::StatusOr<const runtime::Device *> device = runtime::GetTarget(options.device, options.arch);
  if (!device.ok())
    return device.status();
  StepCompiler step(target, **device, options);
  absl::StatusOr<CompileResult> planned = planWithin(step, options);
  if (!planned.ok())
    return planned.status();
  return runPasses(target, planned->options, *until, phases, remarks);
}

absl::StatusOr<CompileResult> Compile(const Module &traced, const CompileOptions &options) {
  absl::StatusOr<const runtime::Device *> device = runtime::GetTarget(options.device, options.arch);
  if (!device.ok())
    return device.status();
  StepCompiler step(traced, **device, options);
  if (options.memory_budget > 0)
    return compileWithin(step, options);
  absl::StatusOr<CompileResult> result = step.plan(options);
  if (!result.ok())
    return result;
  if (absl::Status status = step.generate(*result); !status.ok())
    return status;
  return result;
}

} // namespace mpc::compiler
