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

static SmallVector<Type> tensorTypes(MLIRContext& Context, const std::vector<TensorSpec>& Specs) {
  SmallVector<Type> Types;
  for (const TensorSpec& Spec : Specs) Types.push_back(toTensorType(&Context, Spec));
  return Types;
}

// A function with an empty body.
static func::FuncOp addFunction(ModuleOp Module, StringRef Name, ArrayRef<Type> Arguments, ArrayRef<Type> Results) {
  OpBuilder Builder = OpBuilder::atBlockEnd(Module.getBody());
  auto Function =
      func::FuncOp::create(Builder, Builder.getUnknownLoc(), Name, Builder.getFunctionType(Arguments, Results));
  Function.addEntryBlock();
  return Function;
}

static Operation* addOperation(OpBuilder& Builder, const OpCase& Case, ValueRange Operands, ArrayRef<Type> Results) {
  OperationState State(Builder.getUnknownLoc(), "mpc." + Case.op);
  State.addOperands(Operands);
  State.addTypes(Results);
  State.addAttributes(toNamedAttributes(Builder.getContext(), Case.attributes));
  return Builder.create(State);
}

std::unique_ptr<MLIRContext> makeContext() {
  auto Context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
  Context->loadDialect<MpcDialect, func::FuncDialect>();
  compiler::registerTargets(*Context);
  return Context;
}

OwningOpRef<ModuleOp> parseModule(MLIRContext& Context, std::string_view Text) {
  return parseSourceString<ModuleOp>(StringRef(Text.data(), Text.size()), ParserConfig(&Context));
}

OwningOpRef<ModuleOp> forwardModule(MLIRContext& Context, const OpCase& Case, DType Dtype) {
  OwningOpRef<ModuleOp> Module = ModuleOp::create(UnknownLoc::get(&Context));
  SmallVector<Type> Results = tensorTypes(Context, ResultSpecs(Case, Dtype));
  func::FuncOp Forward = addFunction(*Module, "forward", tensorTypes(Context, OperandSpecs(Case, Dtype)), Results);
  OpBuilder Builder = OpBuilder::atBlockEnd(&Forward.getBody().front());
  Operation* Op = addOperation(Builder, Case, Forward.getArguments(), Results);
  func::ReturnOp::create(Builder, Builder.getUnknownLoc(), Op->getResults());
  return Module;
}

OwningOpRef<ModuleOp> gradientModule(MLIRContext& Context, const OpCase& Case, DType Dtype) {
  OwningOpRef<ModuleOp> Module = ModuleOp::create(UnknownLoc::get(&Context));
  Location Loc = UnknownLoc::get(&Context);
  Type F32 = Float32Type::get(&Context), Scalar = RankedTensorType::get({}, F32);
  SmallVector<Type> Results = tensorTypes(Context, ResultSpecs(Case, Dtype));
  Type Weighted = cast<RankedTensorType>(Results.front()).clone(F32);
  SmallVector<Type> Arguments = tensorTypes(Context, OperandSpecs(Case, Dtype));
  Arguments.push_back(Weighted);

  func::FuncOp Loss = addFunction(*Module, "loss", Arguments, {Scalar});
  Loss.setPrivate();
  OpBuilder Builder = OpBuilder::atBlockEnd(&Loss.getBody().front());
  Operation* Op = addOperation(Builder, Case, Loss.getArguments().drop_back(), Results);
  Value Product = MulOp::create(Builder, Loc, Weighted, Op->getResult(0), Loss.getArguments().back());
  Value Sum = ReduceSumOp::create(Builder, Loc, Scalar, Product, ArrayRef<int64_t>());
  func::ReturnOp::create(Builder, Loc, Sum);

  SmallVector<int64_t> Wrt;
  SmallVector<Type> Gradients;
  for (auto [Index, Operand] : llvm::enumerate(Case.operands)) {
    if (!Operand.differentiable) continue;
    Wrt.push_back(int64_t(Index));
    Gradients.push_back(Arguments[Index]);
  }
  func::FuncOp Gradient = addFunction(*Module, "gradients", Arguments, Gradients);
  Builder.setInsertionPointToEnd(&Gradient.getBody().front());
  Value Seed = ConstantOp::create(Builder, Loc, Scalar, DenseElementsAttr::get(cast<RankedTensorType>(Scalar), 1.0f));
  SmallVector<Type> Outputs{Scalar};
  llvm::append_range(Outputs, Gradients);
  auto Request = ValueAndGradOp::create(Builder, Loc, Outputs, "loss", Gradient.getArguments(), Seed, Wrt);
  func::ReturnOp::create(Builder, Loc, Request.getOutputs().drop_front());
  return Module;
}

LogicalResult runAutodiff(ModuleOp Module) {
  PassManager Passes(Module.getContext());
  Passes.addPass(createAutodiffPass());
  return Passes.run(Module);
}

std::string printed(ModuleOp Module) {
  std::string Text;
  llvm::raw_string_ostream(Text) << Module;
  return Text;
}

}  // namespace mpc
