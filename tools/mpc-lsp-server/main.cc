// A language server for .mlir files with the mpc dialect: completion, hover and errors in an editor.
#include "compiler/dialect/dialect.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "runtime/version.h"

int main(int argc, char** argv) {
  llvm::cl::SetVersionPrinter(
      [](llvm::raw_ostream& out) { out << "mpc-lsp-server " MPC_VERSION ", LLVM " LLVM_VERSION_STRING "\n"; });
  mlir::DialectRegistry registry;
  registry.insert<mpc::MpcDialect, mlir::func::FuncDialect>();
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry)) ? 1 : 0;
}
