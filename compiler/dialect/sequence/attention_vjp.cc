// Derivatives of attention, and of its derivative.
#include "compiler/dialect/gradient_vjp.h"
#include "compiler/dialect/tensor_values.h"

#include <limits>

using namespace mlir;

namespace mpc {

namespace {

/// The probabilities of an attention again, and products of matrices, all in the accumulator's type.
class AttentionRows {
public:
  template <typename Op>
  AttentionRows(OpBuilder &builder, Op op)
      : builder(builder), loc(op.getLoc()), scale(op.getScale()), query(widened(op.getQuery())),
        key(widened(op.getKey())), scores(product(query, false, key, true)), wide(builder, loc, scores) {
    SmallVector<int64_t> perRow(tensorTypeOf(op.getLogSumExp()).getShape());
    perRow.push_back(1);
    Value logarithm = wide.minus(scaled(scores), reshapeTo(builder, loc, op.getLogSumExp(), perRow));
    if (op.getCausal())
      logarithm = only(notBehind(), logarithm);
    if (op.getMask())
      logarithm = only(op.getMask(), logarithm);
    probabilities = wide.of<ExpOp>(logarithm);
  }

  Value widened(Value v) { return v ? castTo(builder, loc, v, accumulatorType(elementOf(v))) : v; }
  Value product(Value a, bool transposeA, Value b, bool transposeB) {
    RankedTensorType left = tensorTypeOf(a), right = tensorTypeOf(b);
    SmallVector<int64_t> shape(left.getShape());
    shape[2] = left.getDimSize(transposeA ? 3 : 2);
    shape[3] = right.getDimSize(transposeB ? 2 : 3);
    return BatchMatmulOp::create(builder, loc, RankedTensorType::get(shape, left.getElementType()), a, b, transposeA,
                                 transposeB);
  }
  Value scaled(Value v) { return MulScalarOp::create(builder, loc, v.getType(), v, scale); }
  /// The cotangents by query and by key of what has \p ofScores as cotangents of its scores.
  Value byQuery(Value ofScores) { return scaled(product(ofScores, false, key, false)); }
  Value byKey(Value ofScores) { return scaled(product(ofScores, true, query, false)); }

private:
  /// The logarithm of 0 where \p condition does not hold. Nothing is lost there, also where log_sum_exp is infinite.
  Value only(Value condition, Value logarithm) {
    Value none = scalarConstant(builder, loc, elementOf(logarithm), -std::numeric_limits<double>::infinity());
    return WhereOp::create(builder, loc, logarithm.getType(), condition, logarithm, none);
  }
  /// Whether row t may read column s: s <= t + S - T.
  Value notBehind() {
    int64_t rows = tensorTypeOf(scores).getDimSize(2), columns = tensorTypeOf(scores).getDimSize(3);
    Type element = builder.getI32Type();
    SmallVector<int64_t> down{rows, 1}, along{1, columns};
    Value last =
        IotaOp::create(builder, loc, RankedTensorType::get(down, element), down, /*axis=*/0, columns - rows, 1);
    Value column = IotaOp::create(builder, loc, RankedTensorType::get(along, element), along, /*axis=*/1, 0, 1);
    Type mask = RankedTensorType::get({rows, columns}, builder.getI1Type());
    return GreaterEqualOp::create(builder, loc, mask, last, column);
  }

