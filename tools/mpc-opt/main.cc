// The MLIR optimizer driver with the mpc dialect, its passes and pipelines; docs/mpc-opt.md is a tour.
#include "compiler/dialect/dialect.h"
#include "compiler/target/targets.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "passes/pipelines.h"
#include "runtime/version.h"
#include "tools/mpc-opt/check_program_pass.h"
#include "tools/mpc-opt/driver.h"
#include "tools/mpc-opt/driver_options.h"
#include "tools/mpc-opt/interpret_pass.h"

int main(int argc, char** argv) {
  llvm::cl::SetVersionPrinter(
      [](llvm::raw_ostream& out) { out << "mpc-opt " MPC_VERSION ", LLVM " LLVM_VERSION_STRING "\n"; });
  mlir::DialectRegistry registry;
  registry.insert<mpc::MpcDialect, mlir::func::FuncDialect>();
  mpc::compiler::registerTargets(registry);
  mlir::registerTransformsPasses();
  mpc::registerMpcPasses();
  mpc::opt::RegisterCheckProgramPass();
  mpc::opt::RegisterInterpretPass();
  std::string header = mlir::registerCLIOptions("mpc optimizer\n", registry);
  mpc::opt::HideForeignOptions();
  auto [input, output] = mlir::parseCLIOptions(argc, argv, header);
  if (mpc::opt::HasOwnOptions() || mpc::opt::WritesFile(output))
    return mpc::opt::RunWithOwnOptions(input, output, registry);
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, input, output, registry));
}
