// mpc-opt's own options on top of mlir-opt's: models instead of files, reports and graphs instead of IR.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "mlir/IR/DialectRegistry.h"

namespace mpc::opt {

/// Whether `output`, mlir-opt's file name, gets IR. mpc-opt then writes it as all files of mpc are written.
bool WritesFile(llvm::StringRef output);

/// Runs with the options of driver_options.h; `input` and `output` are mlir-opt's file names ("-": none given). Returns
/// the exit code.
int RunWithOwnOptions(llvm::StringRef input, llvm::StringRef output, mlir::DialectRegistry& registry);

}  // namespace mpc::opt
