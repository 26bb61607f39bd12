// Random training steps through the passes and the interpreter.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/dialect/dialect.h"
#include "compiler/module/graph_builder.h"
#include "kernels/reference/reference.h"

namespace mpc::test {

struct Setting {
  std::string level;
  std::string dtype;
};

/// Every level with both low types, in turn.
Setting SettingOf(std::uint64_t seed);

/// The training pipeline to its end.
mlir::LogicalResult RunPipeline(mlir::ModuleOp module, const Setting& setting, bool layout, bool fusion);

/// Random step number `seed` at a setting of its own, at the end of the passes, from graphs of both kinds, with layouts
/// of both kinds. A failure of the passes fails the test.
compiler::Module FinalStep(std::uint64_t seed, bool fusion, int most_rows = 24);

mlir::func::FuncOp StepOf(compiler::Module& module);
std::vector<FusionOp> RegionsOf(compiler::Module& module);

/// A value that depends on the argument's name alone; a parameter's shadow is the parameter rounded. Slots are not
/// negative, and the loss scale is 64. Without rounding the value is that of f32 whatever the type.
reference::Tensor ArgumentValue(mlir::func::FuncOp function, unsigned index,
                                reference::Rounding rounding = reference::Rounding::kStorage);

/// The results of the step by name. A failure of the interpreter fails the test.
std::map<std::string, reference::Tensor> Results(compiler::Module& module);

/// Whether two tensors hold the same values, NaN where the other has NaN.
bool SameBits(const reference::Tensor& a, const reference::Tensor& b);

}  // namespace mpc::test
