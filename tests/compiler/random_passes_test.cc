// What each pass makes of random training steps, by the interpreter before and after it: at its place in the training
// pipeline, and alone in front of a place that is drawn. A new pass takes part by being registered in a .td of passes/.
// It promises the same bits unless PromiseExceptions says otherwise; pass_options.txt gives it options.
//
//   random_passes_test [count]   steps through the pipeline
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/module/module_impl.h"
#include "compiler/target/targets.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/passes.h"
#include "passes/pipelines.h"
#include "tests/compiler/pass_promises.h"
#include "tests/compiler/random_graph.h"
#include "tests/compiler/random_step.h"

namespace mpc::test {
namespace {

std::uint64_t g_steps = 100;

std::string NameOf(const std::string& form) {
  std::smatch name;
  std::regex_search(form, name, std::regex("mpc-[a-z-]+"));
  return name.str();
}

/// Runs what a text names. `errors` is what it complained of.
bool RunPasses(compiler::Module& module, const std::string& text, std::string& errors) {
  mlir::MLIRContext* context = module.impl().context.get();
  mlir::ScopedDiagnosticHandler collect(context, [&](mlir::Diagnostic& diagnostic) {
    if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error) errors += diagnostic.str() + "\n";
    return mlir::success();
  });
  mlir::PassManager manager(context, mlir::ModuleOp::getOperationName());
  llvm::raw_string_ostream said(errors);
  if (mlir::failed(mlir::parsePassPipeline(text, manager, said))) {
    ADD_FAILURE() << text << ": " << errors;
    return false;
  }
  return mlir::succeeded(manager.run(*module.impl().module));
}

/// The passes of a training pipeline, each as text.
std::vector<std::string> PassesOf(const compiler::CompileOptions& options, const std::string& attached) {
  mlir::MLIRContext context;
  mlir::PassManager manager(&context, mlir::ModuleOp::getOperationName());
  if (!attached.empty()) manager.addPass(createAttachTargetPass({attached, ""}));
  buildStepPipeline(manager, options, Stage::Scheduled);
  std::vector<std::string> texts;
  for (mlir::Pass& pass : manager.getPasses()) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    pass.printAsTextualPipeline(stream);
    // An option without a value is not read again.
    texts.push_back(std::regex_replace(text, std::regex(" ?[a-z-]+=(?=[ }])"), ""));
  }
  return texts;
}

/// Networks whose convolutions compute statistics are wide ones.
bool IsWide(std::uint64_t seed) { return seed % 12 == 2; }

compiler::CompileOptions OptionsOf(std::uint64_t seed) {
  compiler::CompileOptions options;
  const Setting setting = SettingOf(seed);
  options.level = setting.level;
  options.dtype = setting.dtype;
  options.layout = seed % 2 == 0;
  options.fusion = seed % 3 != 0;
  options.master_weights = seed % 4 != 1;
  options.conv_statistics = IsWide(seed);
  options.pad_classes = seed % 8 != 3;
  options.head_chunks = seed % 5 == 2 ? 2 : 1;
  options.recompute = static_cast<std::int64_t>(seed % 7);
  options.loss_scale = seed % 3 == 0 ? "none" : seed % 3 == 1 ? "static" : "dynamic";
  options.accumulation_steps = seed % 8 == 7 ? 2 : 1;
  options.processes = seed % 8 == 4 ? 2 : 1;
  return options;
}

/// The device whose target the module of a step gets; empty: it has that of the CPU.
std::string AttachedTo(std::uint64_t seed) { return seed % 4 == 3 ? "cuda" : ""; }

