// Derivatives of LSTM cells, and of their derivative.
#include "compiler/dialect/gradient_vjp.h"
#include "compiler/dialect/tensor_values.h"

using namespace mlir;

namespace mpc {

namespace {

/// What belongs to the four gates of a cell, each in the shape of a state. Their order is input, forget, cell, output.
struct Gates {
  Value i, f, g, o;
};

/// Arithmetic of gates in f32, or in the type of wider ones.
struct GateArithmetic : WideArithmetic {
  GateArithmetic(OpBuilder &builder, Location loc, Value state)
      : WideArithmetic(builder, loc, state), builder(builder), loc(loc), state(tensorTypeOf(state)) {}

  Gates split(Value all) {
    int64_t width = state.getDimSize(1);
    Type quarter = withElementType(state, elementOf(all));
    auto parts = SplitOp::create(builder, loc, SmallVector<Type>(4, quarter), all, SmallVector<int64_t>(4, width),
                                 /*axis=*/1);
    return {parts.getResult(0), parts.getResult(1), parts.getResult(2), parts.getResult(3)};
  }
  /// The four gates side by side, in the type of \p like.
  Value joined(const Gates &gates, Value like) {
    RankedTensorType type = withElementType(tensorTypeOf(like), elementOf(gates.i));
    Value all = ConcatOp::create(builder, loc, type, ValueRange{gates.i, gates.f, gates.g, gates.o},
                                 /*axis=*/1);
    return castTo(builder, loc, all, elementOf(like));
  }
  /// c y (1 - y) and c (1 - y^2).
  Value bySigmoid(Value c, Value y) { return of<SigmoidGradOp>(c, y); }
  Value byTanh(Value c, Value y) { return of<TanhGradOp>(c, y); }
  /// c (1 - 2 y).
  Value bend(Value c, Value y) { return times(c, plus(times(y, -2), 1)); }

  OpBuilder &builder;
  Location loc;
  RankedTensorType state;
};

} // namespace

// A cotangent, or zeros where a value has none.
static Value orZeros(OpBuilder &builder, Value cotangent, Value like) {
  return cotangent ? cotangent : filledConstant(builder, like.getLoc(), like.getType(), 0);
}

// A sum of one term or of two, of which either may be missing.
static Value sumOf(OpBuilder &builder, Location loc, Value a, Value b) {
  return a && b ? SumNOp::create(builder, loc, a.getType(), ValueRange{a, b}).getY() : a ? a : b;
}

Cotangents LstmCellOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  Cotangents result = SmallVector<Value>(2);
  // One of the two states may take no part in the loss: the last step's cell state usually does not.
  if (dy[0] || dy[1])
    result = resultCotangents(needed, [&] {
      return LstmCellGradOp::create(builder, getLoc(), getGates().getType(), getCellState().getType(),
                                    orZeros(builder, dy[0], getHidden()), orZeros(builder, dy[1], getNewCellState()),
                                    getActivations(), getCellState(), getNewCellState());
    });
  if (!dy[2] || !needed[0])
    return result;
  // Activations are saved for the derivative, whose own derivative gives them a cotangent.
  GateArithmetic wide(builder, getLoc(), getCellState());
  Gates c = wide.split(dy[2]), y = wide.split(getActivations());
  Gates by{wide.bySigmoid(c.i, y.i), wide.bySigmoid(c.f, y.f), wide.byTanh(c.g, y.g), wide.bySigmoid(c.o, y.o)};
  Value &ofGates = result->front();
  ofGates = sumOf(builder, getLoc(), ofGates, wide.joined(by, getGates()));
  return result;
}

// Let i, f, g and o be the activations, c the state, t = tanh(c'), s = 1 - t^2 and D = dc' + dh o s. dgates are
// D g i (1 - i), D c f (1 - f), D i (1 - g^2) and dh t o (1 - o). dc is D f. Let u be the cotangents of dgates, and w
// that of dc. That of D is u_i g i (1 - i) + u_f c f (1 - f) + u_g i (1 - g^2) + w f.
Cotangents LstmCellGradOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool> needed) {
  SmallVector<Value> result(5);
  if (!llvm::is_contained(needed, true))
    return result;
  Location loc = getLoc();
  GateArithmetic wide(builder, loc, getCellState());
  Gates y = wide.split(getActivations()), u = wide.split(orZeros(builder, cotangents[0], getDgates()));
  Value w = orZeros(builder, cotangents[1], getDcellState()), c = getCellState(), dh = getDhidden();
  Value t = wide.of<TanhOp>(getNewCellState());
  Value byState = wide.byTanh(dh, t), d = wide.plus(getDnewCellState(), wide.times(byState, y.o));
  Value ofD = wide.plus(wide.bySigmoid(wide.times(u.i, y.g), y.i), wide.bySigmoid(wide.times(u.f, c), y.f));
  ofD = wide.plus(ofD, wide.plus(wide.byTanh(wide.times(u.g, y.i), y.g), wide.times(w, y.f)));
  auto set = [&](unsigned index, llvm::function_ref<Value()> cotangent) {
    if (needed[index])
      result[index] = castTo(builder, loc, cotangent(), elementOf(getOperand(index)));
  };
  set(0, [&] { return wide.plus(wide.byTanh(wide.times(ofD, y.o), t), wide.bySigmoid(wide.times(u.o, t), y.o)); });
  set(1, [&] { return ofD; });
  set(2, [&] {
    Value byInput = wide.plus(wide.bend(wide.times(u.i, y.g), y.i), wide.byTanh(u.g, y.g));
    Value byForget = wide.plus(wide.bend(wide.times(u.f, c), y.f), w);
    Value byCell = wide.minus(wide.bySigmoid(u.i, y.i), wide.times(wide.times(wide.times(u.g, y.i), y.g), 2));
    Value byOutput = wide.plus(wide.times(ofD, byState), wide.times(wide.times(dh, t), wide.bend(u.o, y.o)));
    return wide.joined({wide.times(d, byInput), wide.times(d, byForget), wide.times(d, byCell), byOutput},
                       getActivations());
  });
  set(3, [&] { return wide.times(d, wide.bySigmoid(u.f, y.f)); });
  set(4, [&] {
    Value byTangent = wide.times(wide.times(wide.times(ofD, y.o), wide.times(byState, t)), -2);
    return wide.plus(byTangent, wide.bySigmoid(wide.times(u.o, byState), y.o));
  });
  return result;
}

} // namespace mpc
