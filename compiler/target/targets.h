// The devices that the compiler knows, as passes and code generation ask them.
#pragma once

#include "compiler/codegen/code_generator.h"
#include "compiler/dialect/target_model.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "runtime/executable.h"

#include <string_view>

namespace mpc::compiler {

/// Lets contexts with the dialect resolve `#mpc.target` (TargetModels).
void registerTargets(mlir::DialectRegistry &registry);
/// The same for a context that is there. It may be called more than once.
void registerTargets(mlir::MLIRContext &context);

/// The target of generated code for \p device. Errors: as hostTarget and gpuTarget; a backend without generated code.
llvm::Expected<codegen::CodeTarget> codeTargetOf(const runtime::Device &device);
/// Whether generated code for the device called \p device is PTX, whose resources reports list.
bool generatesPtx(std::string_view device);

} // namespace mpc::compiler