compiler::Module StepNumber(std::uint64_t seed) {
  return MakeRandomTrainingStep(seed, IsWide(seed)    ? StepKind::kWide
                                      : seed % 3 == 1 ? StepKind::kFusible
                                                      : StepKind::kMixed);
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The forms in which registered passes run alone: with each line of options that pass_options.txt has for a pass.
std::vector<std::string> RegisteredForms() {
  const std::string root = MPC_SOURCE_DIR;
  std::map<std::string, std::vector<std::string>> options;
  std::istringstream lines(ReadFile(root + "/tests/passes/pass_options.txt"));
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] != '#') options[NameOf(line)].push_back(line);
  }
  std::string passes;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root + "/passes")) {
    if (entry.path().extension() == ".td") passes += ReadFile(entry.path().string());
  }
  const std::regex definition(": MpcPass<\"([a-z-]+)\", \"::mlir::(func::FuncOp|ModuleOp)\">"),
      any_definition("\ndef ");
  const std::sregex_iterator any(passes.begin(), passes.end(), any_definition);
  std::ptrdiff_t unread = std::distance(any, std::sregex_iterator());
  std::vector<std::string> forms;
  for (std::sregex_iterator found(passes.begin(), passes.end(), definition), end; found != end; ++found) {
    --unread;
    const std::string name = (*found)[1];
    EXPECT_NE(mlir::PassInfo::lookup(name), nullptr) << name << " is in a .td of passes/ and not registered";
    const bool of_function = (*found)[2] != "ModuleOp";
    std::vector<std::string>& given = options[name];
    if (given.empty()) given = {name};
    for (const std::string& form : given) forms.push_back(of_function ? "func.func(" + form + ")" : form);
    options.erase(name);
  }
  EXPECT_EQ(unread, 0) << "passes/ defines passes in a way that this test cannot read";
  for (const auto& [name, lines_of_it] : options) ADD_FAILURE() << name << " has options and is not registered";
  return forms;
}

/// What passes did in all steps.
struct Deeds {
  std::set<std::string> forms;          ///< what ran
  std::map<std::string, int> accepted;  ///< by form: the steps that it took
  std::map<std::string, int> changed;   ///< by name of the pass: the steps that it changed
};

/// Runs a pass and holds it to its promise. Where it `may_refuse`, it or autodiff behind it may do so by an error.
void RunForm(compiler::Module& module, const std::string& form, bool may_refuse, Deeds& deeds) {
  const PassPromise promise(form, module);
  deeds.forms.insert(form);
  std::string errors;
  bool ran = RunPasses(module, form, errors);
  if (ran && may_refuse) {
    // What it made of the step has to be evaluated: fusion in front of autodiff leaves no derivative.
    compiler::Module copy = module.Clone();
    ran = RunPasses(copy, "mpc-autodiff", errors);
  }
  if (!ran) {
    EXPECT_TRUE(may_refuse) << errors << promise.text();
    EXPECT_FALSE(errors.empty()) << "the pass failed without a word";
    return;
  }
  promise.ExpectKept(module);
  if (::testing::Test::HasFailure()) std::cerr << "before:\n" << promise.text() << "after:\n" << module.Print();
  ++deeds.accepted[form];
  deeds.changed[NameOf(form)] += module.Print() != promise.text();
}

TEST(RandomPasses, EachPassKeepsItsPromise) {
  registerMpcPasses();
  const std::vector<std::string> registered = RegisteredForms();
  Deeds in_pipeline, alone;
  for (std::uint64_t seed = 0; seed < g_steps; ++seed) {
    compiler::Module module = StepNumber(seed);
    compiler::registerTargets(*module.impl().context);
    std::mt19937_64 random(seed);
    for (const std::string& form : PassesOf(OptionsOf(seed), AttachedTo(seed))) {
      {
        const std::string& other = registered[random() % registered.size()];
        SCOPED_TRACE("step " + std::to_string(seed) + ", " + other + " alone before " + form);
        compiler::Module copy = module.Clone();
        RunForm(copy, other, /*may_refuse=*/true, alone);
        if (HasFailure()) return;
      }
      SCOPED_TRACE("step " + std::to_string(seed) + ", " + form);
      RunForm(module, form, /*may_refuse=*/false, in_pipeline);
      if (HasFailure()) return;
    }
  }
  // The comparisons say something: every form took steps, and every pass changed some, but for those that verify.
  std::uint64_t changed = 0;
  for (const auto& [name, steps] : in_pipeline.changed) changed += static_cast<std::uint64_t>(steps);
  EXPECT_GT(changed, 5 * g_steps);
  for (const std::string& form : registered) {
    EXPECT_GT(alone.accepted[form], 0) << form << " took no step";
    const std::string name = NameOf(form);
    if (name.starts_with("mpc-verify-")) continue;
    EXPECT_GT(in_pipeline.changed[name] + alone.changed[name], 0) << name << " changed no step";
  }
  for (const PromiseException& exception : PromiseExceptions()) {
    const auto fits = [&](const std::string& form) { return IsFor(exception, form); };
    EXPECT_TRUE(std::any_of(alone.forms.begin(), alone.forms.end(), fits)) << exception.form << " is for no pass";
  }
}

}  // namespace
}  // namespace mpc::test

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc > 1) mpc::test::g_steps = std::strtoull(argv[1], nullptr, 10);
  return RUN_ALL_TESTS();
}