  OpBuilder &builder;
  Location loc;
  APFloat scale;

public:
  Value query, key, scores;
  WideArithmetic wide;
  Value probabilities; ///< 0 where nothing may be read
};

/// A sum that has no terms at first.
struct Sum {
  WideArithmetic wide;
  Value value;
  void add(Value term) { value = value ? wide.plus(value, term) : term; }
};

} // namespace

Cotangents AttentionOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  Cotangents result = SmallVector<Value>(getNumOperands());
  if (dy[0])
    result = resultCotangents(needed, [&] {
      return AttentionGradOp::create(builder, getLoc(), getQuery().getType(), getKey().getType(), getValue().getType(),
                                     dy[0], getQuery(), getKey(), getValue(), getLogSumExp(), getMask(), getScaleAttr(),
                                     getCausalAttr());
    });
  if (!dy[1] || (!needed[0] && !needed[1]))
    return result;
  // log_sum_exp is saved for the derivative, whose own derivative gives it a cotangent.
  AttentionRows rows(builder, *this);
  SmallVector<int64_t> perRow(tensorTypeOf(dy[1]).getShape());
  perRow.push_back(1);
  Value ofScores = rows.wide.times(rows.probabilities, reshapeTo(builder, getLoc(), dy[1], perRow));
  for (unsigned index : {0u, 1u}) {
    if (!needed[index])
      continue;
    Value term = index == 0 ? rows.byQuery(ofScores) : rows.byKey(ofScores);
    Type type = getOperand(index).getType();
    term = castTo(builder, getLoc(), term, getElementTypeOrSelf(type));
    Value &sum = (*result)[index];
    sum = sum ? SumNOp::create(builder, getLoc(), type, ValueRange{sum, term}).getY() : term;
  }
  return result;
}

// Let S be the scores, P the probabilities, D = dy value^T, d = sum(D P) and Z = P (D - d), the cotangent of S.
//   dquery = scale Z key, dkey = scale Z^T query, dvalue = P^T dy.
// Let a, b and c be their cotangents. That of Z is G = scale (a key^T + query b^T). Let g = sum(G P). That of D is
// P (G - g), and that of log P is R = P (G (D - d) - g D + dy c^T). By log_sum_exp it is the negative sum of R.
Cotangents AttentionGradOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool> needed) {
  SmallVector<Value> result(getNumOperands());
  if (!llvm::is_contained(needed, true))
    return result;
  AttentionRows rows(builder, *this);
  WideArithmetic &wide = rows.wide;
  Value a = rows.widened(cotangents[0]), b = rows.widened(cotangents[1]), c = rows.widened(cotangents[2]);
  Value dy = rows.widened(getDy()), value = rows.widened(getValue()), p = rows.probabilities;

  Sum ofZ{wide, {}}, ofLogarithm{wide, {}};
  if (a)
    ofZ.add(rows.product(a, false, rows.key, true));
  if (b)
    ofZ.add(rows.product(rows.query, false, b, true));
  Value ofD, z;
  if (ofZ.value) {
    Value g = rows.scaled(ofZ.value), product = rows.product(dy, false, value, true);
    Value centred = wide.minus(product, wide.sumAlong(wide.times(product, p), -1));
    Value sum = wide.sumAlong(wide.times(g, p), -1);
    z = wide.times(p, centred);
    ofD = wide.times(p, wide.minus(g, sum));
    ofLogarithm.add(wide.times(g, centred));
    ofLogarithm.add(wide.negated(wide.times(product, sum)));
  }
  if (c)
    ofLogarithm.add(rows.product(dy, false, c, true));
  Value r = wide.times(p, ofLogarithm.value);

  auto set = [&](unsigned index, Value cotangent) {
    if (cotangent)
      result[index] = castTo(builder, getLoc(), cotangent, elementOf(getOperand(index)));
  };
  if (needed[0]) {
    Sum byDy{WideArithmetic(builder, getLoc(), dy), {}};
    if (ofD)
      byDy.add(rows.product(ofD, false, value, false));
    if (c)
      byDy.add(rows.product(p, false, c, false));
    set(0, byDy.value);
  }
  if (needed[1]) {
    Sum byQuery{WideArithmetic(builder, getLoc(), rows.query), rows.byQuery(r)};
    if (b)
      byQuery.add(rows.scaled(rows.product(z, false, b, false)));
    set(1, byQuery.value);
  }
  if (needed[2]) {
    Sum byKey{WideArithmetic(builder, getLoc(), rows.key), rows.byKey(r)};
    if (a)
      byKey.add(rows.scaled(rows.product(z, true, a, false)));
    set(2, byKey.value);
  }
  if (needed[3] && ofD)
    set(3, rows.product(ofD, true, dy, false));
  if (needed[4])
    result[4] = ReduceSumOp::create(builder, getLoc(), getLogSumExp().getType(), wide.negated(r), ArrayRef<int64_t>{3},
                                    /*keep_dims=*/false);
  return result;
}

} // namespace mpc
