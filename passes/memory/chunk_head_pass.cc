// Computes a language model's head in chunks of rows: logits, losses, and what their gradients add to.
//
//   %z = mpc.matmul %h, %w {transpose_b = true} : ...
//   %loss, %lse = mpc.softmax_cross_entropy %z, %labels : ...
//   %dz = mpc.softmax_cross_entropy_grad %seed, %z, %labels, %lse {mpc.backward} : ...
//   %dh = mpc.matmul %dz, %w {mpc.backward} : ...
//   %dw = mpc.matmul %dz, %h {mpc.backward, transpose_a = true} : ...
// becomes these operations for the second of two chunks, whose results are joined behind it.
//   %h1 = mpc.slice %h {sizes = [4, 4], starts = [4, 0]} : ...
//   %z1 = mpc.matmul %h1, %w {transpose_b = true} : ...
//   %loss1, %lse1 = mpc.softmax_cross_entropy %z1, %labels1 {reduction = none} : ...
//   %dz1 = mpc.softmax_cross_entropy_grad %share, %z1, %labels1, %lse1 {mpc.backward, reduction = sum} : ...
//   %dh1 = mpc.matmul %dz1, %w {mpc.backward} : ...
//   %dw1 = mpc.matmul %h1, %dz1, %dw0 {mpc.backward, transpose_a = true} : ...
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
  int64_t Start, Count;
};

/// Sizes differ by one at most, the larger ones come first.
SmallVector<Rows> cut(int64_t All, int64_t Chunks) {
  SmallVector<Rows> Parts;
  int64_t Start = 0;
  for (int64_t Chunk = 0; Chunk < Chunks; ++Chunk) {
    int64_t Count = All / Chunks + (Chunk < All % Chunks ? 1 : 0);
    Parts.push_back({Start, Count});
    Start += Count;
  }
  return Parts;
}

RankedTensorType withRows(Type Whole, int64_t Count) {
  auto Tensor = cast<RankedTensorType>(Whole);
  SmallVector<int64_t> Shape(Tensor.getShape());
  Shape[0] = Count;
  return RankedTensorType::get(Shape, Tensor.getElementType());
}

/// Writes the chunks of one head behind all that they take, and puts what they give in the head's place.
class ChunkWriter {
public:
  ChunkWriter(LanguageModelHead &Head, int64_t Chunks)
      : Head(Head), Builder(Head.Loss.getContext()), Parts(cut(Head.rows(), Chunks)) {
    Builder.setInsertionPointAfter(Head.Last);
  }

  void run() {
    RowCotangent = rowCotangent();
    for (Rows Part : Parts)
      writeChunk(Part);
    replace(Head.Loss.getLoss(), joinedLoss());
    for (MatmulOp Product : Head.RowProducts)
      replace(Product.getY(), join(Product, Product.getY().getType(), RowResults[Product]));
    for (Operation *Sum : Head.Sums)
      replace(Sum->getResult(0), rounded(Sum));
    moveDependent();
    erase();
  }

private:
  bool keepsRows() { return Head.Loss.getReduction() == "none"; }

  /// \p New does what \p Old does, at the same place of the user's program.
  template <typename Op> Op like(Operation *Old, Op New) {
    copyOrigin(Old, New);
    if (PrecisionAttr Precision = precisionOf(Old))
      setPrecision(New, Precision);
    return New;
  }

  /// The cotangent of each row's loss: of all rows, or the one value that is every row's.
  Value rowCotangent() {
    Value Cotangent = Head.Gradient.getDloss();
    if (Head.Loss.getReduction() != "mean")
      return Cotangent;
    Type Element = cast<RankedTensorType>(Cotangent.getType()).getElementType();
    Location Loc = Head.Gradient.getLoc();
    Value Count = scalarConstant(Builder, Loc, Element, static_cast<double>(Head.rows()));
    return like(Head.Gradient, DivOp::create(Builder, Loc, Cotangent.getType(), Cotangent, Count));
  }

  /// The rows of \p Whole that \p Reader needs in a chunk.
  Value sliceRows(Operation *Reader, Value Whole, Rows Part) {
    RankedTensorType Type = withRows(Whole.getType(), Part.Count);
    SmallVector<int64_t> Starts(Type.getRank(), 0);
    Starts[0] = Part.Start;
    return like(Reader, SliceOp::create(Builder, Reader->getLoc(), Type, Whole, Starts, Type.getShape()));
  }

