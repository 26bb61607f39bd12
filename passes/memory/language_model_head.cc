#include "passes/memory/language_model_head.h"

#include "compiler/dialect/operation_attributes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace mpc {

template <typename... Parts> static llvm::Error obstacle(const char *format, Parts &&...given) {
  return llvm::createStringError(llvm::formatv(format, std::forward<Parts>(given)...).str());
}

int64_t LanguageModelHead::rows() const {
  return cast<RankedTensorType>(product->getResult(0).getType()).getDimSize(0);
}

StringRef LanguageModelHead::path() const {
  MatmulOp op = product;
  return pathOf(op);
}

Value behindCasts(Value v) {
  while (auto cast = v.getDefiningOp<CastOp>())
    v = cast->getOperand(0);
  return v;
}

//===-- Readers --------------------------------------------------------------------------------------------------===//

namespace {

/// A value and its casts, and who reads them.
struct Spread {
  llvm::SmallSetVector<Value, 4> values;
  SmallVector<CastOp> casts;
  SmallVector<Operation *> readers; ///< each once, in program order
};

Spread spreadOf(Value v) {
  Spread result;
  result.values.insert(v);
  llvm::SmallSetVector<Operation *, 8> readers;
  for (unsigned index = 0; index < result.values.size(); ++index)
    for (Operation *user : result.values[index].getUsers()) {
      if (auto cast = dyn_cast<CastOp>(user)) {
        if (result.values.insert(cast->getResult(0)))
          result.casts.push_back(cast);
      } else {
        readers.insert(user);
      }
    }
  result.readers = readers.takeVector();
  auto byPosition = [](Operation *l, Operation *r) { return l->isBeforeInBlock(r); };
  llvm::sort(result.casts, byPosition);
  if (llvm::all_of(result.readers, [&](Operation *op) { return op->getBlock() == v.getParentBlock(); }))
    llvm::sort(result.readers, byPosition);
  return result;
}

bool isPlain(MatmulOp product) { return !product.getBias() && product.getActivation() == Activation::kNone; }

/// rows of Cotangent times a matrix.
bool isRowProduct(MatmulOp product, const Spread &cotangent) {
  return isPlain(product) && cotangent.values.contains(product.getA()) && !product.getTransposeA() &&
         !cotangent.values.contains(product.getB());
}

/// Cotangent^T times another matrix of as many rows, or that matrix's transpose times Cotangent.
bool isSumOfProducts(MatmulOp product, const Spread &cotangent) {
  return isPlain(product) && product.getTransposeA() && !product.getTransposeB() &&
         cotangent.values.contains(product.getA()) != cotangent.values.contains(product.getB());
}

bool isColumnSum(ReduceSumOp sum) { return sum.getAxes() == ArrayRef<int64_t>{0}; }

} // namespace

//===-- Dependences ----------------------------------------------------------------------------------------------===//

// Everything of the block that depends on an operation, itself included.
static llvm::SetVector<Operation *> dependentOn(Operation *op) {
  llvm::SetVector<Operation *> found;
  found.insert(op);
  Block *body = op->getBlock();
  for (unsigned index = 0; index < found.size(); ++index)
    for (Operation *user : found[index]->getUsers())
      if (Operation *ancestor = body->findAncestorOpInBlock(*user))
        found.insert(ancestor);
  return found;
}

// The values that the head takes from outside.
static SmallVector<Value> takenValues(const LanguageModelHead &head) {
  MatmulOp product = head.product;
  SoftmaxCrossEntropyGradOp gradient = head.gradient;
  SmallVector<Value> taken(product->getOperands());
  taken.push_back(gradient.getDloss());
  taken.push_back(gradient.getLabels());
  Value cotangent = gradient.getDlogits();
  auto isCotangent = [&](Value v) { return behindCasts(v) == cotangent; };
  for (MatmulOp rows : head.rowProducts)
    taken.push_back(rows.getB());
  for (Operation *sum : head.sums)
    for (Value operand : sum->getOperands())
      if (!isCotangent(operand))
        taken.push_back(operand);
  return taken;
}

