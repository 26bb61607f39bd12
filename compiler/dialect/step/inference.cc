// Shape inference of loss scaling, checks and counters.
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/inference_support.h"
#include "runtime/scaler_field.h"

using namespace mlir;

namespace mpc {

static llvm::Error expectCount(StringRef Op, DictionaryAttr Dictionary) {
  int64_t Count = toAttributes(Dictionary).GetInt("count", 0);
  if (Count < 1)
    return inferenceError("{0} expects a count of at least 1 micro-step, got {1}", Op, Count);
  return llvm::Error::success();
}

InferredTypes AccumulateGradientOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  StringRef Name = "accumulate_gradient";
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, Name, {"accumulator", "gradient", "micro_step", "predicate?"}));
  MPC_RETURN_IF_ERROR(expectShape(Name, "a gradient", Types[1], Types[0].getShape()));
  MPC_RETURN_IF_ERROR(expectScalars(Name, ArrayRef<RankedTensorType>(Types).drop_front(2)));
  MPC_RETURN_IF_ERROR(expectCount(Name, Dictionary));
  return SmallVector<RankedTensorType>{Types[0]};
}

InferredTypes NextMicroStepOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "next_micro_step", {"micro_step", "predicate?"}));
  MPC_RETURN_IF_ERROR(expectScalars("next_micro_step", Types));
  MPC_RETURN_IF_ERROR(expectCount("next_micro_step", Dictionary));
  return SmallVector<RankedTensorType>{Types[0]};
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

// The type of sums of squares: f32 would overflow.
static RankedTensorType f64Scalar(MLIRContext *Context) { return RankedTensorType::get({}, Float64Type::get(Context)); }

static RankedTensorType f32Like(RankedTensorType Type) {
  return RankedTensorType::get(Type.getShape(), Float32Type::get(Type.getContext()));
}

InferredTypes ScaleLossOp::inferTypes(TypeRange Operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "scale_loss", {"loss", "scale"}));
  MPC_RETURN_IF_ERROR(expectScalars("scale_loss", {Types[1]}));
  return SmallVector<RankedTensorType>{Types[0]};
}

InferredTypes MergeChecksOp::inferTypes(TypeRange Operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "merge_checks", {"checks..."}));
  if (Types.empty())
    return inferenceError("merge_checks expects at least one check");
  MPC_RETURN_IF_ERROR(expectScalars("merge_checks", Types));
  return SmallVector<RankedTensorType>{Types[0]};
}

static InferredTypes inferFlagReduction(TypeRange Operands, StringRef Op) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, Op, {"flags..."}));
  if (Types.empty())
    return inferenceError("{0} expects at least one flag", Op);
  MPC_RETURN_IF_ERROR(expectScalars(Op, Types));
  return SmallVector<RankedTensorType>{Types[0]};
}

InferredTypes AllOfOp::inferTypes(TypeRange Operands, DictionaryAttr) { return inferFlagReduction(Operands, "all_of"); }

InferredTypes AnyOfOp::inferTypes(TypeRange Operands, DictionaryAttr) { return inferFlagReduction(Operands, "any_of"); }

InferredTypes GlobalNormOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  StringRef Name = "global_norm";
  SmallVector<StringRef, 2> Names = {"gradients..."};
  bool Unscales = toAttributes(Dictionary).GetBool("unscale");
  int64_t Sums = toAttributes(Dictionary).GetInt("sums", 0);
  if (Unscales)
    Names.insert(Names.begin(), "scale");
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, Name, Names));
  if (Types.size() < Names.size())
    return inferenceError("global_norm expects at least one gradient");
  int64_t Most = int64_t(Types.size()) - (Unscales ? 1 : 0);
  if (Sums < 0 || Sums > Most)
    return inferenceError("global_norm expects sums to count operands: from 0 to {0}, got {1}", Most, Sums);
  MPC_RETURN_IF_ERROR(expectScalars(Name, ArrayRef(Types).take_back(Sums)));
  if (Unscales) {
    MPC_RETURN_IF_ERROR(expectScalars(Name, {Types[0]}));
    MPC_RETURN_IF_ERROR(expectElement(Name, "scale", Types[0], /*Flag=*/false));
  }
  return SmallVector<RankedTensorType>{f64Scalar(Types[0].getContext())};
}

InferredTypes ClipByNormOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "clip_by_norm", {"gradient", "norm"}));
  MPC_RETURN_IF_ERROR(expectScalars("clip_by_norm", {Types[1]}));
  double Limit = toAttributes(Dictionary).GetDouble("max_norm", 0);
  if (!(Limit > 0))
    return inferenceError("clip_by_norm expects max_norm > 0, got {0}", Limit);
  return SmallVector<RankedTensorType>{f32Like(Types[0])};
}

InferredTypes TensorStatisticsOp::inferTypes(TypeRange Operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "tensor_statistics", {"x"}));
  Builder B(Types[0].getContext());
  return SmallVector<RankedTensorType>{RankedTensorType::get({256}, B.getI32Type()),
                                       RankedTensorType::get({}, B.getI32Type()),
                                       RankedTensorType::get({}, B.getF32Type())};
}

InferredTypes UnscaleOp::inferTypes(TypeRange Operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "unscale", {"gradient", "scale"}));
  MPC_RETURN_IF_ERROR(expectScalars("unscale", {Types[1]}));
  return SmallVector<RankedTensorType>{f32Like(Types[0])};
}

InferredTypes AllFiniteOp::inferTypes(TypeRange Operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "all_finite", {"scale", "loss", "gradients..."}));
  MPC_RETURN_IF_ERROR(expectScalars("all_finite", {Types[0]}));
  // Flags take the place of gradients.
  for (RankedTensorType Type : ArrayRef(Types).drop_front(2))
    if (Type.getElementType().isInteger(1))
      MPC_RETURN_IF_ERROR(expectScalars("all_finite", {Type}));
  Builder B(Types[0].getContext());
  return SmallVector<RankedTensorType>{RankedTensorType::get({}, B.getI1Type()),
                                       RankedTensorType::get({}, B.getI32Type())};
}

InferredTypes CheckFiniteOp::inferTypes(TypeRange Operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "check_finite", {"gradient", "scale"}));
  MPC_RETURN_IF_ERROR(expectScalars("check_finite", {Types[1]}));
  return SmallVector<RankedTensorType>{RankedTensorType::get({}, IntegerType::get(Types[0].getContext(), 1))};
}

InferredTypes SumOfSquaresOp::inferTypes(TypeRange Operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "sum_of_squares", {"gradient", "scale?"}));
  MPC_RETURN_IF_ERROR(expectScalars("sum_of_squares", ArrayRef(Types).drop_front(1)));
  return SmallVector<RankedTensorType>{f64Scalar(Types[0].getContext())};
}

InferredTypes UpdateLossScaleOp::inferTypes(TypeRange Operands, DictionaryAttr) {
  SmallVector<StringRef> Names{"first_bad"};
  llvm::append_range(Names, kScalerFieldNames);
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "update_loss_scale", Names));
  MPC_RETURN_IF_ERROR(expectScalars("update_loss_scale", Types));
  return SmallVector<RankedTensorType>{Types[1], Types[2], Types[3], Types[4], Types[5]};
}

} // namespace mpc
