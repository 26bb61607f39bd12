// The MLIR optimizer driver with the mpc dialect, its passes and pipelines; docs/mpc-opt.md is a tour.
#include "compiler/dialect/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "passes/pipelines.h"
#include "tools/mpc-opt/check_program_pass.h"
#include "tools/mpc-opt/driver.h"
#include "tools/mpc-opt/driver_options.h"

int main(int argc, char** argv) {
  mlir::DialectRegistry registry;
  registry.insert<mpc::MpcDialect, mlir::func::FuncDialect>();
  mlir::registerTransformsPasses();
  mpc::registerMpcPasses();
  mpc::opt::RegisterCheckProgramPass();
  auto [input, output] = mlir::registerAndParseCLIOptions(argc, argv, "mpc optimizer\n", registry);
  if (mpc::opt::HasOwnOptions()) return mpc::opt::RunWithOwnOptions(input, output, registry);
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, input, output, registry));
}
