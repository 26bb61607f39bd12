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
  StepCode(const runtime::Device &Device, const CompileOptions &Options) : Device(Device), Options(Options) {}

  /// Returns how the regions of \p Function, and of what it calls, are called. Nothing is assembled. Errors:
  /// UNAVAILABLE where no code is made for the device, INVALID_ARGUMENT for a region that cannot be generated.
  absl::StatusOr<codegen::GeneratedCode> plan(mlir::func::FuncOp Function);
  /// Gives \p Result's Program, which was lowered from \p Function as it was planned, its code. Adds the times, the
  /// counts and what the user should know. Errors: as plan.
  absl::Status generate(mlir::func::FuncOp Function, CompileResult &Result);

private:
  using Maker = llvm::Expected<codegen::GeneratedCode> (codegen::CodeGenerator::*)(mlir::func::FuncOp);

  absl::Status findTarget();
  /// Returns what \p Make gives for \p Function. Errors: those of plan.
  absl::StatusOr<codegen::GeneratedCode> make(mlir::func::FuncOp Function, Maker Make);

  const runtime::Device &Device;
  const CompileOptions &Options;
  std::optional<codegen::CodeGenerator> Generator;
};

} // namespace mpc::compiler
