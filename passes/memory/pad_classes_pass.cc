// Pads the classes of a head to what the libraries of the target multiply fast.
//
//   %z = mpc.matmul %h, %w {transpose_b = true} : ... -> tensor<8x5xbf16>
//   %loss, %lse = mpc.softmax_cross_entropy %z, %labels : ...
//   %dz = mpc.softmax_cross_entropy_grad %seed, %z, %labels, %lse backward : ...
//   %dw = mpc.matmul %dz, %h {transpose_a = true} backward : ... -> tensor<5x4xbf16>
// becomes
//   %p = mpc.pad %w {high = [3, 0], low = [0, 0]} : (tensor<5x4xbf16>) -> tensor<8x4xbf16>
//   %z = mpc.matmul %h, %p {mpc.padded = array<i64: 5, 8>, transpose_b = true} : ... -> tensor<8x8xbf16>
//   %loss, %lse = mpc.softmax_cross_entropy %z, %labels {classes = 5} : ...
//   %dz = mpc.softmax_cross_entropy_grad %seed, %z, %labels, %lse {classes = 5} backward : ...
//   %d = mpc.matmul %dz, %h {mpc.padded = array<i64: 5, 8>, transpose_a = true} backward : ... -> tensor<8x4xbf16>
//   %dw = mpc.slice %d {sizes = [5, 4], starts = [0, 0]} backward : ...
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/target_model.h"
#include "compiler/dialect/tensor_values.h"
#include "passes/function_body.h"
#include "passes/memory/language_model_head.h"
#include "passes/passes.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_PADCLASSESPASS
#include "passes/passes.h.inc"

static RankedTensorType withExtent(Type given, int64_t axis, int64_t extent) {
  auto type = cast<RankedTensorType>(given);
  SmallVector<int64_t> shape(type.getShape());
  shape[axis] = extent;
  return type.clone(shape);
}

namespace {

/// Pads one head from `classes` classes to `padded`. Behind the classes, weights and biases are zero, and so is the
/// gradient of the logits, which the loss writes. No sum of a product takes in another number: zero times zero is added
/// to it. The logits there are read by nothing but the loss, which ignores them.
class HeadWriter {
public:
  HeadWriter(LanguageModelHead &head, int64_t classes, int64_t padded)
      : head(head), classes(classes), padded(padded), builder(head.loss.getContext()) {}

  void run() {
    MatmulOp product = head.product;
    padOperand(product, product.getBMutable(), product.getTransposeB() ? 0 : 1);
    if (product.getBias())
      padOperand(product, product.getBiasMutable()[0], 0);
    setExtent(product.getY(), 1);
    mark(product);
    for (CastOp cast : head.logitCasts)
      setExtent(cast.getY(), 1);
    head.loss.setClasses(classes);
    head.gradient.setClasses(classes);
    setExtent(head.gradient.getDlogits(), 1);
    for (CastOp cast : head.gradientCasts)
      setExtent(cast.getY(), 1);
    for (MatmulOp rows : head.rowProducts) {
      padOperand(rows, rows.getBMutable(), rows.getTransposeB() ? 1 : 0);
      mark(rows);
    }
    for (Operation *sum : head.sums) {
      cutResult(sum, classAxis(sum));
      mark(sum);
    }
  }

private:
  void mark(Operation *op) {
    dialectOf(op).getPaddedAttrHelper().setAttr(op, builder.getDenseI64ArrayAttr({classes, padded}));
  }

  /// \p made stands at the place of the user's program where \p op does, in its precision.
  template <typename Op> Op like(Operation *op, Op made) {
    copyOrigin(op, made);
    if (PrecisionAttr precision = precisionOf(op))
      setPrecision(made, precision);
    return made;
  }

  void setExtent(Value v, int64_t axis) { v.setType(withExtent(v.getType(), axis, padded)); }