  /// \p Op on the operands of a chunk. There is no use in computing its logits again.
  Operation *copy(Operation *Op, ValueRange Operands) {
    Operation *Copy = Builder.clone(*Op);
    Copy->setOperands(Operands);
    setRecomputeCall(Copy, {});
    return Copy;
  }
  Operation *copyRows(Operation *Op, ValueRange Operands, Rows Part) {
    Operation *Copy = copy(Op, Operands);
    for (OpResult Result : Copy->getResults())
      Result.setType(withRows(Result.getType(), Part.Count));
    return Copy;
  }

  void writeChunk(Rows Part) {
    IRMapping Known;
    auto CopyCasts = [&](ArrayRef<CastOp> Casts) {
      for (CastOp Cast : Casts)
        Known.map(Cast.getY(), copyRows(Cast, Known.lookup(Cast.getX()), Part)->getResult(0));
    };
    MatmulOp Product = Head.Product;
    SmallVector<Value> Factors(Product->getOperands());
    Factors[0] = sliceRows(Product, Factors[0], Part);
    Known.map(Product.getY(), copyRows(Product, Factors, Part)->getResult(0));
    CopyCasts(Head.LogitCasts);
    Value Labels = sliceRows(Head.Loss, Head.Loss.getLabels(), Part);
    auto Loss = cast<SoftmaxCrossEntropyOp>(copy(Head.Loss, {Known.lookup(Head.Loss.getLogits()), Labels}));
    Loss.setReduction("none");
    for (OpResult Result : Loss->getResults())
      Result.setType(withRows(Head.Loss.getLogSumExp().getType(), Part.Count));
    Losses.push_back(Loss.getLoss());
    Value Cotangent = keepsRows() ? sliceRows(Head.Gradient, RowCotangent, Part) : RowCotangent;
    auto Gradient = cast<SoftmaxCrossEntropyGradOp>(copyRows(
        Head.Gradient, {Cotangent, Known.lookup(Head.Gradient.getLogits()), Labels, Loss.getLogSumExp()}, Part));
    Gradient.setReduction(keepsRows() ? "none" : "sum");
    Known.map(Head.Gradient.getDlogits(), Gradient.getDlogits());
    CopyCasts(Head.GradientCasts);
    for (MatmulOp OfRows : Head.RowProducts)
      RowResults[OfRows].push_back(copyRows(OfRows, {Known.lookup(OfRows.getA()), OfRows.getB()}, Part)->getResult(0));
    for (Operation *Sum : Head.Sums)
      addTo(Sum, Known, Part);
  }

  /// Whether \p Sum is a gradient [V, X] that is summed as [X, V] and transposed once. Then rows of the logits'
  /// gradient are read as they lie, and no chunk transposes its part.
  bool isSummedTransposed(Operation *Sum) {
    auto Product = dyn_cast<MatmulOp>(Sum);
    return Product && behindCasts(Product.getA()) == Head.Gradient.getDlogits();
  }

  /// Adds a chunk's part of a sum over rows to those before it, in f32: only the whole is rounded.
  void addTo(Operation *Sum, const IRMapping &Known, Rows Part) {
    SmallVector<Value> Operands;
    for (Value Operand : Sum->getOperands())
      Operands.push_back(Known.contains(Operand) ? Known.lookup(Operand) : sliceRows(Sum, Operand, Part));
    auto Whole = cast<RankedTensorType>(Sum->getResult(0).getType());
    SmallVector<int64_t> Shape(Whole.getShape());
    if (isSummedTransposed(Sum)) {
      std::swap(Operands[0], Operands[1]);
      std::swap(Shape[0], Shape[1]);
    }
    Value &Total = Totals[Sum];
    // A product is added to its bias, in place.
    bool AddsItself = Total && isa<MatmulOp>(Sum);
    if (AddsItself)
      Operands.push_back(Total);
    Operation *Copy = copy(Sum, Operands);
    Copy->getResult(0).setType(RankedTensorType::get(Shape, accumulatorType(Whole.getElementType())));
    if (!Total || AddsItself) {
      Total = Copy->getResult(0);
      return;
    }
    auto Add = like(Sum, AddOp::create(Builder, Sum->getLoc(), Total.getType(), Total, Copy->getResult(0)));
    dialectOf(Add).getChainAttrHelper().setAttr(Add, Builder.getUnitAttr());
    Total = Add.getY();
  }

