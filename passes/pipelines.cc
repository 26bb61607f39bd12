#include "passes/pipelines.h"

#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/passes.h"

#include <memory>
#include <set>
#include <vector>

using namespace mlir;

namespace mpc {

using compiler::CompileOptions;
using compiler::OptionInfo;

template <typename PassOptions> static PassOptions withLists(const CompileOptions &Chosen) {
  PassOptions Result;
  Result.level = Chosen.level;
  llvm::append_range(Result.allow, Chosen.allow);
  llvm::append_range(Result.deny, Chosen.deny);
  llvm::append_range(Result.infer, Chosen.infer);
  llvm::append_range(Result.clear, Chosen.clear);
  return Result;
}

static void addPrecision(OpPassManager &Manager, const CompileOptions &Chosen) {
  auto Amp = withLists<AmpPassOptions>(Chosen);
  Amp.dtype = Chosen.dtype;
  Amp.keepBatchNormFp32 = Chosen.keep_batchnorm_fp32;
  Amp.bytesPerSecond = Chosen.rates.bytes_per_second;
  Amp.lowFlops = Chosen.rates.low_flops;
  Amp.f32Flops = Chosen.rates.f32_flops;
  Amp.secondsPerOperation = Chosen.rates.seconds_per_operation;
  Manager.addPass(createAmpPass(Amp));
  Manager.addPass(createVerifyPrecisionPass(withLists<VerifyPrecisionPassOptions>(Chosen)));
}

// Recomputation comes behind fusion: a copy of a region sums in the order of its original, so that its bits are the
// same.
static void addPlan(OpPassManager &Manager, int64_t Candidates, bool Orders) {
  Manager.addNestedPass<func::FuncOp>(createRecomputePass({Candidates}));
  if (!Orders)
    return;
  Manager.addPass(createSchedulePass());
  Manager.addNestedPass<func::FuncOp>(createFlatUpdatesPass());
}

// Shadows come after cast cleanup, which leaves only the casts that read parameters low. Updates take over what casts
// have left between them and the backward pass. Fusion comes last, so that it sees what will run.
static void addLayout(OpPassManager &Manager, const CompileOptions &Chosen, Stage Until) {
  if (Chosen.layout)
    Manager.addNestedPass<func::FuncOp>(createLayoutPass());
  Manager.addNestedPass<func::FuncOp>(createCastCleanupPass());
  Manager.addNestedPass<func::FuncOp>(createFoldActivationPass());
  Manager.addNestedPass<func::FuncOp>(createFoldGradientScalingPass());
  Manager.addNestedPass<func::FuncOp>(createShadowPass({Chosen.master_weights}));
  Manager.addNestedPass<func::FuncOp>(createGroupUpdatesPass());
  if (Chosen.conv_statistics)
    Manager.addNestedPass<func::FuncOp>(createConvStatisticsPass());
  Manager.addNestedPass<func::FuncOp>(createChunkHeadPass({Chosen.head_chunks}));
  // Alone, the comparison and the selection would be launches of their own.
  if (Chosen.fuses())
    Manager.addNestedPass<func::FuncOp>(createReluMaskPass());
  FusionPassOptions Fusion;
  // Without fusion, some operations still have no other kernel than generated code.
  if (!Chosen.fuses())
    Fusion.maxOperations = 1;
  Manager.addNestedPass<func::FuncOp>(createFusionPass(Fusion));
  if (Until != Stage::Fused)
    addPlan(Manager, Chosen.recompute, /*Orders=*/Until == Stage::Scheduled);
}

void buildPlanPipeline(OpPassManager &Manager, int64_t Candidates) { addPlan(Manager, Candidates, /*Orders=*/true); }

void buildStepPipeline(OpPassManager &Manager, const CompileOptions &Options, Stage Until) {
  if (Until == Stage::Traced)
    return;
  addPrecision(Manager, Options);
  if (Until == Stage::Amp)
    return;
  Manager.addNestedPass<func::FuncOp>(createSinkReluPass());
  Manager.addPass(createLossScalePass({Options.loss_scale, Options.skip, Options.unscale, Options.num_losses,
                                       Options.accumulation_steps, Options.all_reduce}));
  // It runs after the wrap, which decides what an optimizer's loss_scale has to divide.
  Manager.addPass(createVerifyLossScalePass());
  Manager.addPass(createAutodiffPass());
  Manager.addNestedPass<func::FuncOp>(createCastCleanupPass());
  if (Options.instrument)
    Manager.addNestedPass<func::FuncOp>(createInstrumentPass());
  if (Until == Stage::Grad)
    return;
  Manager.addNestedPass<func::FuncOp>(createFlattenGuardsPass());
  addLayout(Manager, Options, Until);
}

namespace {

/// The options of the kind kOfPasses as text, such as `level=O2 loss-scale=dynamic`.
class StepPipelineOptions : public PassPipelineOptions<StepPipelineOptions> {
public:
  StepPipelineOptions() {
    CompileOptions Defaults;
    forEachOfPasses(Defaults, [&](const OptionInfo &Info, const auto &Default) { declare(Info, Default); });
  }

