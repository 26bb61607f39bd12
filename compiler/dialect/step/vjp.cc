// The derivative of an operation whose rule the user wrote: a call, which autodiff inlines.
#include "compiler/dialect/tensor_values.h"
#include "compiler/dialect/vjp_support.h"

using namespace mlir;

namespace mpc {

Cotangents CustomVjpOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool>) {
  SmallVector<Value> Arguments(getInputs());
  llvm::append_range(Arguments, getOutputs());
  for (auto [Output, Cotangent] : llvm::zip_equal(getOutputs(), Dy)) {
    RankedTensorType Type = tensorTypeOf(Output);
    Value Given = Cotangent;
    if (!Given)
      Given = ConstantOp::create(Builder, getLoc(), Type,
                                 DenseElementsAttr::get(Type, Builder.getZeroAttr(Type.getElementType())));
    Arguments.push_back(Given);
  }
  SmallVector<Type> Types;
  for (Value Input : getInputs())
    if (isFloating(Input))
      Types.push_back(Input.getType());
  auto Call = func::CallOp::create(Builder, getLoc(), getVjp(), Types, Arguments);
  SmallVector<Value> Result;
  unsigned Next = 0;
  for (Value Input : getInputs())
    Result.push_back(isFloating(Input) ? Call.getResult(Next++) : Value());
  return Result;
}

} // namespace mpc
