// Shape inference of optimizers.
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/inference_support.h"
#include "kernels/known_attributes.h"

using namespace mlir;

namespace mpc {

// Operands are `stateCount` state operands and a gradient of one shape, then scalars. The scalars of the rule come
// first. The last operand that ODS lists, `scalars...`, stands for those that the attributes ask for and the predicate.
// A low copy is one more result.
static InferredTypes inferOptimizer(TypeRange operands, DictionaryAttr dictionary, const OperandNames &given,
                                    size_t stateCount) {
  StringRef op = given.op;
  ArrayRef<StringRef> ruleNames = given.names.drop_back();
  SmallVector<StringRef> names(ruleNames);
  Attributes values = toAttributes(dictionary);
  double maxNorm = values.GetDouble("max_norm", 0);
  if (!(maxNorm >= 0))
    return inferenceError("{0} expects max_norm > 0, or 0 where it does not clip, got {1}", op, maxNorm);
  if (values.GetBool("unscale"))
    names.push_back("scale");
  if (maxNorm > 0)
    names.push_back("norm");
  names.push_back("predicate?");
  MPC_ASSIGN_OR_RETURN(types, operandTypes(operands, OperandNames{op, names}));
  ArrayRef<RankedTensorType> all(types);
  for (size_t index = 1; index <= stateCount; ++index)
    MPC_RETURN_IF_ERROR(expectShape(op, names[index], types[index], types[0].getShape()));
  MPC_RETURN_IF_ERROR(expectScalars(op, all.drop_front(stateCount + 1)));
  for (size_t index = ruleNames.size(); index < types.size(); ++index)
    MPC_RETURN_IF_ERROR(expectElement(op, names[index].rtrim('?'), types[index], /*flag=*/index + 1 == names.size()));
  SmallVector<RankedTensorType> results(all.take_front(stateCount));
  if (std::optional<DType> low = ParseDType(NameOf(values.Get(attribute::kLowCopy))))
    results.push_back(types[0].clone(toType(types[0].getContext(), *low)));
  return results;
}

InferredTypes SgdOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  return inferOptimizer(operands, dictionary, operandsOf<SgdOp>(), 2);
}

InferredTypes MomentumOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  return inferOptimizer(operands, dictionary, operandsOf<MomentumOp>(), 2);
}

InferredTypes AdamOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  return inferOptimizer(operands, dictionary, operandsOf<AdamOp>(), 3);
}

InferredTypes AdamWeightDecayOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  return inferOptimizer(operands, dictionary, operandsOf<AdamWeightDecayOp>(), 3);
}

InferredTypes AdamWOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  return inferOptimizer(operands, dictionary, operandsOf<AdamWOp>(), 3);
}

InferredTypes LambOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  return inferOptimizer(operands, dictionary, operandsOf<LambOp>(), 3);
}

} // namespace mpc
