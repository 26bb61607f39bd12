// Lowers one function of final IR, and what it calls, to a Program: instructions, storage, an arena.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/codegen/code_generator.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/executable.h"
#include "runtime/program.h"

namespace mpc::compiler {

/// Lowers \p function, which must be one block of operations that \p target has kernels for and no sequence. Functions
/// that mpc.repeat calls become sequences. State results update their argument in place where every other reader comes
/// first; otherwise the Program copies and says why. \p code is the code of the regions of all these functions. Its
/// blobs become the Program's. Remarks on what was measured to choose kernels are added to \p remarks. Errors:
/// UNIMPLEMENTED or INVALID_ARGUMENT naming the operation and its Cell path.
absl::StatusOr<runtime::Program> lowerToProgram(mlir::func::FuncOp function, const runtime::Device &target,
                                                const runtime::PlanOptions &options = {},
                                                codegen::GeneratedCode code = codegen::GeneratedCode(),
                                                std::vector<std::string> *remarks = nullptr);

} // namespace mpc::compiler
