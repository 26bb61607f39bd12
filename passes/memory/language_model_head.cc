#include "passes/memory/language_model_head.h"

#include "compiler/dialect/operation_attributes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace mpc {

template <typename... Parts> static llvm::Error obstacle(const char *Format, Parts &&...Given) {
  return llvm::createStringError(llvm::formatv(Format, std::forward<Parts>(Given)...).str());
}

int64_t LanguageModelHead::rows() const {
  return cast<RankedTensorType>(Product->getResult(0).getType()).getDimSize(0);
}

StringRef LanguageModelHead::path() const {
  MatmulOp Op = Product;
  return pathOf(Op);
}

Value behindCasts(Value V) {
  while (auto Cast = V.getDefiningOp<CastOp>())
    V = Cast->getOperand(0);
  return V;
}

//===-- Readers --------------------------------------------------------------------------------------------------===//

namespace {

/// A value and its casts, and who reads them.
struct Spread {
  llvm::SmallSetVector<Value, 4> Values;
  SmallVector<CastOp> Casts;
  SmallVector<Operation *> Readers; ///< each once, in program order
};

Spread spreadOf(Value V) {
  Spread Result;
  Result.Values.insert(V);
  llvm::SmallSetVector<Operation *, 8> Readers;
  for (unsigned Index = 0; Index < Result.Values.size(); ++Index)
    for (Operation *User : Result.Values[Index].getUsers()) {
      if (auto Cast = dyn_cast<CastOp>(User)) {
        if (Result.Values.insert(Cast->getResult(0)))
          Result.Casts.push_back(Cast);
      } else {
        Readers.insert(User);
      }
    }
  Result.Readers = Readers.takeVector();
  auto ByPosition = [](Operation *L, Operation *R) { return L->isBeforeInBlock(R); };
  llvm::sort(Result.Casts, ByPosition);
  if (llvm::all_of(Result.Readers, [&](Operation *Op) { return Op->getBlock() == V.getParentBlock(); }))
    llvm::sort(Result.Readers, ByPosition);
  return Result;
}

bool isPlain(MatmulOp Product) { return !Product.getBias() && Product.getActivation() == "none"; }

/// rows of Cotangent times a matrix.
bool isRowProduct(MatmulOp Product, const Spread &Cotangent) {
  return isPlain(Product) && Cotangent.Values.contains(Product.getA()) && !Product.getTransposeA() &&
         !Cotangent.Values.contains(Product.getB());
}

/// Cotangent^T times another matrix of as many rows, or that matrix's transpose times Cotangent.
bool isSumOfProducts(MatmulOp Product, const Spread &Cotangent) {
  return isPlain(Product) && Product.getTransposeA() && !Product.getTransposeB() &&
         Cotangent.Values.contains(Product.getA()) != Cotangent.Values.contains(Product.getB());
}

bool isColumnSum(ReduceSumOp Sum) { return Sum.getAxes() == ArrayRef<int64_t>{0}; }

} // namespace

//===-- Dependences ----------------------------------------------------------------------------------------------===//

// Everything of the block that depends on an operation, itself included.
static llvm::SetVector<Operation *> dependentOn(Operation *Op) {
  llvm::SetVector<Operation *> Found;
  Found.insert(Op);
  Block *Body = Op->getBlock();
  for (unsigned Index = 0; Index < Found.size(); ++Index)
    for (Operation *User : Found[Index]->getUsers())
      if (Operation *Ancestor = Body->findAncestorOpInBlock(*User))
        Found.insert(Ancestor);
  return Found;
}

// The values that the head takes from outside.
static SmallVector<Value> takenValues(const LanguageModelHead &Head) {
  MatmulOp Product = Head.Product;
  SoftmaxCrossEntropyGradOp Gradient = Head.Gradient;
  SmallVector<Value> Taken(Product->getOperands());
  Taken.push_back(Gradient.getDloss());
  Taken.push_back(Gradient.getLabels());
  Value Cotangent = Gradient.getDlogits();
  auto IsCotangent = [&](Value V) { return behindCasts(V) == Cotangent; };
  for (MatmulOp Rows : Head.RowProducts)
    Taken.push_back(Rows.getB());
  for (Operation *Sum : Head.Sums)
    for (Value Operand : Sum->getOperands())
      if (!IsCotangent(Operand))
        Taken.push_back(Operand);
  return Taken;
}

