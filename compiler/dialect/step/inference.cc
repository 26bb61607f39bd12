// Shape inference of loss scaling, checks and counters.
#include "compiler/dialect/accumulation_levels.h"
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/inference_support.h"

using namespace mlir;

namespace mpc {

static llvm::Error expectCount(StringRef op, DictionaryAttr dictionary) {
  int64_t count = toAttributes(dictionary).GetInt("count", 0);
  if (count < 1)
    return inferenceError("{0} expects a count of at least 1 micro-step, got {1}", op, count);
  return llvm::Error::success();
}

// The highest level of a sum is the one whose bit is the first of the number of the last micro-step.
static llvm::Error expectLevel(StringRef op, DictionaryAttr dictionary) {
  Attributes attributes = toAttributes(dictionary);
  int64_t count = attributes.GetInt("count", 0), level = attributes.GetInt("level", 0);
  if (level < 0 || level >= accumulationLevels(count))
    return inferenceError("{0} expects a level from 0 to {1} of {2} micro-steps, got {3}", op,
                          accumulationLevels(count) - 1, count, level);
  return llvm::Error::success();
}

InferredTypes AccumulateGradientOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<AccumulateGradientOp>(operands));
  MPC_RETURN_IF_ERROR(expectShape(mnemonic(), "a gradient", types[1], types[0].getShape()));
  MPC_RETURN_IF_ERROR(expectScalars(mnemonic(), ArrayRef<RankedTensorType>(types).drop_front(2)));
  MPC_RETURN_IF_ERROR(expectCount(mnemonic(), dictionary));
  MPC_RETURN_IF_ERROR(expectLevel(mnemonic(), dictionary));
  return SmallVector<RankedTensorType>{types[0]};
}

InferredTypes ProcessRankOp::inferTypes(TypeRange, DictionaryAttr dictionary) {
  return SmallVector<RankedTensorType>{RankedTensorType::get({}, IntegerType::get(dictionary.getContext(), 32))};
}

InferredTypes AllGatherOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<AllGatherOp>(operands));
  SmallVector<int64_t> shape{toAttributes(dictionary).GetInt("processes", 1)};
  llvm::append_range(shape, types[0].getShape());
  return SmallVector<RankedTensorType>{types[0].clone(shape)};
}

InferredTypes NextMicroStepOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<NextMicroStepOp>(operands));
  MPC_RETURN_IF_ERROR(expectScalars(mnemonic(), types));
  MPC_RETURN_IF_ERROR(expectCount(mnemonic(), dictionary));
  return SmallVector<RankedTensorType>{types[0]};
}

InferredTypes IncrementOp::inferTypes(TypeRange operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<IncrementOp>(operands));
  MPC_RETURN_IF_ERROR(expectScalars(mnemonic(), types));
  return SmallVector<RankedTensorType>{types[0]};
}

InferredTypes BatchNormRunningUpdateOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<BatchNormRunningUpdateOp>(operands));
  MPC_RETURN_IF_ERROR(expectShape(mnemonic(), "every statistic", types[1], types[0].getShape()));
  int64_t batches = toAttributes(dictionary).GetInt("batches", 1);
  if (batches < 1)
    return inferenceError("{0} expects at least 1 batch, got {1}", mnemonic(), batches);
  SmallVector<int64_t> shape(types[0].getShape());
  if (batches > 1)
    shape.insert(shape.begin(), batches);
  for (size_t index = 2; index < 4; ++index)
    MPC_RETURN_IF_ERROR(expectShape(mnemonic(), "every statistic", types[index], shape));
  return SmallVector<RankedTensorType>{types[0], types[1]};
}

// The type of sums of squares: f32 would overflow.
static RankedTensorType f64Scalar(MLIRContext *context) { return RankedTensorType::get({}, Float64Type::get(context)); }

static RankedTensorType f32Like(RankedTensorType type) {
  return RankedTensorType::get(type.getShape(), Float32Type::get(type.getContext()));
}

InferredTypes ScaleLossOp::inferTypes(TypeRange operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<ScaleLossOp>(operands));
  MPC_RETURN_IF_ERROR(expectScalars(mnemonic(), {types[1]}));
  return SmallVector<RankedTensorType>{types[0]};
}

InferredTypes MergeChecksOp::inferTypes(TypeRange operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<MergeChecksOp>(operands));
  if (types.empty())
    return inferenceError("{0} expects at least one check", mnemonic());
  MPC_RETURN_IF_ERROR(expectScalars(mnemonic(), types));
  return SmallVector<RankedTensorType>{types[0]};
}

