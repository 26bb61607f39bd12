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
    auto derivative = grad.getDy().getDefiningOp<ReluGradOp>();
    std::optional<NormalisedImage> known = imageNormalisedFor(grad);
    if (!derivative || !known)
      return;
    auto relu = derivative.getY().getDefiningOp<ReluOp>();
    // relu's result is above zero where its operand is, unless rounding makes a zero of it.
    if (!relu || relu.getX() != known->image || relu.getType() != known->image.getType())
      return;
    OpBuilder builder(derivative);
    auto again =
        BatchNormApplyOp::create(builder, derivative.getLoc(), known->image.getType(), grad.getX(), grad.getGamma(),
                                 known->beta, grad.getMean(), grad.getInvStd(), known->dataFormat);
    copyOrigin(derivative, again);
    derivative.getYMutable().assign(again.getY());
  }
};

} // namespace

} // namespace mpc
