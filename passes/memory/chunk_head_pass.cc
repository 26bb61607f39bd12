// Computes a language model's head in chunks of rows: logits, losses, and what their gradients add to.
//
//   %z = mpc.matmul %h, %w {transpose_b = true} : ...
//   %loss, %lse = mpc.softmax_cross_entropy %z, %labels : ...
//   %dz = mpc.softmax_cross_entropy_grad %seed, %z, %labels, %lse backward : ...
//   %dh = mpc.matmul %dz, %w backward : ...
//   %dw = mpc.matmul %dz, %h {transpose_a = true} backward : ...
// becomes these operations for the second of two chunks, whose results are joined behind it.
//   %h1 = mpc.slice %h {sizes = [4, 4], starts = [4, 0]} : ...
//   %z1 = mpc.matmul %h1, %w {transpose_b = true} : ...
//   %loss1, %lse1 = mpc.softmax_cross_entropy %z1, %labels1 {reduction = none} : ...
//   %dz1 = mpc.softmax_cross_entropy_grad %share, %z1, %labels1, %lse1 {reduction = sum} backward : ...
//   %dh1 = mpc.matmul %dz1, %w backward : ...
//   %dw1 = mpc.matmul %h1, %dz1, %dw0 {transpose_a = true} backward : ...
#include "compiler/dialect/head_chunks.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/tensor_values.h"
#include "compiler/dialect/vjp_support.h"
#include "mlir/IR/IRMapping.h"
#include "passes/function_body.h"
#include "passes/memory/language_model_head.h"
#include "passes/passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_CHUNKHEADPASS
#include "passes/passes.h.inc"

namespace {

/// Rows of one chunk.
struct Rows {
  int64_t start, count;
};

/// Sizes differ by one at most, the larger ones come first.
SmallVector<Rows> cut(int64_t all, int64_t chunks) {
  SmallVector<Rows> parts;
  int64_t start = 0;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    int64_t count = all / chunks + (chunk < all % chunks ? 1 : 0);
    parts.push_back({start, count});
    start += count;
  }
  return parts;
}

RankedTensorType withRows(Type whole, int64_t count) {
  auto tensor = cast<RankedTensorType>(whole);
  SmallVector<int64_t> shape(tensor.getShape());
  shape[0] = count;
  return RankedTensorType::get(shape, tensor.getElementType());
}

/// Writes the chunks of one head behind all that they take, and puts what they give in the head's place.
class ChunkWriter {
public:
  ChunkWriter(LanguageModelHead &head, int64_t chunks)
      : head(head), builder(head.loss.getContext()), parts(cut(head.rows(), chunks)) {
    builder.setInsertionPointAfter(head.last);
  }

  void run() {
    cotangentOfRow = rowCotangent();
    for (Rows part : parts)
      writeChunk(part);
    replace(head.loss.getLoss(), joinedLoss());
    for (MatmulOp product : head.rowProducts)
      replace(product.getY(), join(product, product.getY().getType(), rowResults[product]));
    for (Operation *sum : head.sums)
      replace(sum->getResult(0), rounded(sum));
    moveDependent();
    erase();
  }

private:
  bool keepsRows() { return head.loss.getReduction() == LossReduction::kNone; }

  /// \p replacement does what \p old does, at the same place of the user's program.
  template <typename Op> Op like(Operation *old, Op replacement) {
    copyOrigin(old, replacement);
    if (PrecisionAttr precision = precisionOf(old))
      setPrecision(replacement, precision);
    return replacement;
  }

  /// The cotangent of each row's loss: of all rows, or the one value that is every row's.
  Value rowCotangent() {
    Value cotangent = head.gradient.getDloss();
    if (head.loss.getReduction() != LossReduction::kMean)
      return cotangent;
    Type element = cast<RankedTensorType>(cotangent.getType()).getElementType();
    Location loc = head.gradient.getLoc();
    Value count = scalarConstant(builder, loc, element, static_cast<double>(head.rows()));
    return like(head.gradient, DivOp::create(builder, loc, cotangent.getType(), cotangent, count));
  }

  /// The rows of \p whole that \p reader needs in a chunk.
  Value sliceRows(Operation *reader, Value whole, Rows part) {
    RankedTensorType type = withRows(whole.getType(), part.count);
    SmallVector<int64_t> starts(type.getRank(), 0);
    starts[0] = part.start;
    return like(reader, SliceOp::create(builder, reader->getLoc(), type, whole, starts, type.getShape()));
  }

