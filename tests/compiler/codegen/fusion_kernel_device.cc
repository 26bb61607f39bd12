#include "tests/compiler/codegen/fusion_kernel_device.h"

#include <utility>
#include <vector>

#include "compiler/dialect/attribute_conversion.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "tests/compiler/op_case_module.h"

namespace mpc::test {
namespace {

using mlir::OpBuilder;

// The operation of `spec` in a region that yields its used results.
FusionOp BuildRegion(mlir::ModuleOp module, const KernelSpec& spec) {
  mlir::MLIRContext* context = module.getContext();
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  const mlir::Location loc = builder.getUnknownLoc();
  llvm::SmallVector<mlir::Type> operands;
  for (const TensorSpec& input : spec.inputs) operands.push_back(toTensorType(context, input));
  llvm::SmallVector<mlir::Type> results, used;
  for (std::size_t i = 0; i < spec.outputs.size(); ++i) {
    results.push_back(toTensorType(context, spec.outputs[i]));
    if (spec.uses(i)) used.push_back(results.back());
  }
  mlir::OperationState fusion(loc, FusionOp::getOperationName());
  for (mlir::Type type : operands) {
    mlir::OperationState source(loc, "builtin.unrealized_conversion_cast");
    source.addTypes(type);
    fusion.addOperands(builder.create(source)->getResult(0));
  }
  fusion.addTypes(used);
  auto* body = new mlir::Block;
  fusion.addRegion()->push_back(body);
  for (mlir::Type type : operands) body->addArgument(type, loc);
  auto region = mlir::cast<FusionOp>(builder.create(fusion));
  builder.setInsertionPointToEnd(body);
  mlir::OperationState state(loc, "mpc." + spec.name);
  state.addOperands(body->getArguments());
  state.addTypes(results);
  state.addAttributes(toNamedAttributes(context, spec.attributes));
  mlir::Operation* op = builder.create(state);
  llvm::SmallVector<mlir::Value> yielded;
  for (mlir::OpResult result : op->getResults()) {
    if (spec.uses(result.getResultNumber())) yielded.push_back(result);
  }
  YieldOp::create(builder, loc, yielded);
  return region;
}

struct OperationFusion {
  explicit OperationFusion(const KernelSpec& spec)
      : module(mlir::ModuleOp::create(mlir::UnknownLoc::get(&ThreadContext()))), fusion(BuildRegion(*module, spec)) {}
  mlir::OwningOpRef<mlir::ModuleOp> module;
  FusionOp fusion;
};

class FusionKernel : public KernelDevice::Kernel {
 public:
  FusionKernel(std::unique_ptr<LoadedFusions> loaded, const FusionForm& form, const KernelSpec& spec)
      : loaded_(std::move(loaded)), form_(form), spec_(spec) {}
  std::size_t workspace_bytes() const override { return loaded_->regions().front().code.workspace_bytes; }
  absl::Status Run(const void* const* inputs, void* const* outputs, void* workspace) override {
    std::vector<void*> operands;
    for (std::size_t i = 0; i < spec_.inputs.size(); ++i) operands.push_back(const_cast<void*>(inputs[i]));
    for (std::size_t i = 0; i < spec_.outputs.size(); ++i) {
      if (spec_.uses(i)) operands.push_back(outputs[i]);
    }
    return form_.run(loaded_->regions().front(), operands.data(), workspace, form_.orders - 1);
  }

 private:
  std::unique_ptr<LoadedFusions> loaded_;
  FusionForm form_;
  KernelSpec spec_;
};

}  // namespace

bool FusionKernelDevice::IsFusible(const KernelSpec& spec) {
  OperationFusion region(spec);
  if (!mlir::isa<FusibleOpInterface>(region.fusion.getBody().front().front())) return false;
  llvm::Expected<codegen::FusionPlan> plan = codegen::FusionPlan::create(region.fusion);
  if (plan) return true;
  llvm::consumeError(plan.takeError());
  return false;
}

absl::StatusOr<std::unique_ptr<KernelDevice::Kernel>> FusionKernelDevice::Create(const KernelSpec& spec) const {
  auto loaded = LoadedFusions::Create({OperationFusion(spec).fusion}, form_.target, form_.provided);
  if (!loaded.ok()) return loaded.status();
  return std::make_unique<FusionKernel>(*std::move(loaded), form_, spec);
}

}  // namespace mpc::test
