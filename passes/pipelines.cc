#include "passes/pipelines.h"

#include "compiler/dialect/target_model.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/passes.h"
#include "llvm/ADT/StringSwitch.h"

#include <memory>
#include <set>
#include <vector>

using namespace mlir;

namespace mpc {

using compiler::CompileOptions;
using compiler::OptionInfo;

template <typename PassOptions> static PassOptions withLists(const CompileOptions &chosen) {
  PassOptions result;
  result.level = chosen.level;
  llvm::append_range(result.allow, chosen.allow);
  llvm::append_range(result.deny, chosen.deny);
  llvm::append_range(result.infer, chosen.infer);
  llvm::append_range(result.clear, chosen.clear);
  return result;
}

static void addPrecision(OpPassManager &manager, const CompileOptions &chosen) {
  auto amp = withLists<AmpPassOptions>(chosen);
  amp.dtype = chosen.dtype;
  amp.keepBatchNormFp32 = chosen.keep_batchnorm_fp32;
  amp.bytesPerSecond = chosen.rates.bytes_per_second;
  amp.lowFlops = chosen.rates.low_flops;
  amp.f32Flops = chosen.rates.f32_flops;
  amp.secondsPerOperation = chosen.rates.seconds_per_operation;
  manager.addPass(createAmpPass(amp));
  manager.addPass(createVerifyPrecisionPass(withLists<VerifyPrecisionPassOptions>(chosen)));
}

// Recomputation comes behind fusion: a copy of a region sums in the order of its original, so that its bits are the
// same.
//
// Buckets come behind the schedule, which knows no messages and would pull them apart. Flat updates come last: they are
// what stands side by side then.
static void addPlan(OpPassManager &manager, const CompileOptions &chosen, bool orders) {
  manager.addNestedPass<func::FuncOp>(createRecomputePass({chosen.recompute}));
  if (!orders)
    return;
  manager.addPass(createSchedulePass());
  manager.addNestedPass<func::FuncOp>(createBucketsPass({chosen.bucket_mib}));
  manager.addNestedPass<func::FuncOp>(createFlatUpdatesPass());
}

// Low copies come after cast cleanup, which leaves only the casts that read parameters low. Updates take over what
// casts have left between them and the backward pass. Fusion comes last, so that it sees what will run.
static void addLayout(OpPassManager &manager, const CompileOptions &chosen, Stage until) {
  manager.addNestedPass<func::FuncOp>(createPackAttentionPass());
  if (chosen.layout)
    manager.addNestedPass<func::FuncOp>(createLayoutPass());
  manager.addNestedPass<func::FuncOp>(createCastCleanupPass());
  manager.addNestedPass<func::FuncOp>(createFoldActivationPass());
  manager.addNestedPass<func::FuncOp>(createFoldGradientScalingPass());
  manager.addNestedPass<func::FuncOp>(createLowCopiesPass({chosen.master_weights}));
  manager.addNestedPass<func::FuncOp>(createGroupUpdatesPass());
  if (chosen.layout)
    manager.addNestedPass<func::FuncOp>(createPadChannelsPass());
  if (chosen.conv_statistics)
    manager.addNestedPass<func::FuncOp>(createConvStatisticsPass());
  if (chosen.pad_classes.value_or(true))
    manager.addNestedPass<func::FuncOp>(createPadClassesPass({/*everywhere=*/chosen.pad_classes.has_value()}));
  manager.addNestedPass<func::FuncOp>(createChunkHeadPass({chosen.head_chunks}));
  // Alone, what these add would be launches of their own.
  if (chosen.fuses()) {
    manager.addNestedPass<func::FuncOp>(createRenormalizePass());
    manager.addNestedPass<func::FuncOp>(createReluMaskPass());
  }
  FusionPassOptions fusion;
  // Without fusion, some operations still have no other kernel than generated code.
  if (!chosen.fuses())
    fusion.maxOperations = 1;
  manager.addNestedPass<func::FuncOp>(createFusionPass(fusion));
  if (until != Stage::Fused)
    addPlan(manager, chosen, /*orders=*/until == Stage::Scheduled);
}

void buildPlanPipeline(OpPassManager &manager, const CompileOptions &options) {
  addPlan(manager, options, /*orders=*/true);
}

void buildStepPipeline(OpPassManager &manager, const CompileOptions &options, Stage until) {
  if (until == Stage::Traced)
    return;
  addPrecision(manager, options);
  if (until == Stage::Amp)
    return;
  manager.addNestedPass<func::FuncOp>(createSinkReluPass());
  manager.addPass(createLossScalePass({options.loss_scale, options.skip, options.unscale, options.num_losses,
                                       options.accumulation_steps, options.processes, options.last_micro_step,
                                       options.gradients_mean, options.communication_dtype}));
  // It runs after the wrap, which decides what an optimizer's loss_scale has to divide.
  manager.addPass(createVerifyLossScalePass());
  manager.addPass(createAutodiffPass());
  manager.addNestedPass<func::FuncOp>(createCastCleanupPass());
  if (options.level != "O0")
    manager.addNestedPass<func::FuncOp>(createVerifyRangesPass());
  if (options.instrument)
    manager.addNestedPass<func::FuncOp>(createInstrumentPass());
  if (until == Stage::Grad)
    return;
  manager.addNestedPass<func::FuncOp>(createFlattenGuardsPass());
  addLayout(manager, options, until);
}

namespace {

/// The options of the kind OfPasses as text, such as `level=O2 loss-scale=dynamic`.
class StepPipelineOptions : public PassPipelineOptions<StepPipelineOptions> {
public:
  StepPipelineOptions() {
    CompileOptions defaults;
    forEachOfPasses(defaults, [&](const OptionInfo &info, const auto &fallback) { declare(info, fallback); });
  }

