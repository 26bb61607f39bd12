// What each pass makes of random training steps, by the interpreter before and after it, at its place in the training
// pipeline. A new pass takes part by being in it, and promises the same bits unless kPromises says otherwise.
//
//   random_passes_test [count]   steps through the pipeline
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/interpreter/interpreter.h"
#include "compiler/module_impl.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/passes.h"
#include "passes/pipelines.h"
#include "tests/compiler/random_graph.h"
#include "tests/compiler/random_step.h"

namespace mpc::test {
namespace {

using mlir::func::FuncOp;
using reference::Rounding;
using reference::Tensor;

std::uint64_t g_steps = 100;

/// What a pass promises of the results that a step has before and after it.
enum class Promise {
  kUnchanged,     ///< the IR stays as it is
  kBits,          ///< the same bits
  kUnscaledBits,  ///< the same bits where the loss scale is 1 and the step is not skipped
  kValues,        ///< the same values where nothing is rounded: the pass changes types, or what is rounded and when
};

/// Passes, or forms of a pass with options, that do not promise the same bits. The first that fits is taken.
struct Exception {
  const char* form;
  Promise promise;
};
constexpr Exception kPromises[] = {
    {"mpc-verify-", Promise::kUnchanged},
    // Casts to low types are the purpose.
    {"mpc-amp", Promise::kValues},
    // Gradients that are scaled are rounded elsewhere.
    {"mpc-loss-scale", Promise::kUnscaledBits},
    // The product that gelu takes is not rounded any more.
    {"mpc-fold-activation", Promise::kValues},
    // A parameter without an f32 master is rounded when it is updated.
    {"mpc-shadows\\{.*master-weights=false", Promise::kValues},
    // Sums of rows have another order and more roundings to f32.
    {"mpc-chunk-head", Promise::kValues},
};

Promise PromiseOf(const std::string& form) {
  for (const Exception& exception : kPromises) {
    if (std::regex_search(form, std::regex(exception.form))) return exception.promise;
  }
  return Promise::kBits;
}

/// A result and the role of it.
struct Result {
  Tensor value;
  std::string role;
};
using ResultMap = std::map<std::string, Result>;

std::string Text(mlir::Attribute attr) {
  auto text = mlir::dyn_cast_or_null<mlir::StringAttr>(attr);
  return text ? text.getValue().str() : "";
}

/// What a step begins with beside its other state.
struct Inputs {
  double scale = 64;  ///< of the loss
  bool finite = true;
};

/// The results of a step, whose requests for gradients are expanded first.
ResultMap Evaluate(const compiler::Module& given, Rounding rounding, const Inputs& inputs = {}) {
  compiler::Module module = given.Clone();
  mlir::PassManager manager(module.impl().context.get());
  manager.addPass(createAutodiffPass());
  EXPECT_TRUE(mlir::succeeded(manager.run(*module.impl().module))) << given.Print();
  FuncOp step = StepOf(module);
  std::vector<Tensor> arguments;
  for (unsigned i = 0; i < step.getNumArguments(); ++i) {
    arguments.push_back(ArgumentValue(step, i, rounding));
    const bool data = Text(step.getArgAttr(i, RoleAttrName)) == "input";
    if (Text(step.getArgAttr(i, NameAttrName)).ends_with(".scale")) arguments.back().values = {inputs.scale};
    if (!inputs.finite && data && IsFloating(arguments.back().spec.dtype)) {
      std::fill(arguments.back().values.begin(), arguments.back().values.end(), HUGE_VAL);
    }
  }
  absl::StatusOr<std::vector<Tensor>> values = interpret(step, arguments, rounding);
  EXPECT_TRUE(values.ok()) << values.status() << "\n" << given.Print();
  ResultMap results;
  for (unsigned i = 0; values.ok() && i < step.getNumResults(); ++i) {
    const std::string name = Text(step.getResultAttr(i, NameAttrName));
    results[name] = {(*values)[i], Text(step.getResultAttr(i, RoleAttrName))};
  }
  return results;
}

/// Far below what one rounding to f32 does, 2^-24, and far above what another order of a sum in f64 does, 2^-53.
bool SameValues(const Tensor& a, const Tensor& b) {
  if (a.spec.shape != b.spec.shape || a.values.size() != b.values.size()) return false;
  const double size = [&] {
    double largest = 0;
    for (double value : a.values) largest = std::max(largest, std::abs(value));
    return largest;
  }();
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    if (std::isnan(a.values[i]) && std::isnan(b.values[i])) continue;
    if (a.values[i] != b.values[i] && !(std::abs(a.values[i] - b.values[i]) <= 0x1p-32 * size)) return false;
  }
  return true;
}

/// What a module is and does before a pass.
struct Before {
  std::string text;
  ResultMap rounded, exact;

