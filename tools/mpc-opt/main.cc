// The MLIR optimizer driver with the mpc dialect, its passes and pipelines.
#include "compiler/dialect/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "passes/pipelines.h"

int main(int argc, char** argv) {
  mlir::DialectRegistry registry;
  registry.insert<mpc::MpcDialect, mlir::func::FuncDialect>();
  mlir::registerTransformsPasses();
  mpc::registerMpcPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "mpc optimizer\n", registry));
}
