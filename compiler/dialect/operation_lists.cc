#include "compiler/dialect/operation_lists.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace mpc {

bool isMovement(Operation *Op) { return isa<ReshapeOp, TransposeOp, BroadcastToOp>(Op); }

bool handsOnValue(Operation *Op) { return isMovement(Op) || isa<StopGradientOp, NegOp>(Op); }

bool movesAlongAxes(Operation *Op) { return isa<ConcatOp, SplitOp, SliceOp, PadOp>(Op); }

bool selectsValues(Operation *Op) {
  return isa<ReluOp, NegOp, AbsOp, MaxPool2dOp, ReduceMaxOp, MaximumOp, MinimumOp, WhereOp, StopGradientOp>(Op);
}

bool keepsScale(Operation *Op) { return isMovement(Op) || isa<CastOp, StopGradientOp, SliceOp, SplitOp, PadOp>(Op); }

bool reordersElements(Operation *Op) { return isa<ReshapeOp, TransposeOp>(Op); }

bool takesParts(Operation *Op) { return isa<SliceOp, GatherOp>(Op); }

bool isViewOrConstant(Operation *Op) { return isa<ReshapeOp, ConstantOp>(Op); }

bool isElementwise(Operation *Op) {
  return isa<ReluOp, SigmoidOp, TanhOp, ExpOp, LogOp, SqrtOp, NegOp, ReluGradOp, SigmoidGradOp, TanhGradOp, SqrtGradOp,
             AddOp, SubOp, MulOp, DivOp, MaximumOp, DivGradOp, MaximumGradOp, AddScalarOp, MulScalarOp, SumNOp, EqualOp,
             SelectOp, CastOp, StopGradientOp>(Op) ||
         isa<AbsOp, FloorOp, SquareOp, Log1pOp, SinOp, CosOp, SiluOp, GeluOp, LeakyReluOp, PowOp, ClampOp, AbsGradOp,
             SquareGradOp, Log1pGradOp, SinGradOp, CosGradOp, SiluGradOp, GeluGradOp, LeakyReluGradOp, PowGradOp,
             ClampGradOp, MinimumOp, MinimumGradOp, GreaterOp, LessOp, WhereOp>(Op);
}

bool isArithmetic(Operation *Op) {
  return isa<AddOp, SubOp, MulOp, DivOp, MaximumOp, MinimumOp, AddScalarOp, MulScalarOp, SumNOp, ExpOp, LogOp, Log1pOp,
             SinOp, CosOp, SquareOp, PowOp, SoftmaxOp, LogSoftmaxOp, ReduceSumOp, ReduceMeanOp>(Op);
}

bool isExpensive(Operation *Op) {
  return isa<SigmoidOp, TanhOp, ExpOp, LogOp, Log1pOp, SiluOp, SiluGradOp, GeluOp, GeluGradOp, PowOp, PowGradOp,
             DropoutOp, SoftmaxOp, LogSoftmaxGradOp, SoftmaxCrossEntropyGradOp, BceWithLogitsGradOp>(Op);
}

bool isSimpleArithmetic(Operation *Op) { return isa<AddOp, SubOp, MulOp, ReluOp>(Op); }

bool isAlongAnAxis(Operation *Op) { return isa<SoftmaxOp, LogSoftmaxOp, SoftmaxGradOp, LogSoftmaxGradOp>(Op); }

bool isSum(Operation *Op) { return isa<ReduceSumOp, ReduceMeanOp>(Op); }

bool isReduction(Operation *Op) { return isSum(Op) || isa<ReduceMaxOp>(Op); }

bool takesActivation(Operation *Op) { return isa<MatmulOp, Conv2dOp>(Op); }

bool isBatchNorm(Operation *Op) { return isa<BatchNormTrainOp, BatchNormInferOp>(Op); }

bool isProductOrQuotient(Operation *Op) { return isa<MulOp, DivOp>(Op); }

bool isGradientRequest(Operation *Op) { return isa<ValueAndGradOp, BackwardOp>(Op); }