static InferredTypes inferFlagReduction(TypeRange operands, const OperandNames &given) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes(operands, given));
  if (types.empty())
    return inferenceError("{0} expects at least one flag", given.op);
  MPC_RETURN_IF_ERROR(expectScalars(given.op, types));
  return SmallVector<RankedTensorType>{types[0]};
}

InferredTypes AllOfOp::inferTypes(TypeRange operands, DictionaryAttr) {
  return inferFlagReduction(operands, operandsOf<AllOfOp>());
}

InferredTypes AnyOfOp::inferTypes(TypeRange operands, DictionaryAttr) {
  return inferFlagReduction(operands, operandsOf<AnyOfOp>());
}

InferredTypes GlobalNormOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  // ODS lists the operands as `inputs`: an error says what they are.
  SmallVector<StringRef, 2> names = {"gradients..."};
  bool unscales = toAttributes(dictionary).GetBool("unscale");
  int64_t sums = toAttributes(dictionary).GetInt("sums", 0);
  if (unscales)
    names.insert(names.begin(), "scale");
  MPC_ASSIGN_OR_RETURN(types, operandTypes(operands, OperandNames{mnemonic(), names}));
  if (types.size() < names.size())
    return inferenceError("{0} expects at least one gradient", mnemonic());
  int64_t most = int64_t(types.size()) - (unscales ? 1 : 0);
  if (sums < 0 || sums > most)
    return inferenceError("{0} expects sums to count operands: from 0 to {1}, got {2}", mnemonic(), most, sums);
  MPC_RETURN_IF_ERROR(expectScalars(mnemonic(), ArrayRef(types).take_back(sums)));
  if (unscales) {
    MPC_RETURN_IF_ERROR(expectScalars(mnemonic(), {types[0]}));
    MPC_RETURN_IF_ERROR(expectElement(mnemonic(), "scale", types[0], /*flag=*/false));
  }
  return SmallVector<RankedTensorType>{f64Scalar(types[0].getContext())};
}

InferredTypes ClipByNormOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<ClipByNormOp>(operands));
  MPC_RETURN_IF_ERROR(expectScalars(mnemonic(), {types[1]}));
  double limit = toAttributes(dictionary).GetDouble("max_norm", 0);
  if (!(limit > 0))
    return inferenceError("{0} expects max_norm > 0, got {1}", mnemonic(), limit);
  return SmallVector<RankedTensorType>{f32Like(types[0])};
}

InferredTypes TensorStatisticsOp::inferTypes(TypeRange operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<TensorStatisticsOp>(operands));
  Builder b(types[0].getContext());
  return SmallVector<RankedTensorType>{RankedTensorType::get({256}, b.getI32Type()),
                                       RankedTensorType::get({}, b.getI32Type()),
                                       RankedTensorType::get({}, b.getF32Type())};
}

InferredTypes UnscaleOp::inferTypes(TypeRange operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<UnscaleOp>(operands));
  MPC_RETURN_IF_ERROR(expectScalars(mnemonic(), {types[1]}));
  return SmallVector<RankedTensorType>{f32Like(types[0])};
}

InferredTypes AllFiniteOp::inferTypes(TypeRange operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<AllFiniteOp>(operands));
  MPC_RETURN_IF_ERROR(expectScalars(mnemonic(), {types[0]}));
  // Flags take the place of gradients.
  for (RankedTensorType type : ArrayRef(types).drop_front(2))
    if (type.getElementType().isInteger(1))
      MPC_RETURN_IF_ERROR(expectScalars(mnemonic(), {type}));
  Builder b(types[0].getContext());
  return SmallVector<RankedTensorType>{RankedTensorType::get({}, b.getI1Type()),
                                       RankedTensorType::get({}, b.getI32Type())};
}

InferredTypes CheckFiniteOp::inferTypes(TypeRange operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<CheckFiniteOp>(operands));
  MPC_RETURN_IF_ERROR(expectScalars(mnemonic(), {types[1]}));
  return SmallVector<RankedTensorType>{RankedTensorType::get({}, IntegerType::get(types[0].getContext(), 1))};
}

InferredTypes SumOfSquaresOp::inferTypes(TypeRange operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<SumOfSquaresOp>(operands));
  MPC_RETURN_IF_ERROR(expectScalars(mnemonic(), ArrayRef(types).drop_front(1)));
  return SmallVector<RankedTensorType>{f64Scalar(types[0].getContext())};
}

InferredTypes UpdateLossScaleOp::inferTypes(TypeRange operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<UpdateLossScaleOp>(operands));
  MPC_RETURN_IF_ERROR(expectScalars(mnemonic(), types));
  return SmallVector<RankedTensorType>{types[1], types[2], types[3], types[4], types[5]};
}

} // namespace mpc
