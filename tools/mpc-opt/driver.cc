#include "tools/mpc-opt/driver.h"

#include "compiler/dot_graph.h"
#include "compiler/parse_module.h"
#include "compiler/precision_table.h"
#include "compiler/report.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "tools/mpc-opt/model_source.h"
#include "tools/mpc-opt/program_listing.h"

using namespace llvm;

namespace mpc::opt {

static cl::OptionCategory category("mpc: models, stages and reports");

static cl::opt<std::string> model_name("model", cl::desc("Print the IR of a model: bnnet, lenet5, mlp"),
                                       cl::cat(category));
static cl::opt<bool> train("train", cl::desc("The training step, not the forward function"), cl::cat(category));
static cl::opt<int64_t> batch("batch", cl::desc("Samples a step (32)"), cl::init(32), cl::cat(category));
static cl::opt<std::string> amp_level("amp-level", cl::desc("O0, O2 or O3"), cl::init("O0"), cl::cat(category));
static cl::opt<std::string> low_type("dtype", cl::desc("The low type: f16 (default) or bf16"), cl::cat(category));
static cl::opt<std::string> loss_scale("loss-scale",
                                       cl::desc("dynamic, none or a number; left out: the level's default"),
                                       cl::cat(category));
static cl::opt<std::string> keep_norms("keep-batchnorm-fp32", cl::desc("true or false; left out: the level's default"),
                                       cl::cat(category));
static cl::opt<std::string> stage_name("stage",
                                       cl::desc("traced, amp, grad, final or program; left out: traced without "
                                                "--amp-level, else grad; with --report, program"),
                                       cl::cat(category));
static cl::opt<bool> report("report", cl::desc("Print the precision report"), cl::cat(category));
static cl::opt<std::string> emit("emit", cl::desc("Output form: ir (default) or dot (Graphviz)"), cl::init("ir"),
                                 cl::cat(category));
static cl::opt<std::string> dot_function("function", cl::desc("The function that --emit=dot draws"), cl::cat(category));

// Options that say something about a model.
static cl::Option* const kModelOptions[] = {&train,      &batch,      &amp_level, &low_type,
                                            &loss_scale, &keep_norms, &stage_name};
static cl::Option* const kOtherOptions[] = {&model_name, &report, &emit, &dot_function};

bool HasOwnOptions() {
  auto given = [](cl::Option* option) { return option->getNumOccurrences() > 0; };
  return any_of(kModelOptions, given) || any_of(kOtherOptions, given);
}

static std::optional<std::string> Given(const cl::opt<std::string>& option) {
  return option.getNumOccurrences() > 0 ? std::optional<std::string>(option) : std::nullopt;
}

static absl::Status CheckOptions(StringRef input) {
  if (emit != "ir" && emit != "dot")
    return absl::InvalidArgumentError(absl::StrCat("unknown --emit '", emit.getValue(), "'; choose ir or dot"));
  if (report && emit == "dot") return absl::InvalidArgumentError("--report and --emit=dot exclude each other");
  if (dot_function.getNumOccurrences() > 0 && emit != "dot")
    return absl::InvalidArgumentError("--function needs --emit=dot");
  if (model_name.getNumOccurrences() == 0) {
    for (cl::Option* option : kModelOptions)
      if (option->getNumOccurrences() > 0)
        return absl::InvalidArgumentError(
            absl::StrCat("--", option->ArgStr.str(), " needs --model; for a file, choose passes"));
    return absl::OkStatus();
  }
  if (input != "-")
    return absl::InvalidArgumentError(absl::StrCat("--model and the file '", input.str(), "' exclude each other"));
  static constexpr StringLiteral kStages[] = {"traced", "amp", "grad", "final", "program"};
  if (stage_name.getNumOccurrences() > 0 && !is_contained(kStages, stage_name.getValue()))
    return absl::InvalidArgumentError(
        absl::StrCat("unknown stage '", stage_name.getValue(), "'; choose traced, amp, grad, final or program"));
  if (stage_name == "program" && emit == "dot")
    return absl::InvalidArgumentError("a program has no graph; choose another --stage for --emit=dot");
  return absl::OkStatus();
}

static std::string ChosenStage() {
  if (stage_name.getNumOccurrences() > 0) return stage_name;
  if (report) return "program";
  return amp_level.getNumOccurrences() > 0 ? "grad" : "traced";
}

static absl::StatusOr<std::string> RunPasses(std::unique_ptr<MemoryBuffer> buffer, mlir::DialectRegistry& registry) {
  std::string text;
  raw_string_ostream stream(text);
  if (failed(MlirOptMain(stream, std::move(buffer), registry, mlir::MlirOptMainConfig::createFromCLOptions())))
    return absl::InvalidArgumentError("");
  return text;
}

static absl::StatusOr<std::string> DrawGraph(const compiler::Module& module) {
  if (dot_function.getNumOccurrences() > 0) return compiler::DotGraph(module, dot_function);
  // The public functions of a model are @init_state and the step; the step is the larger and the last one.
  std::vector<std::string> names = compiler::FunctionNames(module);
  for (StringRef step : {"train_step", "predict"})
    if (is_contained(names, step)) return compiler::DotGraph(module, step.str());
  return names.empty() ? absl::NotFoundError("the module has no function with a body")
                       : compiler::DotGraph(module, names.front());
}

// A program or its report: what no pass can follow.
static absl::StatusOr<std::string> CompileModel(const ModelSource& source) {
  absl::StatusOr<compiler::CompileResult> compiled = compiler::Compile(source.traced, source.options);
  if (!compiled.ok()) return compiled.status();
  return report ? compiler::PrecisionReport(*compiled) : ListProgram(compiled->program);
}

static absl::StatusOr<ModelSource> TraceRequest() {
  return TraceModel({model_name, train, batch, amp_level, Given(low_type), Given(loss_scale), Given(keep_norms)});
}

static absl::StatusOr<std::string> Produce(StringRef input, mlir::DialectRegistry& registry) {
  std::unique_ptr<MemoryBuffer> buffer;
  if (model_name.getNumOccurrences() > 0) {
    absl::StatusOr<ModelSource> source = TraceRequest();
    if (!source.ok()) return source.status();
    std::string stage = ChosenStage();
    if (stage == "program") return CompileModel(*source);
    absl::StatusOr<compiler::Module> module = ModuleAt(*std::move(source), stage);
    if (!module.ok()) return module.status();
    buffer = MemoryBuffer::getMemBufferCopy(module->Print(), model_name);
  } else {
    std::string message;
    buffer = mlir::openInputFile(input, &message);
    if (!buffer) return absl::NotFoundError(message);
  }
  absl::StatusOr<std::string> text = RunPasses(std::move(buffer), registry);
  if (!text.ok() || (!report && emit == "ir")) return text;
  absl::StatusOr<compiler::Module> module = compiler::ParseModule(*text);
  if (!module.ok()) return module.status();
  return report ? compiler::ModuleReport(*module) : DrawGraph(*module);
}

int RunWithOwnOptions(StringRef input, StringRef output, mlir::DialectRegistry& registry) {
  absl::Status status = CheckOptions(input);
  absl::StatusOr<std::string> text = status.ok() ? Produce(input, registry) : status;
  if (!text.ok()) {
    // Passes and the parser have said why already.
    if (!text.status().message().empty()) errs() << "mpc-opt: error: " << std::string(text.status().message()) << "\n";
    return 1;
  }
  std::string message;
  std::unique_ptr<ToolOutputFile> file = mlir::openOutputFile(output, &message);
  if (!file) {
    errs() << "mpc-opt: error: " << message << "\n";
    return 1;
  }
  file->os() << *text;
  file->keep();
  return 0;
}

}  // namespace mpc::opt