bool isGradientOp(Operation *Op) { return Op->hasTrait<ComputesCotangents>(); }

bool sumsGradients(Operation *Op) { return isa<AddOp, SubOp, SumNOp>(Op); }

bool isScaling(Operation *Op) { return isa<UnscaleOp, ClipByNormOp, ScaleLossOp>(Op); }

bool followsUpdate(Operation *Op) { return isa<UnscaleOp, AllFiniteOp, CheckFiniteOp, UpdateLossScaleOp>(Op); }

bool readsParameterGradients(Operation *Op) { return isa<AllFiniteOp, UnscaleOp, ClipByNormOp, GlobalNormOp>(Op); }

bool endsScale(Operation *Op) {
  return isa<OptimizerOpInterface, UnscaleOp, AllFiniteOp, GuardedUpdateOp>(Op) || Op->hasTrait<StateUpdate>();
}

bool isGradientPart(Operation *Op) { return isa<CheckFiniteOp, SumOfSquaresOp>(Op); }

bool joinsFlags(Operation *Op) { return isa<AllOfOp, AnyOfOp>(Op); }

bool decidesStep(Operation *Op) { return isa<AllFiniteOp, GlobalNormOp, UpdateLossScaleOp>(Op); }

bool isBesideNetwork(Operation *Op) {
  return isa<ConstantOp, UnscaleOp, AllFiniteOp, UpdateLossScaleOp, MergeChecksOp, AllOfOp, AnyOfOp, GlobalNormOp,
             ClipByNormOp, GuardedUpdateOp, TensorStatisticsOp, RandomOp>(Op);
}

std::optional<ImageValues> imagesOf(Operation *Op) {
  using Found = std::optional<ImageValues>;
  return llvm::TypeSwitch<Operation *, Found>(Op)
      .Case<Conv2dOp, ConvTranspose2dOp, AvgPool2dOp, AvgPool2dGradOp, Conv2dGradInputOp, BatchNormTrainOp,
            BatchNormInferOp, GroupNormOp, PreluOp>([](auto) {
        return ImageValues{{0}, {0}};
      })
      .Case([](MaxPool2dOp) {
        return ImageValues{{0}, {0, 1}};
      })
      .Case([](Conv2dGradWeightOp) {
        return ImageValues{{0, 1}, {}};
      })
      .Case<MaxPool2dGradOp, BatchNormTrainGradOp, BatchNormInferGradOp, GroupNormGradOp, PreluGradOp>([](auto) {
        return ImageValues{{0, 1}, {0}};
      })
      .Default([](Operation *) { return Found(); });
}

llvm::ArrayRef<OperationList> operationLists() {
  static constexpr OperationList Lists[] = {
      {"movement", isMovement},
      {"hands-on-value", handsOnValue},
      {"moves-along-axes", movesAlongAxes},
      {"selects-values", selectsValues},
      {"keeps-scale", keepsScale},
      {"reorders-elements", reordersElements},
      {"takes-parts", takesParts},
      {"view-or-constant", isViewOrConstant},
      {"elementwise", isElementwise},
      {"arithmetic", isArithmetic},
      {"expensive", isExpensive},
      {"simple-arithmetic", isSimpleArithmetic},
      {"along-an-axis", isAlongAnAxis},
      {"sum", isSum},
      {"reduction", isReduction},
      {"takes-activation", takesActivation},
      {"batch-norm", isBatchNorm},
      {"product-or-quotient", isProductOrQuotient},
      {"gradient-request", isGradientRequest},
      {"gradient-op", isGradientOp},
      {"sums-gradients", sumsGradients},
      {"scaling", isScaling},
      {"follows-update", followsUpdate},
      {"reads-parameter-gradients", readsParameterGradients},
      {"ends-scale", endsScale},
      {"gradient-part", isGradientPart},
      {"joins-flags", joinsFlags},
      {"decides-step", decidesStep},
      {"beside-network", isBesideNetwork},
  };
  return Lists;
}

} // namespace mpc