  Value rounded(Operation *Sum) {
    auto Wanted = cast<RankedTensorType>(Sum->getResult(0).getType());
    Value Total = Totals[Sum];
    auto Summed = cast<RankedTensorType>(Total.getType());
    if (Summed.getElementType() != Wanted.getElementType())
      Total =
          like(Sum, CastOp::create(Builder, Sum->getLoc(), withElementType(Summed, Wanted.getElementType()), Total));
    if (isSummedTransposed(Sum))
      Total = like(Sum, TransposeOp::create(Builder, Sum->getLoc(), Wanted, Total, ArrayRef<int64_t>{1, 0}));
    return Total;
  }

  Value join(Operation *Op, Type Whole, ArrayRef<Value> Values) {
    return like(Op, ConcatOp::create(Builder, Op->getLoc(), Whole, Values, Builder.getI64IntegerAttr(0)));
  }

  Value joinedLoss() {
    Location Loc = Head.Loss.getLoc();
    Value All = join(Head.Loss, Head.Loss.getLogSumExp().getType(), Losses);
    if (keepsRows())
      return All;
    Type Whole = Head.Loss.getLoss().getType();
    if (Head.Loss.getReduction() == "mean")
      return like(Head.Loss, ReduceMeanOp::create(Builder, Loc, Whole, All, ArrayRef<int64_t>{0}, /*keep_dims=*/false));
    return like(Head.Loss, ReduceSumOp::create(Builder, Loc, Whole, All, ArrayRef<int64_t>{0}, /*keep_dims=*/false));
  }

  void replace(Value Old, Value New) { Old.replaceAllUsesWith(New); }

  /// Moves dependent operations, in their order, behind what they need now.
  void moveDependent() {
    Block *Body = Builder.getInsertionBlock();
    for (Operation *Op : Head.Dependent)
      Op->moveBefore(Body, Builder.getInsertionPoint());
  }

  void erase() {
    for (Operation *Sum : Head.Sums)
      Sum->erase();
    for (MatmulOp Product : Head.RowProducts)
      Product.erase();
    for (CastOp Cast : llvm::reverse(Head.GradientCasts))
      Cast.erase();
    Head.Gradient.erase();
    Head.Loss.erase();
    for (CastOp Cast : llvm::reverse(Head.LogitCasts))
      Cast.erase();
    Head.Product.erase();
  }

  LanguageModelHead &Head;
  OpBuilder Builder;
  SmallVector<Rows> Parts;
  Value RowCotangent;
  SmallVector<Value> Losses;
  llvm::DenseMap<Operation *, SmallVector<Value>> RowResults;
  llvm::DenseMap<Operation *, Value> Totals;
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
    LogitBytes = 0;
    for (auto Loss : llvm::to_vector(getOperation().getOps<SoftmaxCrossEntropyOp>()))
      chunk(Loss);
  }

private:
  int64_t LogitBytes = 0; ///< bytes of the whole logits of all heads

  void chunk(SoftmaxCrossEntropyOp Loss) {
    llvm::Expected<LanguageModelHead> Head = LanguageModelHead::of(Loss);
    std::string Obstacle = Head ? "" : llvm::toString(Head.takeError());
    if (Obstacle.empty() && Head->rows() < chunks)
      Obstacle = llvm::formatv("it has {0} rows for {1} chunks", Head->rows(), chunks.getValue());
    if (!Obstacle.empty()) {
      StringRef Path = pathOf(Loss);
      getOperation().emitRemark() << "chunk-head: " << (Path.empty() ? "(no Cell)" : Path)
                                  << ": the head stays whole: " << Obstacle;
      return;
    }
    std::string Path = Head->path().str();
    int64_t All = Head->rows(), Whole = bytesOf(Head->Product.getY());
    ChunkWriter(*Head, chunks).run();
    LogitBytes += Whole;
    dialectOf(getOperation())
        .getHeadChunksAttrHelper()
        .setAttr(getOperation(), DenseI64ArrayAttr::get(&getContext(), {chunks, LogitBytes}));
    getOperation().emitRemark() << "chunk-head: " << (Path.empty() ? "(no Cell)" : Path) << ": " << All
                                << " rows of logits are made in " << chunks.getValue()
                                << " chunks: " << Whole / All * ((All + chunks - 1) / chunks) << " of " << Whole
                                << " bytes live at a time";
  }
};

} // namespace

} // namespace mpc