  CompileOptions compileOptions() const {
    CompileOptions Result;
    auto Next = Declared.begin();
    forEachOfPasses(Result, [&](const OptionInfo &, auto &Member) { read((Next++)->get(), Member); });
    return Result;
  }

  Option<std::string> Device{*this, "device", llvm::cl::desc("The module's target; empty: what it has"),
                             llvm::cl::init("")};
  Option<Stage> Until{*this, "stage", llvm::cl::desc("Stop after this stage"), llvm::cl::init(Stage::Final),
                      llvm::cl::values(clEnumValN(Stage::Traced, "traced", "As traced"),
                                       clEnumValN(Stage::Amp, "amp", "Precision assigned"),
                                       clEnumValN(Stage::Grad, "grad", "Loss-scale wrap and backward graph"),
                                       clEnumValN(Stage::Fused, "fused", "Fused; nothing is computed again"),
                                       clEnumValN(Stage::Final, "final", "Computed again where that is asked for"),
                                       clEnumValN(Stage::Scheduled, "scheduled", "In the order that is lowered"))};

private:
  template <typename Options, typename Visitor> static void forEachOfPasses(Options &Given, const Visitor &Visit) {
    visitOptions(Given, [&](const OptionInfo &Info, auto &Member) {
      if (Info.kind == compiler::OptionKind::kOfPasses)
        Visit(Info, Member);
    });
  }

  /// The name in text: "bytes-per-second" for "rates.bytes_per_second".
  static std::string nameOf(const OptionInfo &Info) {
    std::string Name = StringRef(Info.name).rsplit('.').second.str();
    if (Name.empty())
      Name = Info.name;
    llvm::replace(Name, '_', '-');
    return Name;
  }

  // Texts have to outlive the options that are named by them.
  template <typename Kind, typename... Default> void add(const OptionInfo &Info, const Default &...Given) {
    StringRef Name = *Names.insert(nameOf(Info)).first;
    Declared.push_back(std::make_unique<Kind>(*this, Name, llvm::cl::desc(Info.help), Given...));
  }
  template <typename Value> void declare(const OptionInfo &Info, const Value &Default) {
    add<Option<Value>>(Info, llvm::cl::init(Default));
  }
  void declare(const OptionInfo &Info, const std::optional<bool> &) { add<Option<bool>>(Info, llvm::cl::init(true)); }
  void declare(const OptionInfo &Info, const std::vector<std::string> &) { add<ListOption<std::string>>(Info); }

  template <typename Value> static void read(llvm::cl::Option *Given, Value &Member) {
    Member = static_cast<Option<Value> *>(Given)->getValue();
  }
  static void read(llvm::cl::Option *Given, std::optional<bool> &Member) {
    Member = static_cast<Option<bool> *>(Given)->getValue();
  }
  static void read(llvm::cl::Option *Given, std::vector<std::string> &Member) {
    auto *List = static_cast<ListOption<std::string> *>(Given);
    Member.assign(List->begin(), List->end());
  }

  std::set<std::string> Names;
  std::vector<std::unique_ptr<llvm::cl::Option>> Declared; ///< in the order of visitOptions
};

} // namespace

static void buildFromText(OpPassManager &Manager, const StepPipelineOptions &Options) {
  if (!Options.Device.empty())
    Manager.addPass(createAttachTargetPass({Options.Device, ""}));
  buildStepPipeline(Manager, Options.compileOptions(), Options.Until);
}

void registerMpcPasses() {
  registerMpcGraphPasses();
  PassPipelineRegistration<StepPipelineOptions>(
      "mpc-step-pipeline", "A traced step or forward function, through precision, loss scale and autodiff",
      buildFromText);
}

} // namespace mpc