  CompileOptions compileOptions() const {
    CompileOptions result;
    auto next = declared.begin();
    forEachOfPasses(result, [&](const OptionInfo &, auto &member) { read((next++)->get(), member); });
    if (!device.empty())
      result.device = device;
    return result;
  }

  /// Why options exclude each other, as flags and the options of a Model say it; empty where none do.
  std::string contradiction() {
    CompileOptions given = compileOptions();
    const std::string &level = given.level;
    bool isFull = level == "O0", isSolved = level == "O1" || level == "auto";
    if (!given.master_weights && isSolved)
      return "level " + level + " with master-weights = false: " + level +
             " never changes stored parameters, they are f32; leave it out, or choose O2 or O3";
    if (!given.master_weights && isFull)
      return "level O0 with master-weights = false: O0 is full f32 and has no low parameters; leave it out, or choose "
             "O2 or O3";
    if (isFull && isGiven("dtype"))
      return "level O0 is full f32 and takes no dtype " + given.dtype + "; choose O1, O2, O3 or auto";
    for (const std::unique_ptr<llvm::cl::Option> &option : declared)
      if (option->getNumOccurrences() > 0 && until.getValue() < firstReaderOf(option->ArgStr))
        return unread(option->ArgStr);
    return "";
  }

  Option<std::string> device{*this, "device", llvm::cl::desc("The module's target; empty: what it has"),
                             llvm::cl::init("")};
  Option<Stage> until{*this, "stage", llvm::cl::desc("Stop after this stage"), llvm::cl::init(Stage::Final),
                      llvm::cl::values(clEnumValN(Stage::Traced, "traced", "As traced"),
                                       clEnumValN(Stage::Amp, "amp", "Precision assigned"),
                                       clEnumValN(Stage::Grad, "grad", "Loss-scale wrap and backward graph"),
                                       clEnumValN(Stage::Fused, "fused", "Fused; nothing is computed again"),
                                       clEnumValN(Stage::Final, "final", "Computed again where that is asked for"),
                                       clEnumValN(Stage::Scheduled, "scheduled", "In the order that is lowered"))};

private:
  template <typename Options, typename Visitor> static void forEachOfPasses(Options &given, const Visitor &visit) {
    visitOptions(given, [&](const OptionInfo &info, auto &member) {
      if (info.kind == compiler::OptionKind::OfPasses)
        visit(info, member);
    });
  }

  /// The name in text: "bytes-per-second" for "rates.bytes_per_second".
  static std::string nameOf(const OptionInfo &info) {
    std::string name = StringRef(info.name).rsplit('.').second.str();
    if (name.empty())
      name = info.name;
    llvm::replace(name, '_', '-');
    return name;
  }

