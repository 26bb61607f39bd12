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

void addPhase(std::vector<PhaseTime> &phases, const std::string &name, int depth, double seconds) {
  for (PhaseTime &phase : phases)
    if (phase.depth == depth && phase.name == name) {
      phase.seconds += seconds;
      return;
    }
  phases.push_back({name, seconds, depth});
}

namespace {

/// Measures each pass; passes on several functions add up.
class PassTimer : public PassInstrumentation {
public:
  explicit PassTimer(std::vector<PhaseTime> &phases) : phases(phases) {}
  void runBeforePass(Pass *, Operation *) override { running.emplace_back(); }
  void runAfterPass(Pass *p, Operation *) override { record(p); }
  void runAfterPassFailed(Pass *p, Operation *) override { record(p); }

private:
  void record(Pass *p) {
    double seconds = running.pop_back_val().seconds();
    // Adaptors hold the passes of nested functions and only add their own bookkeeping.
    if (p->getArgument().empty())
      return;
    addPhase(phases, p->getArgument().str(), 1, seconds);
  }

  std::vector<PhaseTime> &phases;
  llvm::SmallVector<runtime::Stopwatch> running; ///< one for each pass that has begun, the innermost last
};

} // namespace

/// Runs the passes of \p manager, which is for \p target's context.
static absl::Status run(PassManager &manager, Module &target, std::vector<PhaseTime> *phases,
                        std::vector<std::string> *remarks) {
  DiagnosticCollector diagnostics(manager.getContext());
  std::vector<PhaseTime> passTimes;
  manager.enableVerifier(true);
  manager.addInstrumentation(std::make_unique<PassTimer>(passTimes));
  runtime::Stopwatch ofPasses;
  LogicalResult result = manager.run(target.impl().module.get());
  if (phases) {
    addPhase(*phases, "passes", 0, ofPasses.seconds());
    for (const PhaseTime &pass : passTimes)
      addPhase(*phases, pass.name, pass.depth, pass.seconds);
  }
  if (remarks)
    remarks->insert(remarks->end(), diagnostics.getRemarks().begin(), diagnostics.getRemarks().end());
  return succeeded(result) ? absl::OkStatus() : diagnostics.status("a pass failed without saying why");
}

static TargetAttr targetOf(MLIRContext &context, const CompileOptions &options) {
  return TargetAttr::get(&context, options.device, options.arch, options.plan.allow_tf32, options.plan.allow_winograd);
}

absl::Status runPasses(Module &target, const CompileOptions &options, Stage until, std::vector<PhaseTime> *phases,
                       std::vector<std::string> *remarks) {
  MLIRContext &context = *target.impl().context;
  ModuleOp root = target.impl().module.get();
  registerTargets(context);
  dialectOf(root).getTargetAttrHelper().setAttr(root, targetOf(context, options));
  if (!options.assignment.empty())
    writeAssignment(root, options.assignment);
  PassManager manager(&context);
  buildStepPipeline(manager, options, until);
  return run(manager, target, phases, remarks);
}

absl::Status runPlanning(Module &target, const CompileOptions &options, std::vector<PhaseTime> *phases,
                         std::vector<std::string> *remarks) {
  PassManager manager(target.impl().context.get());
  buildPlanPipeline(manager, options);
  return run(manager, target, phases, remarks);
}

} // namespace mpc::compiler