  Before(const compiler::Module& module, Promise promise) : text(module.Print()) {
    if (promise == Promise::kBits || promise == Promise::kUnscaledBits) rounded = Evaluate(module, Rounding::kStorage);
    if (promise == Promise::kValues) exact = Evaluate(module, Rounding::kNone);
  }
};

std::string Values(const Tensor& tensor) {
  const auto exact = [](std::string* out, double value) { absl::StrAppend(out, absl::StrFormat("%.17g", value)); };
  return absl::StrCat(tensor.spec.ToString(), " ", absl::StrJoin(tensor.values, " ", exact));
}

bool IsState(const std::string& role) { return role != "output" && role != "record" && !role.empty(); }

/// Whether the step has a finite check that did not pass.
bool IsSkipped(const ResultMap& results) {
  return results.contains("finite") && results.at("finite").value.values[0] == 0;
}

template <typename Same>
void ExpectSameResults(const ResultMap& expected, const ResultMap& actual, bool with_state, const Same& same) {
  for (const auto& [name, result] : expected) {
    if (!with_state && IsState(result.role)) continue;
    ASSERT_TRUE(actual.contains(name)) << name << " is gone";
    ASSERT_TRUE(same(result.value, actual.at(name).value))
        << name << ": " << Values(result.value) << " before, " << Values(actual.at(name).value) << " after";
  }
}

/// What `mpc-loss-scale` promises beside values: a step that is not finite holds what optimizers write.
void ExpectHeldWhereNotFinite(compiler::Module& module) {
  FuncOp step = StepOf(module);
  const ResultMap results = Evaluate(module, Rounding::kStorage, {.finite = false});
  if (!IsSkipped(results)) return;
  for (unsigned i = 0; i < step.getNumArguments(); ++i) {
    const std::string role = Text(step.getArgAttr(i, RoleAttrName));
    const std::string name = Text(step.getArgAttr(i, NameAttrName));
    if ((role != "parameter" && role != "slot") || !results.contains(name)) continue;
    ASSERT_TRUE(SameBits(ArgumentValue(step, i), results.at(name).value)) << name << " moved in a step that is skipped";
  }
}

void ExpectPromise(Promise promise, const Before& before, compiler::Module& module) {
  ASSERT_TRUE(mlir::succeeded(mlir::verify(*module.impl().module)));
  switch (promise) {
    case Promise::kUnchanged:
      ASSERT_EQ(before.text, module.Print());
      return;
    case Promise::kBits:
      return ExpectSameResults(before.rounded, Evaluate(module, Rounding::kStorage), /*with_state=*/true, SameBits);
    case Promise::kUnscaledBits: {
      const ResultMap actual = Evaluate(module, Rounding::kStorage, {.scale = 1});
      return ExpectSameResults(before.rounded, actual, !IsSkipped(actual), SameBits);
    }
    case Promise::kValues: {
      const ResultMap actual = Evaluate(module, Rounding::kNone);
      return ExpectSameResults(before.exact, actual, !IsSkipped(actual), SameValues);
    }
  }
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
std::vector<std::string> PassesOf(const TrainPipelineOptions& options) {
  mlir::MLIRContext context;
  mlir::PassManager manager(&context, mlir::ModuleOp::getOperationName());
  buildTrainPipeline(manager, options);
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

void SetOptions(std::uint64_t seed, TrainPipelineOptions& options) {
  const Setting setting = SettingOf(seed);
  options.level = setting.level;
  options.dtype = setting.dtype;
  options.layout = seed % 2 == 0;
  options.fusion = seed % 3 != 0;
  options.masterWeights = seed % 4 != 1;
  options.headChunks = seed % 5 == 2 ? 2 : 1;
  options.recompute = static_cast<std::int64_t>(seed % 7);
  options.lossScale = seed % 3 == 0 ? "none" : seed % 3 == 1 ? "static" : "dynamic";
}

compiler::Module StepNumber(std::uint64_t seed) { return MakeRandomTrainingStep(seed, /*fusible=*/seed % 3 == 1); }

TEST(RandomPasses, EachPassOfThePipelineKeepsItsPromise) {
  registerMpcPasses();
  std::uint64_t changed = 0;
  std::set<std::string> passes;
  for (std::uint64_t seed = 0; seed < g_steps; ++seed) {
    TrainPipelineOptions options;
    SetOptions(seed, options);
    compiler::Module module = StepNumber(seed);
    for (const std::string& pass : PassesOf(options)) {
      passes.insert(pass);
      SCOPED_TRACE("step " + std::to_string(seed) + ", " + pass);
      const Promise promise = PromiseOf(pass);
      const Before before(module, promise);
      std::string errors;
      ASSERT_TRUE(RunPasses(module, pass, errors)) << errors << before.text;
      ExpectPromise(promise, before, module);
      if (pass.find("mpc-loss-scale") != std::string::npos) ExpectHeldWhereNotFinite(module);
      if (HasFatalFailure()) {
        std::cerr << "before:\n" << before.text << "after:\n" << module.Print();
        return;
      }
      changed += module.Print() != before.text;
    }
  }
  for (const Exception& exception : kPromises) {
    const auto fits = [&](const std::string& pass) { return std::regex_search(pass, std::regex(exception.form)); };
    EXPECT_TRUE(std::any_of(passes.begin(), passes.end(), fits)) << exception.form << " is an exception for no pass";
  }
  // The comparisons say something.
  EXPECT_GT(changed, 5 * g_steps);
}

}  // namespace
}  // namespace mpc::test

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc > 1) mpc::test::g_steps = std::strtoull(argv[1], nullptr, 10);
  return RUN_ALL_TESTS();
}