  /// Gives \p reader its operand with zeros behind the classes along \p axis. What several products read is padded
  /// once.
  void padOperand(Operation *reader, OpOperand &operand, int64_t axis) {
    Value &known = pads[{operand.get(), axis}];
    if (!known) {
      auto type = cast<RankedTensorType>(operand.get().getType());
      SmallVector<int64_t> low(type.getRank(), 0), high(type.getRank(), 0);
      high[axis] = padded - classes;
      builder.setInsertionPoint(reader);
      known = like(reader, PadOp::create(builder, reader->getLoc(), withExtent(type, axis, padded), operand.get(), low,
                                         high, llvm::APFloat(0.0f)));
    }
    operand.set(known);
  }

  /// The axis of \p sum's result that has a place for each class.
  int64_t classAxis(Operation *sum) {
    auto product = dyn_cast<MatmulOp>(sum);
    if (product)
      return behindCasts(product.getA()) == head.gradient.getDlogits() ? 0 : 1;
    return cast<RankedTensorType>(sum->getResult(0).getType()).getRank() - 1;
  }

  /// Lets what reads \p sum, whose result is padded along \p axis now, read the classes alone.
  void cutResult(Operation *sum, int64_t axis) {
    Value whole = sum->getResult(0);
    auto type = cast<RankedTensorType>(whole.getType());
    setExtent(whole, axis);
    builder.setInsertionPointAfter(sum);
    SmallVector<int64_t> starts(type.getRank(), 0);
    auto cut = like(sum, SliceOp::create(builder, sum->getLoc(), type, whole, starts, type.getShape()));
    whole.replaceAllUsesExcept(cut.getY(), cut);
  }

  LanguageModelHead &head;
  int64_t classes, padded;
  OpBuilder builder;
  llvm::DenseMap<std::pair<Value, int64_t>, Value> pads;
};

class PadClassesPass : public impl::PadClassesPassBase<PadClassesPass> {
public:
  using PadClassesPassBase::PadClassesPassBase;

  void runOnOperation() override {
    FailureOr<std::unique_ptr<TargetModel>> target = targetModelOf(getOperation());
    if (failed(target))
      return signalPassFailure();
    Block *body = onlyBlock(getOperation());
    if (!body || (*target)->lowProductMultiple() == 1)
      return;
    for (auto loss : llvm::to_vector(body->getOps<SoftmaxCrossEntropyOp>()))
      pad(loss, **target);
  }

private:
  void pad(SoftmaxCrossEntropyOp loss, const TargetModel &target) {
    int64_t classes = loss.countClasses(), multiple = target.lowProductMultiple();
    auto product = behindCasts(loss.getLogits()).getDefiningOp<MatmulOp>();
    bool isTrained = !loss.getLogSumExp().use_empty();
    if (loss.getClasses() || classes % multiple == 0 || isFloating(loss.getLabels()) || !isTrained || !product ||
        !isLowProduct(product) || !(everywhere || pays(product, target)))
      return;
    StringRef path = pathOf(product);
    auto remark = [&] {
      return getOperation().emitRemark() << "pad-classes: " << (path.empty() ? "(no Cell)" : path) << ": ";
    };
    llvm::Expected<LanguageModelHead> head = LanguageModelHead::find(loss);
    if (!head) {
      remark() << classes << " classes stay as they are: " << llvm::toString(head.takeError());
      return;
    }
    int64_t padded = (classes + multiple - 1) / multiple * multiple;
    HeadWriter(*head, classes, padded).run();
    remark() << classes << " classes are padded to " << padded << " in " << countProducts(*head) << " products";
  }

  static size_t countProducts(const LanguageModelHead &head) {
    return 1 + head.rowProducts.size() + llvm::count_if(head.sums, [](Operation *sum) { return isa<MatmulOp>(sum); });
  }

  static bool isLowProduct(MatmulOp product) {
    return llvm::all_of(SmallVector<Value>{product.getA(), product.getB(), product.getY()},
                        [](Value v) { return isLow(getElementTypeOrSelf(v.getType())); });
  }

  /// Left alone, the library would read and write the logits once more for each of three products. Padded, the weight
  /// and its gradient are read and written once more, by launches of their own, and so are those of a bias.
  static bool pays(MatmulOp product, const TargetModel &target) {
    int64_t launches = product.getBias() ? 4 : 2;
    return 3 * bytesOf(product.getY()) > 2 * bytesOf(product.getB()) + launches * target.bytesPerLaunch();
  }
};

} // namespace

} // namespace mpc
