// mpc-opt's own options on top of mlir-opt's: models instead of files, reports and graphs instead of IR.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "mlir/IR/DialectRegistry.h"

namespace mpc::opt {

/// Whether the command line holds an option of this file. Without one, mpc-opt is mlir-opt with the mpc dialect.
bool HasOwnOptions();

/// Runs with those options; `input` and `output` are mlir-opt's file names ("-": none given). Returns the exit code.
int RunWithOwnOptions(llvm::StringRef input, llvm::StringRef output, mlir::DialectRegistry& registry);

}  // namespace mpc::opt