static llvm::Error findPlace(LanguageModelHead &head) {
  llvm::SetVector<Operation *> dependent = dependentOn(head.product);
  head.last = head.product;
  for (Value v : takenValues(head)) {
    Operation *producer = v.getDefiningOp();
    if (!producer)
      continue;
    if (dependent.contains(producer))
      return obstacle("its gradient needs the loss first, through {0}", nameWithPath(producer));
    if (head.last->isBeforeInBlock(producer))
      head.last = producer;
  }
  llvm::SmallPtrSet<Operation *, 16> own = {head.product, head.loss, head.gradient};
  for (ArrayRef<CastOp> casts : {ArrayRef(head.logitCasts), ArrayRef(head.gradientCasts)})
    own.insert_range(llvm::map_range(casts, [](CastOp cast) { return cast.getOperation(); }));
  own.insert_range(llvm::map_range(head.rowProducts, [](MatmulOp product) { return product.getOperation(); }));
  own.insert_range(head.sums);
  for (Operation *op = head.product; op != head.last->getNextNode(); op = op->getNextNode()) {
    if (op->hasTrait<StateUpdate>())
      return obstacle("{0} updates state between the logits and what their gradient is made of", nameWithPath(op));
    if (dependent.contains(op) && !own.contains(op))
      head.dependent.push_back(op);
  }
  return llvm::Error::success();
}

//===-- The head -------------------------------------------------------------------------------------------------===//

static llvm::Error findForward(LanguageModelHead &head) {
  head.product = behindCasts(head.loss.getLogits()).getDefiningOp<MatmulOp>();
  if (!head.product)
    return obstacle("its logits are not the result of mpc.matmul");
  if (head.product.getActivation() != Activation::kNone || head.product.getTransposeA())
    return obstacle("its logits are a product with an activation or a transposed first operand");
  if (Value bias = head.product.getBias(); bias && cast<RankedTensorType>(bias.getType()).getRank() == 2)
    return obstacle("its logits are a product with a bias for each element");
  Spread logits = spreadOf(head.product.getY());
  for (Operation *reader : logits.readers) {
    auto gradient = dyn_cast<SoftmaxCrossEntropyGradOp>(reader);
    bool isOwn = gradient && logits.values.contains(gradient.getLogits()) &&
                 gradient.getLogSumExp() == head.loss.getLogSumExp() && !head.gradient;
    if (reader == head.loss.getOperation())
      continue;
    if (!isOwn)
      return obstacle("{0} reads the logits, too", nameWithPath(reader));
    head.gradient = gradient;
  }
  if (!head.gradient)
    return obstacle("nothing needs the gradient of its logits");
  head.logitCasts = std::move(logits.casts);
  for (Operation *reader : head.loss.getLogSumExp().getUsers())
    if (reader != head.gradient)
      return obstacle("{0} reads its log_sum_exp, too", nameWithPath(reader));
  if (head.gradient.getLabels() != head.loss.getLabels() || head.gradient.getReduction() != head.loss.getReduction())
    return obstacle("its gradient has other labels or another reduction");
  return llvm::Error::success();
}

static llvm::Error findBackward(LanguageModelHead &head) {
  Spread cotangent = spreadOf(head.gradient.getDlogits());
  head.gradientCasts = std::move(cotangent.casts);
  for (Operation *reader : cotangent.readers) {
    auto product = dyn_cast<MatmulOp>(reader);
    auto sum = dyn_cast<ReduceSumOp>(reader);
    if (product && isRowProduct(product, cotangent))
      head.rowProducts.push_back(product);
    else if ((product && isSumOfProducts(product, cotangent)) || (sum && isColumnSum(sum)))
      head.sums.push_back(reader);
    else
      return obstacle("{0} reads the gradient of the logits, too", nameWithPath(reader));
  }
  return llvm::Error::success();
}

llvm::Expected<LanguageModelHead> LanguageModelHead::find(SoftmaxCrossEntropyOp loss) {
  LanguageModelHead head;
  head.loss = loss;
  if (llvm::Error error = findForward(head))
    return error;
  if (llvm::Error error = findBackward(head))
    return error;
  return head;
}

llvm::Expected<LanguageModelHead> LanguageModelHead::create(SoftmaxCrossEntropyOp loss) {
  llvm::Expected<LanguageModelHead> head = find(loss);
  if (!head)
    return head.takeError();
  if (llvm::Error error = findPlace(*head))
    return error;
  return head;
}

} // namespace mpc