  /// The first stage whose passes read the option \p name.
  static Stage firstReaderOf(StringRef name) {
    return llvm::StringSwitch<Stage>(name)
        .Cases({"loss-scale", "skip", "unscale", "num-losses", "accumulation-steps", "processes"}, Stage::Grad)
        .Cases({"last-micro-step", "gradients-mean", "communication-dtype", "instrument"}, Stage::Grad)
        .Cases({"layout", "master-weights", "conv-statistics", "pad-classes", "head-chunks", "fusion"}, Stage::Fused)
        .Case("recompute", Stage::Final)
        .Case("bucket-mib", Stage::Scheduled)
        .Default(Stage::Amp);
  }

  std::string unread(StringRef name) {
    auto textOf = [&](Stage stage) { return until.getParser().findArgStrForValue(stage).value_or("").str(); };
    Stage reader = firstReaderOf(name);
    return name.str() + " and stage=" + textOf(until.getValue()) + " contradict each other: passes behind that stage " +
           "read it; leave it out, or use stage=" + textOf(reader) +
           (reader == Stage::Scheduled ? "" : " or a later one");
  }

  bool isGiven(StringRef name) const {
    return llvm::any_of(declared, [&](const std::unique_ptr<llvm::cl::Option> &option) {
      return option->ArgStr == name && option->getNumOccurrences() > 0;
    });
  }

  // Texts have to outlive the options that are named by them.
  template <typename Kind, typename... Default> void add(const OptionInfo &info, const Default &...given) {
    StringRef name = *names.insert(nameOf(info)).first;
    declared.push_back(std::make_unique<Kind>(*this, name, llvm::cl::desc(info.help), given...));
  }
  template <typename Value> void declare(const OptionInfo &info, const Value &fallback) {
    add<Option<Value>>(info, llvm::cl::init(fallback));
  }
  void declare(const OptionInfo &info, const std::optional<bool> &) { add<Option<bool>>(info, llvm::cl::init(true)); }
  void declare(const OptionInfo &info, const std::vector<std::string> &) { add<ListOption<std::string>>(info); }

  template <typename Value> static void read(llvm::cl::Option *given, Value &member) {
    member = static_cast<Option<Value> *>(given)->getValue();
  }
  static void read(llvm::cl::Option *given, std::optional<bool> &member) {
    auto *option = static_cast<Option<bool> *>(given);
    if (option->hasValue())
      member = option->getValue();
  }
  static void read(llvm::cl::Option *given, std::vector<std::string> &member) {
    auto *list = static_cast<ListOption<std::string> *>(given);
    member.assign(list->begin(), list->end());
  }

  std::set<std::string> names;
  std::vector<std::unique_ptr<llvm::cl::Option>> declared; ///< in the order of visitOptions
};

} // namespace

namespace {

/// Refuses pad-classes=true where the target gains nothing from it.
class CheckPaddingPass : public PassWrapper<CheckPaddingPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CheckPaddingPass)

  StringRef getName() const override { return "CheckPaddingPass"; }

  void runOnOperation() override {
    FailureOr<std::unique_ptr<TargetModel>> target = targetModelOf(getOperation());
    if (failed(target))
      return signalPassFailure();
    if ((*target)->lowProductMultiple() > 1)
      return;
    StringRef name = targetOf(getOperation()).getName();
    getOperation().emitError() << "pad-classes=true and target \"" << name
                               << "\" contradict each other: only target \"cuda\" has this option; leave it out, or use"
                                  " device=cuda";
    signalPassFailure();
  }
};

} // namespace

static LogicalResult buildFromText(OpPassManager &manager, StringRef text,
                                   llvm::function_ref<LogicalResult(const Twine &)> emitError) {
  StepPipelineOptions options;
  if (failed(options.parseFromString(text)))
    return failure();
  if (std::string refused = options.contradiction(); !refused.empty())
    return emitError(refused);
  if (!options.device.empty())
    manager.addPass(createAttachTargetPass({options.device, ""}));
  CompileOptions chosen = options.compileOptions();
  if (chosen.pad_classes.value_or(false))
    manager.addPass(std::make_unique<CheckPaddingPass>());
  buildStepPipeline(manager, chosen, options.until);
  return success();
}

void registerMpcPasses() {
  registerMpcGraphPasses();
  registerPassPipeline("mpc-step-pipeline",
                       "A traced step or forward function, through precision, loss scale and autodiff", buildFromText,
                       [](auto visit) { visit(StepPipelineOptions()); });
}

} // namespace mpc