  /// \p op on the operands of a chunk. There is no use in computing its logits again.
  Operation *copyOf(Operation *op, ValueRange operands) {
    Operation *copy = builder.clone(*op);
    copy->setOperands(operands);
    setRecomputeCall(copy, {});
    return copy;
  }
  Operation *copyRows(Operation *op, ValueRange operands, Rows part) {
    Operation *copy = copyOf(op, operands);
    for (OpResult result : copy->getResults())
      result.setType(withRows(result.getType(), part.count));
    return copy;
  }

  void writeChunk(Rows part) {
    IRMapping known;
    auto copyCasts = [&](ArrayRef<CastOp> casts) {
      for (CastOp cast : casts)
        known.map(cast.getY(), copyRows(cast, known.lookup(cast.getX()), part)->getResult(0));
    };
    MatmulOp product = head.product;
    SmallVector<Value> factors(product->getOperands());
    factors[0] = sliceRows(product, factors[0], part);
    known.map(product.getY(), copyRows(product, factors, part)->getResult(0));
    copyCasts(head.logitCasts);
    Value labels = sliceRows(head.loss, head.loss.getLabels(), part);
    auto loss = cast<SoftmaxCrossEntropyOp>(copyOf(head.loss, {known.lookup(head.loss.getLogits()), labels}));
    loss.setReduction(LossReduction::kNone);
    for (OpResult result : loss->getResults())
      result.setType(withRows(head.loss.getLogSumExp().getType(), part.count));
    losses.push_back(loss.getLoss());
    Value cotangent = keepsRows() ? sliceRows(head.gradient, cotangentOfRow, part) : cotangentOfRow;
    auto gradient = cast<SoftmaxCrossEntropyGradOp>(copyRows(
        head.gradient, {cotangent, known.lookup(head.gradient.getLogits()), labels, loss.getLogSumExp()}, part));
    gradient.setReduction(keepsRows() ? LossReduction::kNone : LossReduction::kSum);
    known.map(head.gradient.getDlogits(), gradient.getDlogits());
    copyCasts(head.gradientCasts);
    for (MatmulOp ofRows : head.rowProducts)
      rowResults[ofRows].push_back(copyRows(ofRows, {known.lookup(ofRows.getA()), ofRows.getB()}, part)->getResult(0));
    for (Operation *sum : head.sums)
      addTo(sum, known, part);
  }

  /// Whether \p sum is a gradient [V, X] that is summed as [X, V] and transposed once. Then rows of the logits'
  /// gradient are read as they lie, and no chunk transposes its part.
  bool isSummedTransposed(Operation *sum) {
    auto product = dyn_cast<MatmulOp>(sum);
    return product && behindCasts(product.getA()) == head.gradient.getDlogits();
  }

  /// Adds a chunk's part of a sum over rows to those before it, in f32: only the whole is rounded.
  void addTo(Operation *sum, const IRMapping &known, Rows part) {
    SmallVector<Value> operands;
    for (Value operand : sum->getOperands())
      operands.push_back(known.contains(operand) ? known.lookup(operand) : sliceRows(sum, operand, part));
    auto whole = cast<RankedTensorType>(sum->getResult(0).getType());
    SmallVector<int64_t> shape(whole.getShape());
    if (isSummedTransposed(sum)) {
      std::swap(operands[0], operands[1]);
      std::swap(shape[0], shape[1]);
    }
    Value &total = totals[sum];
    // A product is added to its bias, in place.
    bool addsItself = total && isa<MatmulOp>(sum);
    if (addsItself)
      operands.push_back(total);
    Operation *copy = copyOf(sum, operands);
    copy->getResult(0).setType(RankedTensorType::get(shape, accumulatorType(whole.getElementType())));
    if (!total || addsItself) {
      total = copy->getResult(0);
      return;
    }
    auto add = like(sum, AddOp::create(builder, sum->getLoc(), total.getType(), total, copy->getResult(0)));
    dialectOf(add).getChainAttrHelper().setAttr(add, builder.getUnitAttr());
    total = add.getY();
  }

  Value rounded(Operation *sum) {
    auto wanted = cast<RankedTensorType>(sum->getResult(0).getType());
    Value total = totals[sum];
    auto summed = cast<RankedTensorType>(total.getType());
    if (summed.getElementType() != wanted.getElementType())
      total =
          like(sum, CastOp::create(builder, sum->getLoc(), withElementType(summed, wanted.getElementType()), total));
    if (isSummedTransposed(sum))
      total = like(sum, TransposeOp::create(builder, sum->getLoc(), wanted, total, ArrayRef<int64_t>{1, 0}));
    return total;
  }

