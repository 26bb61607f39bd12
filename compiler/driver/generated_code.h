// Makes code for a device from the regions of a compiled function.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/codegen/code_generator.h"
#include "compiler/driver/compiler.h"
#include "runtime/executable.h"

#include <optional>

namespace mpc::compiler {

/// The code of the regions of one step, or of trials of it, for one device. A function without regions needs no code
/// and may be for any device.
class StepCode {
public:
  StepCode(const runtime::Device &device, const CompileOptions &options) : device(device), options(options) {}

  /// Returns how the regions of \p function, and of what it calls, are called. Nothing is assembled. Errors:
  /// UNAVAILABLE where no code is made for the device, INVALID_ARGUMENT for a region that cannot be generated.
  absl::StatusOr<codegen::GeneratedCode> plan(mlir::func::FuncOp function);
  /// Gives \p result's Program, which was lowered from \p function as it was planned, its code. Adds the times, the
  /// counts and what the user should know. Errors: as plan.
  absl::Status generate(mlir::func::FuncOp function, CompileResult &result);

private:
  using Maker = llvm::Expected<codegen::GeneratedCode> (codegen::CodeGenerator::*)(mlir::func::FuncOp);

  absl::Status findTarget();
  /// Returns what \p make gives for \p function. Errors: those of plan.
  absl::StatusOr<codegen::GeneratedCode> make(mlir::func::FuncOp function, Maker make);

  const runtime::Device &device;
  const CompileOptions &options;
  std::optional<codegen::CodeGenerator> generator;
};

} // namespace mpc::compiler