static llvm::Error findPlace(LanguageModelHead &Head) {
  llvm::SetVector<Operation *> Dependent = dependentOn(Head.Product);
  Head.Last = Head.Product;
  for (Value V : takenValues(Head)) {
    Operation *Producer = V.getDefiningOp();
    if (!Producer)
      continue;
    if (Dependent.contains(Producer))
      return obstacle("its gradient needs the loss first, through {0}", nameWithPath(Producer));
    if (Head.Last->isBeforeInBlock(Producer))
      Head.Last = Producer;
  }
  llvm::SmallPtrSet<Operation *, 16> Own = {Head.Product, Head.Loss, Head.Gradient};
  for (ArrayRef<CastOp> Casts : {ArrayRef(Head.LogitCasts), ArrayRef(Head.GradientCasts)})
    Own.insert_range(llvm::map_range(Casts, [](CastOp Cast) { return Cast.getOperation(); }));
  Own.insert_range(llvm::map_range(Head.RowProducts, [](MatmulOp Product) { return Product.getOperation(); }));
  Own.insert_range(Head.Sums);
  for (Operation *Op = Head.Product; Op != Head.Last->getNextNode(); Op = Op->getNextNode()) {
    if (Op->hasTrait<StateUpdate>())
      return obstacle("{0} updates state between the logits and what their gradient is made of", nameWithPath(Op));
    if (Dependent.contains(Op) && !Own.contains(Op))
      Head.Dependent.push_back(Op);
  }
  return llvm::Error::success();
}

//===-- The head -------------------------------------------------------------------------------------------------===//

static llvm::Error findForward(LanguageModelHead &Head) {
  Head.Product = behindCasts(Head.Loss.getLogits()).getDefiningOp<MatmulOp>();
  if (!Head.Product)
    return obstacle("its logits are not the result of mpc.matmul");
  if (Head.Product.getActivation() != "none" || Head.Product.getTransposeA())
    return obstacle("its logits are a product with an activation or a transposed first operand");
  if (Value Bias = Head.Product.getBias(); Bias && cast<RankedTensorType>(Bias.getType()).getRank() == 2)
    return obstacle("its logits are a product with a bias for each element");
  Spread Logits = spreadOf(Head.Product.getY());
  for (Operation *Reader : Logits.Readers) {
    auto Gradient = dyn_cast<SoftmaxCrossEntropyGradOp>(Reader);
    bool IsOwn = Gradient && Logits.Values.contains(Gradient.getLogits()) &&
                 Gradient.getLogSumExp() == Head.Loss.getLogSumExp() && !Head.Gradient;
    if (Reader == Head.Loss.getOperation())
      continue;
    if (!IsOwn)
      return obstacle("{0} reads the logits, too", nameWithPath(Reader));
    Head.Gradient = Gradient;
  }
  if (!Head.Gradient)
    return obstacle("nothing needs the gradient of its logits");
  Head.LogitCasts = std::move(Logits.Casts);
  for (Operation *Reader : Head.Loss.getLogSumExp().getUsers())
    if (Reader != Head.Gradient)
      return obstacle("{0} reads its log_sum_exp, too", nameWithPath(Reader));
  if (Head.Gradient.getLabels() != Head.Loss.getLabels() || Head.Gradient.getReduction() != Head.Loss.getReduction())
    return obstacle("its gradient has other labels or another reduction");
  return llvm::Error::success();
}

static llvm::Error findBackward(LanguageModelHead &Head) {
  Spread Cotangent = spreadOf(Head.Gradient.getDlogits());
  Head.GradientCasts = std::move(Cotangent.Casts);
  for (Operation *Reader : Cotangent.Readers) {
    auto Product = dyn_cast<MatmulOp>(Reader);
    auto Sum = dyn_cast<ReduceSumOp>(Reader);
    if (Product && isRowProduct(Product, Cotangent))
      Head.RowProducts.push_back(Product);
    else if ((Product && isSumOfProducts(Product, Cotangent)) || (Sum && isColumnSum(Sum)))
      Head.Sums.push_back(Reader);
    else
      return obstacle("{0} reads the gradient of the logits, too", nameWithPath(Reader));
  }
  return llvm::Error::success();
}

llvm::Expected<LanguageModelHead> LanguageModelHead::of(SoftmaxCrossEntropyOp Loss) {
  LanguageModelHead Head;
  Head.Loss = Loss;
  if (llvm::Error Error = findForward(Head))
    return Error;
  if (llvm::Error Error = findBackward(Head))
    return Error;
  if (llvm::Error Error = findPlace(Head))
    return Error;
  return Head;
}

} // namespace mpc
