// Operations that move parts of tensors, look values up, and the maximum over axes.
#ifndef MPC_MOVEMENT_OPS_TD
#define MPC_MOVEMENT_OPS_TD

include "compiler/dialect/mpc_base.td"

def Mpc_ConcatOp : Mpc_DifferentiableOp<"concat", "Clear", [Mpc_IsDataMovement, Mpc_MovesAlongAxes]> {
  let summary = "Joins tensors along an axis.";
  let description = "Shapes agree but for the axis, element types throughout.";
  let arguments = (ins Variadic<Mpc_FloatTensor>:$inputs, Mpc_Int<"0">:$axis);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_SliceOp
    : Mpc_DifferentiableOp<"slice", "Clear",
                           [Mpc_IsDataMovement, Mpc_MovesAlongAxes, Mpc_KeepsScale, Mpc_TakesParts]> {
  let summary = "The block of `sizes` that begins at `starts`.";
  let description = [{
    One start and one size an axis; the block lies inside x. The derivative is mpc.pad.
  }];
  let arguments = (ins Mpc_NumberTensor:$x, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$sizes);
  let results = (outs Mpc_NumberTensor:$y);
}

def Mpc_SplitOp : Mpc_DifferentiableOp<"split", "Clear", [Mpc_IsDataMovement, Mpc_MovesAlongAxes, Mpc_KeepsScale]> {
  let summary = "Cuts a tensor along an axis into pieces of the given sizes.";
  let description = "The sizes are positive and add up to the extent of the axis. The derivative is mpc.concat.";
  let arguments = (ins Mpc_FloatTensor:$x, DenseI64ArrayAttr:$sizes, Mpc_Int<"0">:$axis);
  let results = (outs Variadic<Mpc_FloatTensor>:$pieces);
}

def Mpc_PadOp : Mpc_DifferentiableOp<"pad", "Clear", [Mpc_IsDataMovement, Mpc_MovesAlongAxes, Mpc_KeepsScale]> {
  let summary = "Puts `low` elements before and `high` after each axis.";
  let description = "Padding elements are `value`, an f32 constant rounded to y. The derivative is mpc.slice.";
  let arguments = (ins Mpc_FloatTensor:$x, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high, Mpc_Float<"0.0f">:$value);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_GatherOp : Mpc_DifferentiableOp<"gather", "Clear", [Mpc_IsDataMovement, Mpc_TakesParts]> {
  let summary = "Rows of a table by index (embedding).";
  let description = [{
    table: [V, ...], indices: i32 or i64 of any shape; y has the shape of indices followed by the rest of the table's.
    An index outside [0, V) gives a row of NaN.
  }];
  let arguments = (ins Mpc_FloatTensor:$table, Mpc_IndexTensor:$indices);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_GatherGradOp : Mpc_GradientOp<"gather_grad"> {
  let summary = "Derivative of gather by its table.";
  let description = [{
    dtable[v] = sum of the rows of dy whose index is v, added in the order of the indices, accumulated in f32 and
    rounded once. `rows` is V. Indices outside [0, V) add nothing.
  }];
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_IndexTensor:$indices, I64Attr:$rows);
  let results = (outs Mpc_FloatTensor:$dtable);
}

def Mpc_OneHotOp : Mpc_Op<"one_hot", "Clear", [Pure]> {
  let summary = "`on` at the index, `off` elsewhere, along a new last axis of extent `depth`.";
  let description = "An index outside [0, depth) gives `off` everywhere. f32, whatever the level says.";
  let f32Results = [0];
  let arguments = (ins Mpc_IndexTensor:$indices, I64Attr:$depth, Mpc_Float<"1.0f">:$on, Mpc_Float<"0.0f">:$off);
  let results = (outs Mpc_F32Tensor:$y);
}

def Mpc_ReduceMaxOp : Mpc_DifferentiableOp<"reduce_max", "Clear", [Mpc_Reducing, Mpc_SelectsValues, Mpc_IsReduction]> {
  let summary = "Maximum over the given axes.";
  let description = "A NaN wins. Axes are distinct and not negative; none means all.";
  let gradientOp = "ReduceMaxGradOp";
  let gradientReads = "getX(), getY(), getAxesAttr(), getKeepDimsAttr()";
  let arguments = (ins Mpc_FloatTensor:$x, DenseI64ArrayAttr:$axes, Mpc_Flag:$keep_dims);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_ReduceMaxGradOp : Mpc_GradientOp<"reduce_max_grad", [Mpc_Reducing]> {
  let summary = "Derivative of reduce_max.";
  let description = "Each cotangent is divided evenly among the elements of x that equal the maximum y.";
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$x, Mpc_FloatTensor:$y, DenseI64ArrayAttr:$axes,
                       Mpc_Flag:$keep_dims);
  let results = (outs Mpc_FloatTensor:$dx);
}

#endif
