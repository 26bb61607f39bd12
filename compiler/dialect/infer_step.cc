// Shape inference of loss scaling, counters and optimizers.
#include "compiler/dialect/inference_support.h"

using namespace mlir;

namespace mpc {

static llvm::Error expectScalars(StringRef Op, ArrayRef<RankedTensorType> Types) {
  for (RankedTensorType Type : Types)
    if (Type.getRank() != 0)
      return inferenceError("{0} expects scalars (rank 0), got {1}", Op, typeText(Type));
  return llvm::Error::success();
}

// `StateCount` state operands and a gradient of one shape, then scalars.
static InferredTypes inferOptimizer(TypeRange Operands, StringRef Op, size_t StateCount, ArrayRef<StringRef> Names) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, Op, Names));
  ArrayRef<RankedTensorType> All(Types);
  for (size_t Index = 1; Index <= StateCount; ++Index)
    MPC_RETURN_IF_ERROR(expectShape(Op, Names[Index], Types[Index], Types[0].getShape()));
  MPC_RETURN_IF_ERROR(expectScalars(Op, All.drop_front(StateCount + 1)));
  return SmallVector<RankedTensorType>(All.take_front(StateCount));
}

InferredTypes SgdOp::inferTypes(TypeRange Operands, DictionaryAttr) {
  return inferOptimizer(Operands, "sgd", 2,
                        {"parameter", "velocity", "gradient", "learning_rate", "step", "predicate?"});
}

InferredTypes MomentumOp::inferTypes(TypeRange Operands, DictionaryAttr) {
  return inferOptimizer(Operands, "momentum", 2, {"parameter", "velocity", "gradient", "learning_rate", "predicate?"});
}

InferredTypes AdamOp::inferTypes(TypeRange Operands, DictionaryAttr) {
  return inferOptimizer(Operands, "adam", 3,
                        {"parameter", "moment1", "moment2", "gradient", "learning_rate", "step", "predicate?"});
}

InferredTypes AdamWeightDecayOp::inferTypes(TypeRange Operands, DictionaryAttr) {
  return inferOptimizer(Operands, "adam_weight_decay", 3,
                        {"parameter", "moment1", "moment2", "gradient", "learning_rate", "predicate?"});
}

InferredTypes IncrementOp::inferTypes(TypeRange Operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "increment", {"counter", "predicate?"}));
  MPC_RETURN_IF_ERROR(expectScalars("increment", Types));
  return SmallVector<RankedTensorType>{Types[0]};
}

InferredTypes BatchNormRunningUpdateOp::inferTypes(TypeRange Operands, DictionaryAttr) {
  StringRef Name = "batch_norm_running_update";
  MPC_ASSIGN_OR_RETURN(
      Types, operandTypes(Operands, Name, {"running_mean", "running_variance", "mean", "variance", "predicate?"}));
  for (size_t Index = 1; Index < 4; ++Index)
    MPC_RETURN_IF_ERROR(expectShape(Name, "every statistic", Types[Index], Types[0].getShape()));
  return SmallVector<RankedTensorType>{Types[0], Types[1]};
}

InferredTypes UnscaleOp::inferTypes(TypeRange Operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "unscale", {"gradient", "scale"}));
  MPC_RETURN_IF_ERROR(expectScalars("unscale", {Types[1]}));
  return SmallVector<RankedTensorType>{
      RankedTensorType::get(Types[0].getShape(), Float32Type::get(Types[0].getContext()))};
}

InferredTypes AllFiniteOp::inferTypes(TypeRange Operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "all_finite", {"scale", "loss", "gradients..."}));
  MPC_RETURN_IF_ERROR(expectScalars("all_finite", {Types[0]}));
  Builder B(Types[0].getContext());
  return SmallVector<RankedTensorType>{RankedTensorType::get({}, B.getI1Type()),
                                       RankedTensorType::get({}, B.getI32Type())};
}

InferredTypes UpdateLossScaleOp::inferTypes(TypeRange Operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(Types,
                       operandTypes(Operands, "update_loss_scale",
                                    {"first_bad", "scale", "good", "bad", "skipped", "consecutive", "growth", "backoff",
                                     "minimum", "maximum", "interval", "bad_limit", "dynamic", "skip"}));
  MPC_RETURN_IF_ERROR(expectScalars("update_loss_scale", Types));
  return SmallVector<RankedTensorType>{Types[1], Types[2], Types[3], Types[4], Types[5]};
}

} // namespace mpc
