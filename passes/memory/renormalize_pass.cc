// Computes a normalised image again where the norm's own derivative would read it.
//
//   %n, %mean, %variance, %inv_std = mpc.batch_norm_train %x, %gamma, %beta : ...
//   %y = mpc.relu %n : ...
//   %dn = mpc.relu_grad %dy, %y backward : ...
//   %dx, %dgamma, %dbeta = mpc.batch_norm_train_grad %dn, %x, %gamma, %mean, %inv_std backward : ...
// where relu_grad now reads
//   %again = mpc.batch_norm_apply %x, %gamma, %beta, %mean, %inv_std backward : ...
//
// A sweep over the derivatives of norms, because each concerns three operations.
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/tensor_values.h"
#include "passes/function_body.h"
#include "passes/passes.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_RENORMALIZEPASS
#include "passes/passes.h.inc"

namespace {

/// A batch's image, and what normalised it.
struct NormalisedImage {
  Value image, beta;
  DataFormat dataFormat;
};

template <typename Norm> bool normalisesFor(Norm norm, BatchNormTrainGradOp grad) {
  return norm.getX() == grad.getX() && norm.getGamma() == grad.getGamma() && norm.getMean() == grad.getMean() &&
         norm.getInvStd() == grad.getInvStd();
}

std::optional<NormalisedImage> imageNormalisedFor(BatchNormTrainGradOp grad) {
  for (Operation *user : grad.getX().getUsers()) {
    if (auto norm = dyn_cast<BatchNormTrainOp>(user); norm && normalisesFor(norm, grad))
      return NormalisedImage{norm.getY(), norm.getBeta(), norm.getDataFormat()};
    auto norm = dyn_cast<BatchNormApplyOp>(user);
    if (norm && normalisesFor(norm, grad) && !isMarkedBackward(norm))
      return NormalisedImage{norm.getY(), norm.getBeta(), norm.getDataFormat()};
  }
  return std::nullopt;
}

/// Whether a derivative reads the image, or relu of it: one is above zero where the other is.
bool reads(OpOperand &operand, Value image) {
  if (operand.get() == image)
    return true;
  auto grad = dyn_cast<ReluGradOp>(operand.getOwner());
  auto relu = operand.get().getDefiningOp<ReluOp>();
  return grad && relu && &operand == &grad.getYMutable() && relu.getX() == image && relu.getType() == image.getType();
}

class RenormalizePass : public impl::RenormalizePassBase<RenormalizePass> {
public:
  using RenormalizePassBase::RenormalizePassBase;

  void runOnOperation() override {
    if (Block *body = onlyBlock(getOperation()))
      for (auto grad : body->getOps<BatchNormTrainGradOp>())
        normaliseAgain(grad);
  }

private:
  static void normaliseAgain(BatchNormTrainGradOp grad) {
    std::optional<NormalisedImage> known = imageNormalisedFor(grad);
    Operation *derivative = grad.getDy().getDefiningOp();
    if (!known || !derivative || !isMarkedBackward(derivative) || !has<Property::Elementwise>(derivative))
      return;
    Value again;
    for (OpOperand &operand : derivative->getOpOperands()) {
      if (!reads(operand, known->image))
        continue;
      if (!again) {
        OpBuilder builder(derivative);
        auto apply =
            BatchNormApplyOp::create(builder, derivative->getLoc(), known->image.getType(), grad.getX(),
                                     grad.getGamma(), known->beta, grad.getMean(), grad.getInvStd(), known->dataFormat);
        copyOrigin(derivative, apply);
        again = apply.getY();
      }
      operand.set(again);
    }
  }
};

} // namespace

} // namespace mpc
