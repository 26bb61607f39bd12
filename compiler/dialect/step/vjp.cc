// The derivative of an operation whose rule the user wrote: a call, which autodiff inlines.
#include "compiler/dialect/tensor_values.h"
#include "compiler/dialect/vjp_support.h"

using namespace mlir;

namespace mpc {

Cotangents CustomVjpOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool>) {
  SmallVector<Value> arguments(getInputs());
  llvm::append_range(arguments, getOutputs());
  for (auto [output, cotangent] : llvm::zip_equal(getOutputs(), dy)) {
    RankedTensorType type = tensorTypeOf(output);
    Value given = cotangent;
    if (!given)
      given = ConstantOp::create(builder, getLoc(), type,
                                 DenseElementsAttr::get(type, builder.getZeroAttr(type.getElementType())));
    arguments.push_back(given);
  }
  SmallVector<Type> types;
  for (Value input : getInputs())
    if (isFloating(input))
      types.push_back(input.getType());
  auto call = func::CallOp::create(builder, getLoc(), getVjp(), types, arguments);
  SmallVector<Value> result;
  unsigned next = 0;
  for (Value input : getInputs())
    result.push_back(isFloating(input) ? call.getResult(next++) : Value());
  return result;
}

} // namespace mpc