  Value join(Operation *op, Type whole, ArrayRef<Value> values) {
    return like(op, ConcatOp::create(builder, op->getLoc(), whole, values, builder.getI64IntegerAttr(0)));
  }

  Value joinedLoss() {
    Location loc = head.loss.getLoc();
    Value all = join(head.loss, head.loss.getLogSumExp().getType(), losses);
    if (keepsRows())
      return all;
    Type whole = head.loss.getLoss().getType();
    if (head.loss.getReduction() == LossReduction::kMean)
      return like(head.loss, ReduceMeanOp::create(builder, loc, whole, all, ArrayRef<int64_t>{0}, /*keep_dims=*/false));
    return like(head.loss, ReduceSumOp::create(builder, loc, whole, all, ArrayRef<int64_t>{0}, /*keep_dims=*/false));
  }

  void replace(Value old, Value replacement) { old.replaceAllUsesWith(replacement); }

  /// Moves dependent operations, in their order, behind what they need now.
  void moveDependent() {
    Block *body = builder.getInsertionBlock();
    for (Operation *op : head.dependent)
      op->moveBefore(body, builder.getInsertionPoint());
  }

  void erase() {
    for (Operation *sum : head.sums)
      sum->erase();
    for (MatmulOp product : head.rowProducts)
      product.erase();
    for (CastOp cast : llvm::reverse(head.gradientCasts))
      cast.erase();
    head.gradient.erase();
    head.loss.erase();
    for (CastOp cast : llvm::reverse(head.logitCasts))
      cast.erase();
    head.product.erase();
  }

  LanguageModelHead &head;
  OpBuilder builder;
  SmallVector<Rows> parts;
  Value cotangentOfRow;
  SmallVector<Value> losses;
  llvm::DenseMap<Operation *, SmallVector<Value>> rowResults;
  llvm::DenseMap<Operation *, Value> totals;
};

class ChunkHeadPass : public impl::ChunkHeadPassBase<ChunkHeadPass> {
public:
  using ChunkHeadPassBase::ChunkHeadPassBase;

  void runOnOperation() override {
    if (chunks < 1 || chunks > kMostHeadChunks) {
      getOperation().emitError() << "chunks of mpc-chunk-head must be from 1 (the head stays whole) to "
                                 << kMostHeadChunks << ", got " << chunks.getValue();
      return signalPassFailure();
    }
    if (chunks == 1 || !onlyBlock(getOperation()) ||
        dialectOf(getOperation()).getHeadChunksAttrHelper().isAttrPresent(getOperation()))
      return;
    logitBytes = 0;
    for (auto loss : llvm::to_vector(getOperation().getOps<SoftmaxCrossEntropyOp>()))
      chunk(loss);
  }

private:
  int64_t logitBytes = 0; ///< bytes of the whole logits of all heads

  void chunk(SoftmaxCrossEntropyOp loss) {
    llvm::Expected<LanguageModelHead> head = LanguageModelHead::create(loss);
    std::string obstacle = head ? "" : llvm::toString(head.takeError());
    if (obstacle.empty() && head->rows() < chunks)
      obstacle = llvm::formatv("it has {0} rows for {1} chunks", head->rows(), chunks.getValue());
    if (!obstacle.empty()) {
      StringRef path = pathOf(loss);
      getOperation().emitRemark() << "chunk-head: " << (path.empty() ? "(no Cell)" : path)
                                  << ": the head stays whole: " << obstacle;
      return;
    }
    std::string path = head->path().str();
    int64_t all = head->rows(), whole = bytesOf(head->product.getY());
    ChunkWriter(*head, chunks).run();
    logitBytes += whole;
    dialectOf(getOperation())
        .getHeadChunksAttrHelper()
        .setAttr(getOperation(), DenseI64ArrayAttr::get(&getContext(), {chunks, logitBytes}));
    getOperation().emitRemark() << "chunk-head: " << (path.empty() ? "(no Cell)" : path) << ": " << all
                                << " rows of logits are made in " << chunks.getValue()
                                << " chunks: " << whole / all * ((all + chunks - 1) / chunks) << " of " << whole
                                << " bytes live at a time";
  }
};

} // namespace

} // namespace mpc
