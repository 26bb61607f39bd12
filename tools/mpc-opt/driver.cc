#include "tools/mpc-opt/driver.h"

#include "compiler/module/parse_module.h"
#include "compiler/report/dot_graph.h"
#include "compiler/report/explanation.h"
#include "compiler/report/level_difference.h"
#include "compiler/report/precision_table.h"
#include "compiler/report/report.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "runtime/atomic_file.h"
#include "tools/mpc-opt/driver_options.h"
#include "tools/mpc-opt/model_page.h"
#include "tools/mpc-opt/operation_table.h"
#include "tools/mpc-opt/program_listing.h"

using namespace llvm;

namespace mpc::opt {

static bool IsReport(Output output) { return output == Output::kReport || output == Output::kReportJson; }

// Whether the command line asks for passes, those of mlir-opt and of mpc. Passes of functions are nested.
static absl::StatusOr<bool> HasPasses() {
  mlir::MLIRContext context;
  mlir::PassManager passes(&context, mlir::ModuleOp::getOperationName(), mlir::OpPassManager::Nesting::Implicit);
  if (failed(mlir::MlirOptMainConfig::createFromCLOptions().setupPassPipeline(passes)))
    return absl::InvalidArgumentError("");
  return !passes.empty();
}

// Refuses passes where there is nothing that they can change.
static absl::Status RefusePasses(const char* why) {
  absl::StatusOr<bool> has_passes = HasPasses();
  if (!has_passes.ok()) return has_passes.status();
  return *has_passes ? absl::InvalidArgumentError(why) : absl::OkStatus();
}

// What a stage is where the command line names none: passes of the user follow the IR that they can still change.
static std::string ChosenStage(const DriverOptions& options, bool has_passes) {
  if (!options.stage.empty()) return options.stage;
  if (IsReport(options.output) && !has_passes) return "program";
  // What runs: its operations are those that the report numbers.
  if (options.output == Output::kDifference || options.output == Output::kExplanation) return "final";
  return options.has_level || options.output == Output::kRanges ? "grad" : "traced";
}

static absl::StatusOr<std::string> RunPasses(std::unique_ptr<MemoryBuffer> buffer, mlir::DialectRegistry& registry) {
  std::string text;
  raw_string_ostream stream(text);
  if (failed(MlirOptMain(stream, std::move(buffer), registry, mlir::MlirOptMainConfig::createFromCLOptions())))
    return absl::InvalidArgumentError("");
  return text;
}

// A program or its report: what no pass can follow.
static absl::StatusOr<std::string> CompileModel(const DriverOptions& options) {
  absl::StatusOr<ModelSource> source = TraceModel(options.model);
  if (!source.ok()) return source.status();
  absl::StatusOr<compiler::CompileResult> compiled = compiler::Compile(source->traced, source->options);
  if (!compiled.ok()) return compiled.status();
  if (options.output == Output::kReport) return compiler::PrecisionReport(*compiled);
  if (options.output == Output::kReportJson) return compiler::PrecisionReportJson(*compiled);
  return ListProgram(compiled->program);
}

// The IR of a model at a stage, followed by the passes of the command line.
static absl::StatusOr<std::string> ModelText(const ModelRequest& model, const std::string& stage,
                                             mlir::DialectRegistry& registry) {
  absl::StatusOr<ModelSource> source = TraceModel(model);
  if (!source.ok()) return source.status();
  absl::StatusOr<compiler::Module> module = ModuleAt(*std::move(source), stage);
  if (!module.ok()) return module.status();
  return RunPasses(MemoryBuffer::getMemBufferCopy(module->Print(), model.model), registry);
}

static absl::StatusOr<std::string> Compare(const DriverOptions& options, const std::string& stage,
                                           mlir::DialectRegistry& registry) {
  std::vector<compiler::Module> modules;
  for (const std::string& level : options.levels) {
    ModelRequest model = options.model;
    model.amp.level = level;
    absl::StatusOr<std::string> text = ModelText(model, stage, registry);
    if (!text.ok()) return text.status();
    absl::StatusOr<compiler::Module> module = compiler::ParseModule(*text);
    if (!module.ok()) return module.status();
    modules.push_back(*std::move(module));
  }
  std::string function = options.function;
  if (function.empty()) {
    absl::StatusOr<std::string> main = compiler::MainFunction(modules[0]);
    if (!main.ok()) return main.status();
    function = *main;
  }
  return compiler::LevelDifference({&modules[0], options.levels[0]}, {&modules[1], options.levels[1]}, function);
}

// The ranges of a function. A derived loss scale is that of the step, too.
static absl::StatusOr<std::string> ShowRanges(const compiler::Module& module, const std::string& function,
                                              const DriverOptions& options) {
  compiler::RangeAssumptions assumptions = options.ranges;
  absl::StatusOr<compiler::RangeTable> table = compiler::TabulateRanges(module, function, assumptions);
  if (table.ok() && options.derives_scale && table->derived_scale > 0) {
    assumptions.loss_scale = table->derived_scale;
    table = compiler::TabulateRanges(module, function, assumptions);
  }
  if (!table.ok()) return table.status();
  return compiler::PrintRanges(*table, assumptions);
}

static absl::StatusOr<std::string> Show(const compiler::Module& module, const DriverOptions& options) {
  if (options.output == Output::kReport) return compiler::ModuleReport(module);
  if (options.output == Output::kReportJson) return compiler::ModuleReportJson(module);
  absl::StatusOr<std::string> function =
      options.function.empty() ? compiler::MainFunction(module) : absl::StatusOr<std::string>(options.function);
  if (!function.ok()) return function.status();
  if (options.output == Output::kRanges) return ShowRanges(module, *function, options);
  return options.output == Output::kDot ? compiler::DotGraph(module, *function)
                                        : compiler::ExplainPrecision(module, *function, options.explain);
}

static absl::StatusOr<std::string> Produce(StringRef input, const DriverOptions& options,
                                           mlir::DialectRegistry& registry) {
  if (options.output == Output::kOperations) {
    if (absl::Status none = RefusePasses("--list-operations has no IR for passes"); !none.ok()) return none;
    return OperationTable();
  }
  if (options.output == Output::kReplay) {
    absl::Status none = RefusePasses("--replay compiles with mpc's own passes; leave out passes");
    if (!none.ok()) return none;
    return ReplayWhatIf(options.replay);
  }
  absl::StatusOr<std::string> text;
  if (options.has_model) {
    if (options.output == Output::kLock) {
      absl::Status none = RefusePasses("a lock holds what mpc's own passes make; leave out passes");
      if (!none.ok()) return none;
      return LockFile(options.model, options.lock);
    }
    if (options.output == Output::kPage) {
      absl::Status none = RefusePasses("a page shows what mpc's own passes make; leave out passes");
      if (!none.ok()) return none;
      return ModelPage(options.model);
    }
    absl::StatusOr<bool> has_passes = HasPasses();
    if (!has_passes.ok()) return has_passes.status();
    std::string stage = ChosenStage(options, *has_passes);
    if (stage == "program" && *has_passes)
      return absl::InvalidArgumentError("passes cannot follow --stage=program; choose an earlier stage");
    if (stage == "program") return CompileModel(options);
    if (options.output == Output::kDifference) return Compare(options, stage, registry);
    text = ModelText(options.model, stage, registry);
  } else {
    std::string message;
    std::unique_ptr<MemoryBuffer> buffer = mlir::openInputFile(input, &message);
    if (!buffer) return absl::NotFoundError(message);
    text = RunPasses(std::move(buffer), registry);
  }
  if (!text.ok() || options.output == Output::kIr) return text;
  absl::StatusOr<compiler::Module> module = compiler::ParseModule(*text);
  return module.ok() ? Show(*module, options) : module.status();
}

bool WritesFile(StringRef output) {
  mlir::MlirOptMainConfig config = mlir::MlirOptMainConfig::createFromCLOptions();
  return output != "-" && !config.shouldShowDialects() && !config.shouldListPasses();
}

int RunWithOwnOptions(StringRef input, StringRef output, mlir::DialectRegistry& registry) {
  absl::StatusOr<DriverOptions> options = ReadOptions(input);
  if (absl::Status files = CheckFiles(output); options.ok() && !files.ok()) options = files;
  absl::StatusOr<std::string> text = options.ok() ? Produce(input, *options, registry) : options.status();
  if (!text.ok()) {
    // Passes and the parser have said why already.
    if (!text.status().message().empty()) errs() << "mpc-opt: error: " << std::string(text.status().message()) << "\n";
    return 1;
  }
  if (output == "-") {
    outs() << *text;
    return 0;
  }
  absl::Status written = runtime::WriteTextFile(output.str(), *text);
  if (written.ok()) return 0;
  errs() << "mpc-opt: error: " << std::string(written.message()) << "\n";
  return 1;
}

}  // namespace mpc::opt
