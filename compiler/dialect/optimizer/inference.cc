// Shape inference of optimizers.
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/inference_support.h"

using namespace mlir;

namespace mpc {

// Operands are `StateCount` state operands and a gradient of one shape, then scalars. The scalars of the rule come
// first, then those that the attributes ask for, then the predicate. A shadow is one more result.
static InferredTypes inferOptimizer(TypeRange Operands, DictionaryAttr Dictionary, StringRef Op, size_t StateCount,
                                    ArrayRef<StringRef> RuleNames) {
  SmallVector<StringRef> Names(RuleNames);
  Attributes Values = toAttributes(Dictionary);
  double MaxNorm = Values.GetDouble("max_norm", 0);
  if (!(MaxNorm >= 0))
    return inferenceError("{0} expects max_norm > 0, or 0 where it does not clip, got {1}", Op, MaxNorm);
  if (Values.GetBool("unscale"))
    Names.push_back("scale");
  if (MaxNorm > 0)
    Names.push_back("norm");
  Names.push_back("predicate?");
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, Op, Names));
  ArrayRef<RankedTensorType> All(Types);
  for (size_t Index = 1; Index <= StateCount; ++Index)
    MPC_RETURN_IF_ERROR(expectShape(Op, Names[Index], Types[Index], Types[0].getShape()));
  MPC_RETURN_IF_ERROR(expectScalars(Op, All.drop_front(StateCount + 1)));
  for (size_t Index = RuleNames.size(); Index < Types.size(); ++Index)
    MPC_RETURN_IF_ERROR(expectElement(Op, Names[Index].rtrim('?'), Types[Index], /*Flag=*/Index + 1 == Names.size()));
  SmallVector<RankedTensorType> Results(All.take_front(StateCount));
  std::string Shadow = Values.GetString("shadow", "none");
  if (std::optional<DType> Low = ParseDType(Shadow))
    Results.push_back(Types[0].clone(toType(Types[0].getContext(), *Low)));
  return Results;
}

InferredTypes SgdOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  return inferOptimizer(Operands, Dictionary, "sgd", 2, {"parameter", "velocity", "gradient", "learning_rate", "step"});
}

InferredTypes MomentumOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  return inferOptimizer(Operands, Dictionary, "momentum", 2, {"parameter", "velocity", "gradient", "learning_rate"});
}

InferredTypes AdamOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  return inferOptimizer(Operands, Dictionary, "adam", 3,
                        {"parameter", "moment1", "moment2", "gradient", "learning_rate", "step"});
}

InferredTypes AdamWeightDecayOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  return inferOptimizer(Operands, Dictionary, "adam_weight_decay", 3,
                        {"parameter", "moment1", "moment2", "gradient", "learning_rate"});
}

InferredTypes AdamWOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  return inferOptimizer(Operands, Dictionary, "adamw", 3,
                        {"parameter", "moment1", "moment2", "gradient", "learning_rate", "step"});
}

InferredTypes LambOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  return inferOptimizer(Operands, Dictionary, "lamb", 3,
                        {"parameter", "moment1", "moment2", "gradient", "learning_rate", "step"});
}

} // namespace mpc
