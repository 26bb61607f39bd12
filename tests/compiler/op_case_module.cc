#include "tests/compiler/op_case_module.h"

#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/dialect.h"
#include "compiler/target/targets.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/passes.h"

using namespace mlir;

namespace mpc {

using op_cases::OpCase;

static SmallVector<Type> TensorTypes(MLIRContext& context, const std::vector<TensorSpec>& specs) {
  SmallVector<Type> types;
  for (const TensorSpec& spec : specs) types.push_back(toTensorType(&context, spec));
  return types;
}

// A function with an empty body.
static func::FuncOp AddFunction(ModuleOp module, StringRef name, ArrayRef<Type> arguments, ArrayRef<Type> results) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto function =
      func::FuncOp::create(builder, builder.getUnknownLoc(), name, builder.getFunctionType(arguments, results));
  function.addEntryBlock();
  return function;
}

static Operation* AddOperation(OpBuilder& builder, const OpCase& op_case, ValueRange operands, ArrayRef<Type> results) {
  OperationState state(builder.getUnknownLoc(), "mpc." + op_case.op);
  state.addOperands(operands);
  state.addTypes(results);
  state.addAttributes(toNamedAttributes(builder.getContext(), op_case.attributes));
  return builder.create(state);
}

std::unique_ptr<MLIRContext> MakeContext() {
  auto context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
  context->loadDialect<MpcDialect, func::FuncDialect>();
  compiler::registerTargets(*context);
  return context;
}

MLIRContext& ThreadContext() {
  thread_local const std::unique_ptr<MLIRContext> context = MakeContext();
  return *context;
}

OwningOpRef<ModuleOp> ParseModule(MLIRContext& context, std::string_view text) {
  return parseSourceString<ModuleOp>(StringRef(text.data(), text.size()), ParserConfig(&context));
}

OwningOpRef<ModuleOp> ForwardModule(MLIRContext& context, const OpCase& op_case, DType dtype) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  SmallVector<Type> results = TensorTypes(context, ResultSpecs(op_case, dtype));
  func::FuncOp forward = AddFunction(*module, "forward", TensorTypes(context, OperandSpecs(op_case, dtype)), results);
  OpBuilder builder = OpBuilder::atBlockEnd(&forward.getBody().front());
  Operation* op = AddOperation(builder, op_case, forward.getArguments(), results);
  func::ReturnOp::create(builder, builder.getUnknownLoc(), op->getResults());
  return module;
}

OwningOpRef<ModuleOp> GradientModule(MLIRContext& context, const OpCase& op_case, DType dtype) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  Location loc = UnknownLoc::get(&context);
  Type f32 = Float32Type::get(&context), scalar = RankedTensorType::get({}, f32);
  SmallVector<Type> results = TensorTypes(context, ResultSpecs(op_case, dtype));
  Type weighted = cast<RankedTensorType>(results.front()).clone(f32);
  SmallVector<Type> arguments = TensorTypes(context, OperandSpecs(op_case, dtype));
  arguments.push_back(weighted);

  func::FuncOp loss = AddFunction(*module, "loss", arguments, {scalar});
  loss.setPrivate();
  OpBuilder builder = OpBuilder::atBlockEnd(&loss.getBody().front());
  Operation* op = AddOperation(builder, op_case, loss.getArguments().drop_back(), results);
  Value product = MulOp::create(builder, loc, weighted, op->getResult(0), loss.getArguments().back());
  Value sum = ReduceSumOp::create(builder, loc, scalar, product, ArrayRef<int64_t>());
  func::ReturnOp::create(builder, loc, sum);

  SmallVector<int64_t> wrt;
  SmallVector<Type> gradients;
  for (auto [Index, Operand] : llvm::enumerate(op_case.operands)) {
    if (!Operand.differentiable) continue;
    wrt.push_back(int64_t(Index));
    gradients.push_back(arguments[Index]);
  }
  func::FuncOp gradient = AddFunction(*module, "gradients", arguments, gradients);
  builder.setInsertionPointToEnd(&gradient.getBody().front());
  Value seed = ConstantOp::create(builder, loc, scalar, DenseElementsAttr::get(cast<RankedTensorType>(scalar), 1.0f));
  SmallVector<Type> outputs{scalar};
  llvm::append_range(outputs, gradients);
  auto request = ValueAndGradOp::create(builder, loc, outputs, "loss", gradient.getArguments(), seed, wrt);
  func::ReturnOp::create(builder, loc, request.getOutputs().drop_front());
  return module;
}

LogicalResult RunAutodiff(ModuleOp module) {
  PassManager passes(module.getContext());
  passes.addPass(createAutodiffPass());
  return passes.run(module);
}

std::string printed(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

}  // namespace mpc
