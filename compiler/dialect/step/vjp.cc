// The derivatives of what processes gather, of unscaled gradients, and of an operation whose rule the user wrote.
#include "compiler/dialect/tensor_values.h"
#include "compiler/dialect/vjp_support.h"

using namespace mlir;

namespace mpc {

// Element i of a process's operand is element (rank, i) of every process's result, so its cotangents are summed.
Cotangents AllGatherOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  return firstCotangent(needed, [&]() -> Value {
    Value sum = AllReduceOp::create(builder, getLoc(), dy[0].getType(), dy[0], getProcesses());
    auto scalar = RankedTensorType::get({}, builder.getI32Type());
    Value rank = ProcessRankOp::create(builder, getLoc(), scalar, getProcesses());
    return GatherOp::create(builder, getLoc(), getX().getType(), sum, rank);
  });
}

// A loss that is made of gradients reads them unscaled.
Cotangents UnscaleOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  if (needed[1])
    return noDerivativeByScale(*this);
  return firstCotangent(needed, [&] {
    Value unscaled = UnscaleOp::create(builder, getLoc(), dy[0].getType(), dy[0], getScale());
    return castTo(builder, getLoc(), unscaled, elementOf(getGradient()));
  });
}

// A call, which autodiff inlines.
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
