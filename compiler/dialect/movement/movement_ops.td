// Operations that move parts of tensors, look values up, maxima, minima and products over axes,
// running sums and orders along an axis.
#ifndef MPC_MOVEMENT_OPS_TD
#define MPC_MOVEMENT_OPS_TD

include "compiler/dialect/mpc_base.td"

def Mpc_ConcatOp : Mpc_DifferentiableOp<"concat", "Clear", [Mpc_IsDataMovement, Mpc_MovesAlongAxes]> {
  let summary = "Joins tensors along an axis.";
  let description = [{
    Shapes agree but for the axis, element types throughout. Integers and truth values move as floating numbers do.

    ```mlir
    %a = mpc.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %b = mpc.constant {value = dense<[3.0]> : tensor<1xf32>} : () -> tensor<1xf32>
    %y = mpc.concat %a, %b : (tensor<2xf32>, tensor<1xf32>) -> tensor<3xf32>
    // %y = [1.0, 2.0, 3.0]
    ```
  }];
  let arguments = (ins Variadic<Mpc_Tensor>:$inputs, Mpc_Int<"0">:$axis);
  let results = (outs Mpc_Tensor:$y);
}

def Mpc_SliceOp
    : Mpc_DifferentiableOp<"slice", "Clear",
                           [Mpc_IsDataMovement, Mpc_MovesAlongAxes, Mpc_KeepsScale, Mpc_TakesParts]> {
  let summary = "The block of `sizes` that begins at `starts`.";
  let description = [{
    One start and one size an axis; the block lies inside x. The derivative is mpc.pad.

    ```mlir
    %x = mpc.constant {value = dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
    %y = mpc.slice %x {starts = [0, 1], sizes = [2, 2]} : (tensor<2x3xf32>) -> tensor<2x2xf32>
    // %y = [[2.0, 3.0], [5.0, 6.0]]
    ```
  }];
  let arguments = (ins Mpc_Tensor:$x, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$sizes);
  let results = (outs Mpc_Tensor:$y);
}

def Mpc_SplitOp : Mpc_DifferentiableOp<"split", "Clear", [Mpc_IsDataMovement, Mpc_MovesAlongAxes, Mpc_KeepsScale]> {
  let summary = "Cuts a tensor along an axis into pieces of the given sizes.";
  let description = [{
    The sizes are positive and add up to the extent of the axis. The derivative is mpc.concat.

    ```mlir
    %x = mpc.constant {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>} : () -> tensor<3xf32>
    %first, %rest = mpc.split %x {sizes = [1, 2]} : (tensor<3xf32>) -> (tensor<1xf32>, tensor<2xf32>)
    // %first = [1.0]
    // %rest = [2.0, 3.0]
    ```
  }];
  let arguments = (ins Mpc_Tensor:$x, DenseI64ArrayAttr:$sizes, Mpc_Int<"0">:$axis);
  let results = (outs Variadic<Mpc_Tensor>:$pieces);
}

def Mpc_PadOp : Mpc_DifferentiableOp<"pad", "Clear", [Mpc_IsDataMovement, Mpc_MovesAlongAxes, Mpc_KeepsScale]> {
  let summary = "Puts `low` elements before and `high` after each axis.";
  let description = [{
    Padding elements are `value`, an f32 constant rounded to y. Where y holds integers it is one of them; where y holds
    truth values it is 0 or 1. The derivative is mpc.slice.

    ```mlir
    %x = mpc.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %y = mpc.pad %x {low = [1], high = [2], value = 9.0} : (tensor<2xf32>) -> tensor<5xf32>
    // %y = [9.0, 1.0, 2.0, 9.0, 9.0]
    ```
  }];
  let arguments = (ins Mpc_Tensor:$x, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high, Mpc_Float<"0.0f">:$value);
  let results = (outs Mpc_Tensor:$y);
}

