#include "compiler/driver/pass_runner.h"

#include "compiler/dialect/operation_attributes.h"
#include "compiler/module/diagnostics.h"
#include "compiler/module/module_impl.h"
#include "compiler/target/targets.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "passes/precision/stored_assignment.h"
#include "runtime/stopwatch.h"

using namespace mlir;

namespace mpc::compiler {

void addPhase(std::vector<PhaseTime> &Phases, const std::string &Name, int Depth, double Seconds) {
  for (PhaseTime &Phase : Phases)
    if (Phase.depth == Depth && Phase.name == Name) {
      Phase.seconds += Seconds;
      return;
    }
  Phases.push_back({Name, Seconds, Depth});
}

namespace {

/// Measures each pass; passes on several functions add up.
class PassTimer : public PassInstrumentation {
public:
  explicit PassTimer(std::vector<PhaseTime> &Phases) : Phases(Phases) {}
  void runBeforePass(Pass *, Operation *) override { Running.emplace_back(); }
  void runAfterPass(Pass *P, Operation *) override { record(P); }
  void runAfterPassFailed(Pass *P, Operation *) override { record(P); }

private:
  void record(Pass *P) {
    double Seconds = Running.pop_back_val().seconds();
    // Adaptors hold the passes of nested functions and only add their own bookkeeping.
    if (P->getArgument().empty())
      return;
    addPhase(Phases, P->getArgument().str(), 1, Seconds);
  }

  std::vector<PhaseTime> &Phases;
  llvm::SmallVector<runtime::Stopwatch> Running; ///< one for each pass that has begun, the innermost last
};

} // namespace

/// Runs the passes of \p Manager, which is for \p Target's context.
static absl::Status run(PassManager &Manager, Module &Target, std::vector<PhaseTime> *Phases,
                        std::vector<std::string> *Remarks) {
  DiagnosticCollector Diagnostics(Manager.getContext());
  std::vector<PhaseTime> PassTimes;
  Manager.enableVerifier(true);
  Manager.addInstrumentation(std::make_unique<PassTimer>(PassTimes));
  runtime::Stopwatch OfPasses;
  LogicalResult Result = Manager.run(Target.impl().module.get());
  if (Phases) {
    addPhase(*Phases, "passes", 0, OfPasses.seconds());
    for (const PhaseTime &Pass : PassTimes)
      addPhase(*Phases, Pass.name, Pass.depth, Pass.seconds);
  }
  if (Remarks)
    Remarks->insert(Remarks->end(), Diagnostics.remarks().begin(), Diagnostics.remarks().end());
  return succeeded(Result) ? absl::OkStatus() : Diagnostics.status("a pass failed without saying why");
}

static TargetAttr targetOf(MLIRContext &Context, const CompileOptions &Options) {
  return TargetAttr::get(&Context, Options.device, Options.arch, Options.plan.allow_tf32, Options.plan.allow_winograd);
}

absl::Status runPasses(Module &Target, const CompileOptions &Options, Stage Until, std::vector<PhaseTime> *Phases,
                       std::vector<std::string> *Remarks) {
  MLIRContext &Context = *Target.impl().context;
  ModuleOp Root = Target.impl().module.get();
  registerTargets(Context);
  dialectOf(Root).getTargetAttrHelper().setAttr(Root, targetOf(Context, Options));
  if (!Options.assignment.empty())
    writeAssignment(Root, Options.assignment);
  PassManager Manager(&Context);
  buildStepPipeline(Manager, Options, Until);
  return run(Manager, Target, Phases, Remarks);
}

absl::Status runPlanning(Module &Target, const CompileOptions &Options, std::vector<PhaseTime> *Phases,
                         std::vector<std::string> *Remarks) {
  PassManager Manager(Target.impl().context.get());
  buildPlanPipeline(Manager, Options.recompute);
  return run(Manager, Target, Phases, Remarks);
}

} // namespace mpc::compiler
