#include "tests/compiler/random_step.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <random>

#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/state_attributes.h"
#include "compiler/interpreter/interpreter.h"
#include "compiler/module/module_impl.h"
#include "compiler/target/targets.h"
#include "mlir/Pass/PassManager.h"
#include "passes/pipelines.h"
#include "tests/compiler/random_graph.h"

namespace mpc::test {

using mlir::func::FuncOp;
using reference::Tensor;

Setting SettingOf(std::uint64_t seed) {
  static constexpr const char* kLevels[] = {"O1", "O2", "O3", "auto", "O0"};
  return {kLevels[seed % 5], (seed / 5) % 2 == 0 ? "f16" : "bf16"};
}

mlir::LogicalResult RunPipeline(mlir::ModuleOp module, const Setting& setting, bool layout, bool fusion) {
  compiler::registerTargets(*module.getContext());
  mlir::PassManager manager(module.getContext());
  compiler::CompileOptions options;
  options.level = setting.level;
  options.dtype = setting.dtype;
  options.layout = layout;
  options.fusion = fusion;
  buildStepPipeline(manager, options, Stage::Final);
  return manager.run(module);
}

compiler::Module FinalStep(std::uint64_t seed, bool fusion, int most_rows) {
  compiler::Module module = seed % 5 == 4 ? MakeRandomGraph(seed) : MakeRandomFusibleGraph(seed, most_rows);
  mlir::ScopedDiagnosticHandler quiet(module.impl().context.get(), [](mlir::Diagnostic& diagnostic) {
    return mlir::success(diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error);
  });
  // seed / 5: levels and kinds of graphs meet in every way.
  EXPECT_TRUE(
      mlir::succeeded(RunPipeline(*module.impl().module, SettingOf(seed / 5), /*layout=*/seed % 2 == 0, fusion)));
  return module;
}

std::vector<FusionOp> RegionsOf(compiler::Module& module) {
  std::vector<FusionOp> regions;
  for (FusionOp fusion : StepOf(module).getOps<FusionOp>()) regions.push_back(fusion);
  return regions;
}

FuncOp StepOf(compiler::Module& module) { return module.impl().module->lookupSymbol<FuncOp>("train_step"); }

// A scaler's field of floating type; null for any other argument.
static std::optional<double> ScalerField(const std::string& name) {
  const std::string field = name.substr(name.rfind('.') + 1);
  if (field == "scale") return 64.0;
  if (field == "growth") return 2.0;
  if (field == "backoff") return 0.5;
  if (field == "minimum") return 0.25;
  if (field == "maximum") return 1024.0;
  return std::nullopt;
}

Tensor ArgumentValue(FuncOp function, unsigned index, reference::Rounding rounding) {
  Tensor tensor;
  tensor.spec = toTensorSpec(mlir::cast<mlir::RankedTensorType>(function.getArgument(index).getType()));
  const StateAttr state = argumentState(function, index);
  const Role role = state.getRole();
  const std::string name = (role == Role::kDerived ? state.getOf() : state.getName()).str();
  if (role == Role::kScaler && IsFloating(tensor.spec.dtype)) {
    tensor.values = {ScalerField(name).value()};
    return tensor;
  }
  std::seed_seq seed(name.begin(), name.end());
  std::mt19937_64 random(seed);
  const bool parameter = name[0] == 'p';
  for (std::int64_t i = 0; i < tensor.spec.num_elements(); ++i) {
    double value = IsFloating(tensor.spec.dtype)
                       ? std::normal_distribution<double>(0, parameter ? 0.5 : 1.0)(random)
                       : static_cast<double>(std::uniform_int_distribution<int>(0, 2)(random));
    value = reference::RoundTo(DType::kF32, role == Role::kSlot ? std::abs(value) : value);
    tensor.values.push_back(rounding == reference::Rounding::kNone ? value
                                                                   : reference::RoundTo(tensor.spec.dtype, value));
  }
  return tensor;
}

std::map<std::string, Tensor> Results(compiler::Module& module) {
  FuncOp step = StepOf(module);
  std::vector<Tensor> arguments;
  for (unsigned i = 0; i < step.getNumArguments(); ++i) arguments.push_back(ArgumentValue(step, i));
  absl::StatusOr<std::vector<Tensor>> values = interpret(step, arguments);
  EXPECT_TRUE(values.ok()) << values.status() << "\n" << module.Print();
  std::map<std::string, Tensor> results;
  for (unsigned i = 0; values.ok() && i < step.getNumResults(); ++i) {
    const std::string name = resultName(step, i).str();
    if (!name.empty()) results[name] = (*values)[i];
  }
  return results;
}

bool SameBits(const Tensor& a, const Tensor& b) {
  if (!(a.spec == b.spec) || a.values.size() != b.values.size()) return false;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    if (a.values[i] != b.values[i] && !(std::isnan(a.values[i]) && std::isnan(b.values[i]))) return false;
  }
  return true;
}

}  // namespace mpc::test