def Mpc_GatherOp : Mpc_DifferentiableOp<"gather", "Clear", [Mpc_IsDataMovement, Mpc_TakesParts]> {
  let summary = "Rows of a table by index (embedding).";
  let description = [{
    table: [V, ...], indices: i32 or i64 of any shape; y has the shape of indices followed by the rest of the table's.
    An index outside [0, V) gives a row of NaN, or, of a table of integers or truth values, a row of zeros.

    ```mlir
    %table = mpc.constant {value = dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>}
        : () -> tensor<3x2xf32>
    %indices = mpc.constant {value = dense<[2, 0]> : tensor<2xi32>} : () -> tensor<2xi32>
    %y = mpc.gather %table, %indices : (tensor<3x2xf32>, tensor<2xi32>) -> tensor<2x2xf32>
    // %y = [[5.0, 6.0], [1.0, 2.0]]
    ```
  }];
  let arguments = (ins Mpc_Tensor:$table, Mpc_IndexTensor:$indices);
  let results = (outs Mpc_Tensor:$y);
}

def Mpc_GatherGradOp : Mpc_DifferentiableGradientOp<"gather_grad"> {
  let summary = "Derivative of gather by its table.";
  let description = [{
    dtable[v] = sum of the rows of dy whose index is v, added in the order of the indices, accumulated in f32 and
    rounded once. `rows` is V. Indices outside [0, V) add nothing.

    ```mlir
    %dy = mpc.constant {value = dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
    %indices = mpc.constant {value = dense<[1, 0, 1]> : tensor<3xi32>} : () -> tensor<3xi32>
    %dtable = mpc.gather_grad %dy, %indices {rows = 3} : (tensor<3x2xf32>, tensor<3xi32>) -> tensor<3x2xf32>
    // %dtable = [[3.0, 4.0], [6.0, 8.0], [0.0, 0.0]]
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_IndexTensor:$indices, I64Attr:$rows);
  let results = (outs Mpc_FloatTensor:$dtable);
}

def Mpc_ScatterAddOp : Mpc_DifferentiableOp<"scatter_add", "Infer", [Mpc_IsArithmetic]> {
  let summary = "Adds rows to those rows of a tensor that indices name.";
  let description = [{
    x: [V, ...], indices: i32 or i64 of any shape; updates has the shape of indices followed by the rest of x's. y[v] is
    x[v] and the rows of updates whose index is v, accumulated in f32 and rounded once. Indices outside [0, V) add
    nothing, and their updates have no derivative.

    ```mlir
    %x = mpc.constant {value = dense<[10.0, 20.0, 30.0]> : tensor<3xf32>} : () -> tensor<3xf32>
    %indices = mpc.constant {value = dense<[2, 0, 2]> : tensor<3xi32>} : () -> tensor<3xi32>
    %updates = mpc.constant {value = dense<[1.0, 2.0, 4.0]> : tensor<3xf32>} : () -> tensor<3xf32>
    %y = mpc.scatter_add %x, %indices, %updates : (tensor<3xf32>, tensor<3xi32>, tensor<3xf32>) -> tensor<3xf32>
    // %y = [12.0, 20.0, 35.0]
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$x, Mpc_IndexTensor:$indices, Mpc_FloatTensor:$updates);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_OneHotOp : Mpc_Op<"one_hot", "Clear", [Pure]> {
  let summary = "`on` at the index, `off` elsewhere, along a new last axis of extent `depth`.";
  let description = [{
    An index outside [0, depth) gives `off` everywhere. f32, whatever the level says.

    ```mlir
    %labels = mpc.constant {value = dense<[1, 0]> : tensor<2xi32>} : () -> tensor<2xi32>
    %y = mpc.one_hot %labels {depth = 3} : (tensor<2xi32>) -> tensor<2x3xf32>
    // %y = [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    ```
  }];
  let f32Results = [0];
  let arguments = (ins Mpc_IndexTensor:$indices, I64Attr:$depth, Mpc_On:$on, Mpc_Float<"0.0f">:$off);
  let results = (outs Mpc_F32Tensor:$y);
}

def Mpc_ReduceMaxOp
    : Mpc_DifferentiableOp<"reduce_max", "Clear", [Mpc_Reducing, Mpc_SelectsValues, Mpc_ReductionInterface]> {
  let summary = "Maximum over the given axes.";
  let description = [{
    A NaN wins. Axes are distinct and not negative; none means all.

    ```mlir
    %x = mpc.constant {value = dense<[[1.0, 5.0], [7.0, 3.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
    %y = mpc.reduce_max %x {axes = [1]} : (tensor<2x2xf32>) -> tensor<2xf32>
    // %y = [5.0, 7.0]
    ```
  }];
  let gradientOp = "ReduceMaxGradOp";
  let gradientReads = "getX(), getY(), getAxesAttr(), getKeepDimsAttr()";
  let arguments = (ins Mpc_FloatTensor:$x, DenseI64ArrayAttr:$axes, Mpc_Flag:$keep_dims);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_ReduceMaxGradOp : Mpc_DifferentiableGradientOp<"reduce_max_grad", [Mpc_Reducing]> {
  let summary = "Derivative of reduce_max and of reduce_min.";
  let description = [{
    Each cotangent is divided evenly among the elements of x that equal the maximum, or minimum, y.

    ```mlir
    %dy = mpc.constant {value = dense<[6.0, 8.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %x = mpc.constant {value = dense<[[1.0, 5.0], [7.0, 7.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
    %y = mpc.constant {value = dense<[5.0, 7.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %dx = mpc.reduce_max_grad %dy, %x, %y {axes = [1]}
        : (tensor<2xf32>, tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
    // %dx = [[0.0, 6.0], [4.0, 4.0]]
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$x, Mpc_FloatTensor:$y, DenseI64ArrayAttr:$axes,
                       Mpc_Flag:$keep_dims);
  let results = (outs Mpc_FloatTensor:$dx);
}

def Mpc_ReduceMinOp
    : Mpc_DifferentiableOp<"reduce_min", "Clear", [Mpc_Reducing, Mpc_SelectsValues, Mpc_ReductionInterface]> {
  let summary = "Minimum over the given axes.";
  let description = [{
    A NaN wins. Axes are distinct and not negative; none means all.

    ```mlir
    %x = mpc.constant {value = dense<[[1.0, 5.0], [7.0, 3.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
    %y = mpc.reduce_min %x {axes = [1]} : (tensor<2x2xf32>) -> tensor<2xf32>
    // %y = [1.0, 3.0]
    ```
  }];
  let gradientOp = "ReduceMaxGradOp";
  let gradientReads = "getX(), getY(), getAxesAttr(), getKeepDimsAttr()";
  let arguments = (ins Mpc_FloatTensor:$x, DenseI64ArrayAttr:$axes, Mpc_Flag:$keep_dims);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_ReduceProdOp : Mpc_DifferentiableOp<"reduce_prod", "Deny", [Mpc_IsArithmetic, Mpc_ReductionInterface]> {
  let summary = "Product over the given axes.";
  let description = [{
    Multiplies in f32 and rounds once. Axes are distinct and not negative; none means all.

    ```mlir
    %x = mpc.constant {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
    %y = mpc.reduce_prod %x {axes = [1]} : (tensor<2x2xf32>) -> tensor<2xf32>
    // %y = [2.0, 12.0]
    ```
  }];
  let gradientOp = "ReduceProdGradOp";
  let gradientReads = "getX(), getAxesAttr(), getKeepDimsAttr()";
  let arguments = (ins Mpc_FloatTensor:$x, DenseI64ArrayAttr:$axes, Mpc_Flag:$keep_dims);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_CumsumOp : Mpc_DifferentiableOp<"cumsum", "Deny", [Mpc_IsArithmetic]> {
  let summary = "Running sums along an axis.";
  let description = [{
    Element i of a line is the sum of the elements up to i, or, where it is `exclusive`, of those before i. With
    `reverse` lines run from their ends. Accumulates in f32 and rounds each sum once. The derivative is mpc.cumsum the
    other way round.

    ```mlir
    %x = mpc.constant {value = dense<[1.0, 2.0, 4.0]> : tensor<3xf32>} : () -> tensor<3xf32>
    %y = mpc.cumsum %x : tensor<3xf32>
    // %y = [1.0, 3.0, 7.0]
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$x, Mpc_LastAxis:$axis, Mpc_Flag:$exclusive, Mpc_Flag:$reverse);
  let results = (outs Mpc_FloatTensor:$y);
}

// The values and indices that sorting gives, in order along an axis.
class Mpc_OrderOp<string mnemonic> : Mpc_DifferentiableOp<mnemonic, "Clear"> {
  let results = (outs Mpc_FloatTensor:$values, Mpc_I32Tensor:$indices);
}

def Mpc_SortOp : Mpc_OrderOp<"sort"> {
  let summary = "The elements of each line along an axis in order, and their indices.";
  let description = [{
    Ascending, or `descending`. Equal elements keep their order, zeros of either sign are equal, and a NaN counts as the
    largest value.

    ```mlir
    %x = mpc.constant {value = dense<[3.0, 1.0, 2.0]> : tensor<3xf32>} : () -> tensor<3xf32>
    %values, %indices = mpc.sort %x : (tensor<3xf32>) -> (tensor<3xf32>, tensor<3xi32>)
    // %values = [1.0, 2.0, 3.0]
    // %indices = [1, 2, 0]
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$x, Mpc_LastAxis:$axis, Mpc_Flag:$descending);
}

def Mpc_TopKOp : Mpc_OrderOp<"top_k"> {
  let summary = "The k largest elements of each line along an axis, and their indices.";
  let description = [{
    The largest comes first, or, with `smallest`, the smallest of the k smallest. Of equal elements the first counts,
    zeros of either sign are equal, and a NaN counts as the largest value.

    ```mlir
    %x = mpc.constant {value = dense<[3.0, 1.0, 4.0, 2.0]> : tensor<4xf32>} : () -> tensor<4xf32>
    %values, %indices = mpc.top_k %x {k = 2} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>)
    // %values = [4.0, 3.0]
    // %indices = [2, 0]
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$x, I64Attr:$k, Mpc_LastAxis:$axis, Mpc_Flag:$smallest);
}

def Mpc_TopKGradOp : Mpc_GradientOp<"top_k_grad", [DeclareOpInterfaceMethods<Mpc_DifferentiableInterface>]> {
  let summary = "Derivative of top_k and of sort.";
  let description = [{
    Each cotangent goes to the element of its line that it came from, zero to the others. `extent` is that of the axis.
    The indices of a line are distinct. The derivative is mpc.gather of the elements that they name.

    ```mlir
    %dy = mpc.constant {value = dense<[5.0, 6.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %indices = mpc.constant {value = dense<[2, 0]> : tensor<2xi32>} : () -> tensor<2xi32>
    %dx = mpc.top_k_grad %dy, %indices {extent = 4} : (tensor<2xf32>, tensor<2xi32>) -> tensor<4xf32>
    // %dx = [6.0, 0.0, 5.0, 0.0]
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_I32Tensor:$indices, I64Attr:$extent, Mpc_LastAxis:$axis);
  let results = (outs Mpc_FloatTensor:$dx);
}

def Mpc_ReduceProdGradOp : Mpc_DifferentiableGradientOp<"reduce_prod_grad"> {
  let summary = "Derivative of reduce_prod.";
  let description = [{
    Each cotangent times the product of the other elements of its result. That is the whole product divided by the
    element, or, beside zeros, the product of what is not zero.

    ```mlir
    %dy = mpc.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %x = mpc.constant {value = dense<[[3.0, 5.0], [0.0, 4.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
    %dx = mpc.reduce_prod_grad %dy, %x {axes = [1]} : (tensor<2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    // %dx = [[5.0, 3.0], [8.0, 0.0]]
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$x, DenseI64ArrayAttr:$axes, Mpc_Flag:$keep_dims);
  let results = (outs Mpc_FloatTensor:$dx);
}

#endif
