#include "tests/compiler/pass_promises.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/state_attributes.h"
#include "compiler/interpreter/interpreter.h"
#include "compiler/module/module_impl.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "passes/passes.h"
#include "runtime/scaler_field.h"
#include "tests/compiler/random_step.h"

namespace mpc::test {

using mlir::func::FuncOp;
using reference::Rounding;
using reference::Tensor;

const std::vector<PromiseException>& PromiseExceptions() {
  static const auto* const exceptions = new std::vector<PromiseException>{
      {"mpc-verify-", Promise::kUnchanged},
      // Casts to low types are the purpose.
      {"mpc-amp", Promise::kValues},
      // The derivative of exp reads its result, which is low where a cast has been folded.
      {"mpc-cast-cleanup", Promise::kBits, Promise::kValues},
      {"mpc-loss-scale\\{.*accumulation-steps=2", Promise::kMicroSteps},
      {"mpc-loss-scale\\{.*processes=2", Promise::kProcesses},
      // Gradients that are scaled are rounded elsewhere.
      {"mpc-loss-scale", Promise::kUnscaledBits},
      // The product that gelu takes is not rounded any more.
      {"mpc-fold-activation", Promise::kValues},
      // A parameter without an f32 master is rounded when it is updated.
      {"mpc-shadows\\{.*master-weights=false", Promise::kValues},
      // The variance is a difference of sums.
      {"mpc-conv-statistics", Promise::kValues},
      // Sums of rows have another order and more roundings to f32.
      {"mpc-chunk-head", Promise::kValues},
      {"mpc-instrument", Promise::kStatistics},
  };
  return *exceptions;
}

bool IsFor(const PromiseException& exception, const std::string& form) {
  return std::regex_search(form, std::regex(exception.form));
}

static bool RequestsGradients(const compiler::Module& module) {
  return module.impl()
      .module.get()
      .walk([](mlir::Operation* op) {
        return has<Property::GradientRequest>(op) ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

static Promise PromiseOf(const std::string& form, const compiler::Module& before) {
  for (const PromiseException& exception : PromiseExceptions()) {
    if (!IsFor(exception, form)) continue;
    return exception.early.has_value() && RequestsGradients(before) ? *exception.early : exception.promise;
  }
  return Promise::kBits;
}

namespace {

/// What a step begins with beside what ArgumentValue says.
struct Inputs {
  double scale = 64;  ///< of the loss
  bool finite = true;
  double micro_step = 1;               ///< the last of two
  const RoleResults* state = nullptr;  ///< what an earlier step left
};

}  // namespace

static Tensor InputOf(FuncOp step, unsigned index, Rounding rounding, const Inputs& inputs) {
  const std::string name = argumentName(step, index).str();
  const std::optional<Role> role = argumentRole(step, index);
  if (inputs.state != nullptr && role != Role::kInput && inputs.state->contains(name))
    return inputs.state->at(name).value;
  Tensor tensor = ArgumentValue(step, index, rounding);
  if (role == Role::kScaler && ScalerFieldOf(name) == ScalerField::kScale) tensor.values = {inputs.scale};
  // Beside the count of micro-steps, whole numbers are positions of gradients: none was bad so far.
  if (role == Role::kAccumulator && !IsFloating(tensor.spec.dtype)) {
    tensor.values = {name == "accumulator.micro_step" ? inputs.micro_step : -1};
  }
  if (!inputs.finite && role == Role::kInput && IsFloating(tensor.spec.dtype)) {
    std::fill(tensor.values.begin(), tensor.values.end(), HUGE_VAL);
  }
  return tensor;
}

/// How many processes run a step, on the same inputs.
static std::size_t ProcessesOf(FuncOp step) {
  const mlir::IntegerAttr processes = dialectOf(step).getProcessesAttrHelper().getAttr(step);
  return processes ? static_cast<std::size_t>(processes.getInt()) : 1;
}

/// The results of a step, whose requests for gradients are expanded first.
static RoleResults Evaluate(const compiler::Module& given, Rounding rounding, const Inputs& inputs = {}) {
  compiler::Module module = given.Clone();
  mlir::PassManager manager(module.impl().context.get());
  manager.addPass(createAutodiffPass());
  EXPECT_TRUE(mlir::succeeded(manager.run(*module.impl().module))) << given.Print();
  FuncOp step = StepOf(module);
  std::vector<Tensor> arguments;
  for (unsigned i = 0; i < step.getNumArguments(); ++i) arguments.push_back(InputOf(step, i, rounding, inputs));
  const std::vector<std::vector<Tensor>> of_processes(ProcessesOf(step), arguments);
  const auto values = interpretProcesses(step, of_processes, rounding);
  EXPECT_TRUE(values.ok()) << values.status() << "\n" << given.Print();
  RoleResults results;
  for (unsigned i = 0; values.ok() && i < step.getNumResults(); ++i) {
    results[resultName(step, i).str()] = {values->front()[i], resultRole(step, i)};
    for (const std::vector<Tensor>& of_process : *values) {
      EXPECT_TRUE(SameBits(of_process[i], values->front()[i])) << resultName(step, i).str() << " differs by process";
    }
  }
  return results;
}

/// Far below what one rounding to f32 does, 2^-24, and far above what another order of a sum in f64 does, 2^-53.
static bool SameValues(const Tensor& a, const Tensor& b) {
  if (a.spec.shape != b.spec.shape || a.values.size() != b.values.size()) return false;
  double size = 0;
  for (double value : a.values) size = std::max(size, std::abs(value));
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    if (std::isnan(a.values[i]) && std::isnan(b.values[i])) continue;
    if (a.values[i] != b.values[i] && !(std::abs(a.values[i] - b.values[i]) <= 0x1p-32 * size)) return false;
  }
  return true;
}

static std::string Values(const Tensor& tensor) {
  const auto exact = [](std::string* out, double value) { absl::StrAppend(out, absl::StrFormat("%.17g", value)); };
  return absl::StrCat(tensor.spec.ToString(), " ", absl::StrJoin(tensor.values, " ", exact));
}

/// Whether the step has a finite check that did not pass.
static bool IsSkipped(const RoleResults& results) {
  return results.contains("finite") && results.at("finite").value.values[0] == 0;
}

template <typename Same>
static void ExpectSameResults(const RoleResults& expected, const RoleResults& actual, bool with_state,
                              const Same& same) {
  for (const auto& [name, result] : expected) {
    if (!with_state && isState(result.role)) continue;
    ASSERT_TRUE(actual.contains(name)) << name << " is gone";
    ASSERT_TRUE(same(result.value, actual.at(name).value))
        << name << ": " << Values(result.value) << " before, " << Values(actual.at(name).value) << " after";
  }
}

/// A step that is skipped now, and was not before, holds its state.
template <typename Same>
static void ExpectSameUnlessSkipped(const RoleResults& expected, const RoleResults& actual, const Same& same) {
  ExpectSameResults(expected, actual, !IsSkipped(actual) || IsSkipped(expected), same);
}

/// Parameters and slots of the step are what they were.
static void ExpectHeld(compiler::Module& module, const RoleResults& results, const Inputs& inputs) {
  FuncOp step = StepOf(module);
  for (unsigned i = 0; i < step.getNumArguments(); ++i) {
    const std::optional<Role> role = argumentRole(step, i);
    const std::string name = argumentName(step, i).str();
    if ((role != Role::kParameter && role != Role::kSlot) || !results.contains(name)) continue;
    ASSERT_TRUE(SameBits(InputOf(step, i, Rounding::kStorage, inputs), results.at(name).value)) << name << " moved";
  }
}

static void ExpectHeldWhereNotFinite(compiler::Module& module) {
  const Inputs inputs{.finite = false};
  const RoleResults results = Evaluate(module, Rounding::kStorage, inputs);
  if (IsSkipped(results)) ExpectHeld(module, results, inputs);
}

static void ExpectMicroSteps(compiler::Module& module, const RoleResults& expected) {
  const Inputs first{.scale = 1, .micro_step = 0};
  const RoleResults gathered = Evaluate(module, Rounding::kStorage, first);
  ASSERT_TRUE(gathered.contains("micro_step")) << "the step does not accumulate";
  ExpectHeld(module, gathered, first);
  ExpectSameUnlessSkipped(expected, Evaluate(module, Rounding::kStorage, {.state = &gathered}), SameBits);
}

/// The largest magnitude of each parameter and floating input is one of the results, and no result is state.
static void ExpectStatistics(compiler::Module& module) {
  const RoleResults results = Evaluate(module, Rounding::kStorage);
  ASSERT_FALSE(results.empty());
  for (const auto& [name, result] : results) ASSERT_FALSE(isState(result.role)) << name << " is state";
  FuncOp step = StepOf(module);
  for (unsigned i = 0; i < step.getNumArguments(); ++i) {
    const Tensor value = ArgumentValue(step, i);
    const std::optional<Role> role = argumentRole(step, i);
    if ((role != Role::kParameter && role != Role::kInput) || !IsFloating(value.spec.dtype)) continue;
    const std::string name = absl::StrCat("statistics|", argumentName(step, i).str(), "|", std::string(RoleName(*role)),
                                          "|forward|0|", std::string(DTypeName(value.spec.dtype)), "|largest");
    ASSERT_TRUE(results.contains(name)) << name;
    double largest = 0;
    for (double element : value.values) largest = std::max(largest, std::abs(element));
    ASSERT_EQ(results.at(name).value.values[0], largest) << name;
  }
}

PassPromise::PassPromise(const std::string& form, const compiler::Module& before)
    : promise_(PromiseOf(form, before)), text_(before.Print()) {
  if (promise_ == Promise::kBits) results_ = Evaluate(before, Rounding::kStorage);
  if (promise_ == Promise::kValues) results_ = Evaluate(before, Rounding::kNone);
  if (promise_ == Promise::kUnscaledBits || promise_ == Promise::kMicroSteps || promise_ == Promise::kProcesses) {
    results_ = Evaluate(before, Rounding::kStorage, {.scale = 1});
  }
}

void PassPromise::ExpectKept(compiler::Module& after) const {
  ASSERT_TRUE(mlir::succeeded(mlir::verify(*after.impl().module)));
  const bool is_unchanged = after.Print() == text_;
  switch (promise_) {
    case Promise::kUnchanged:
      ASSERT_TRUE(is_unchanged) << "the IR is another";
      return;
    case Promise::kBits:
      return ExpectSameResults(results_, Evaluate(after, Rounding::kStorage), /*with_state=*/true, SameBits);
    case Promise::kUnscaledBits:
      ExpectSameUnlessSkipped(results_, Evaluate(after, Rounding::kStorage, {.scale = 1}), SameBits);
      return ExpectHeldWhereNotFinite(after);
    case Promise::kMicroSteps:
      if (is_unchanged) return;
      ExpectMicroSteps(after, results_);
      return ExpectHeldWhereNotFinite(after);
    case Promise::kProcesses:
      if (is_unchanged) return;
      ASSERT_EQ(ProcessesOf(StepOf(after)), 2u);
      return ExpectSameUnlessSkipped(results_, Evaluate(after, Rounding::kStorage, {.scale = 1}), SameBits);
    case Promise::kValues:
      return ExpectSameUnlessSkipped(results_, Evaluate(after, Rounding::kNone), SameValues);
    case Promise::kStatistics:
      if (!is_unchanged) ExpectStatistics(after);
      return;
  }
}

}  // namespace mpc::test
