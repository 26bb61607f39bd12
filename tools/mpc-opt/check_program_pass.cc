#include "tools/mpc-opt/check_program_pass.h"

#include <memory>
#include <string>
#include <utility>

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/step_signature.h"
#include "compiler/driver/generated_code.h"
#include "compiler/lowering/lowering.h"
#include "llvm/Support/ErrorHandling.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "runtime/program_check.h"

using namespace llvm;

namespace mpc::opt {
namespace {

absl::StatusOr<runtime::Program> Lower(mlir::func::FuncOp function, const runtime::Device& device) {
  const compiler::CompileOptions options;
  compiler::StepCode code(device, options);
  absl::StatusOr<codegen::GeneratedCode> plan = code.plan(function);
  if (!plan.ok()) return plan.status();
  absl::StatusOr<runtime::Program> program = compiler::lowerToProgram(function, device, {}, *std::move(plan));
  if (!program.ok()) return program.status();
  compiler::CompileResult result;
  result.program = *std::move(program);
  if (absl::Status status = code.generate(function, result); !status.ok()) return status;
  return std::move(result.program);
}

class CheckProgramPass : public mlir::PassWrapper<CheckProgramPass, mlir::OperationPass<mlir::ModuleOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CheckProgramPass)

  StringRef getArgument() const override { return "mpc-check-program"; }
  StringRef getName() const override { return "CheckProgramPass"; }
  StringRef getDescription() const override {
    return "Lowers each function that is no sequence for the CPU and checks the Program; the IR stays as it is";
  }

  void getDependentDialects(mlir::DialectRegistry& registry) const override { registry.insert<MpcDialect>(); }

  void runOnOperation() override {
    markAllAnalysesPreserved();
    for (auto function : getOperation().getOps<mlir::func::FuncOp>()) {
      if (!function.isExternal() && !isSequence(function)) Check(function);
    }
  }

 private:
  void Check(mlir::func::FuncOp function) {
    const absl::StatusOr<const runtime::Device*> device = runtime::GetDevice("cpu");
    const absl::StatusOr<runtime::Program> program =
        device.ok() ? Lower(function, **device) : absl::StatusOr<runtime::Program>(device.status());
    if (!program.ok()) {
      function.emitError(std::string(program.status().message()));
      return signalPassFailure();
    }
    if (const absl::Status status = runtime::CheckProgram(*program); !status.ok())
      report_fatal_error(Twine("lowering made a malformed program: ", std::string(status.message())));
  }
};

}  // namespace

void RegisterCheckProgramPass() {
  mlir::registerPass([]() -> std::unique_ptr<mlir::Pass> { return std::make_unique<CheckProgramPass>(); });
}

}  // namespace mpc::opt
