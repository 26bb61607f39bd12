// Element-wise operations, casts, data movement and reductions.
#ifndef MPC_ELEMENTWISE_OPS_TD
#define MPC_ELEMENTWISE_OPS_TD

include "compiler/dialect/mpc_base.td"
include "mlir/Interfaces/ViewLikeInterface.td"

//===-- Constants and random values ------------------------------------------------------------------------------===//

def Mpc_ConstantOp : Mpc_Op<"constant", "Exempt", [Pure, ConstantLike, Mpc_IsBesideNetwork, Mpc_PreparesUpdate]> {
  let summary = "A constant tensor.";
  let description = [{
    ```mlir
    %zero = mpc.constant {value = dense<0.0> : tensor<32x10xf32>} : () -> tensor<32x10xf32>
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Mpc_Tensor:$output);
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Mpc_RandomOp : Mpc_Op<"random", "Exempt", [Pure, Mpc_IsBesideNetwork]> {
  let summary = "Random f32 values that depend on the seed, the stream and the element alone.";
  let description = [{
    Philox-4x32-10 with key = seed and counter = (element block, 0, stream). `uniform` draws from [a, b); `normal` has
    mean `a` and deviation `b`; `truncated_normal` is the same, redrawn until within two deviations of the mean.

    ```mlir
    %weight = mpc.random %seed {distribution = uniform, a = -1.0, b = 1.0, shape = [2, 3]}
        : (tensor<i64>) -> tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Mpc_I64Tensor:$seed, Mpc_DistributionAttr:$distribution,
                       Mpc_Float<"0.0f">:$a, Mpc_Upper:$b, Mpc_Int<"0">:$stream, DenseI64ArrayAttr:$shape);
  let results = (outs Mpc_F32Tensor:$output);
}

def Mpc_IotaOp : Mpc_Op<"iota", "Exempt", [Pure, Mpc_IsBesideNetwork]> {
  let summary = "Equally spaced numbers along an axis.";
  let description = [{
    y = start + step * i at index i of the axis, whatever the other indices are. The element type is that of the result,
    whatever the level says. f32 rounds once, to nearest even; the integers i32 and i64 must hold every number.

    ```mlir
    %y = mpc.iota {shape = [2, 3], start = 10, step = 5} : () -> tensor<2x3xi32>
    // %y = [[10, 15, 20], [10, 15, 20]]
    ```
  }];
  let arguments = (ins DenseI64ArrayAttr:$shape, Mpc_LastAxis:$axis, Mpc_Int<"0">:$start, Mpc_Int<"1">:$step);
  let results = (outs Mpc_CountTensor:$y);
  let hasVerifier = 1;
}

//===-- Element by element ---------------------------------------------------------------------------------------===//

class Mpc_UnaryOp<string mnemonic, string ampClass, string formula, list<Trait> properties = [],
                  list<Trait> fusible = [Mpc_Elementwise]>
    : Mpc_DifferentiableOp<mnemonic, ampClass, [Mpc_IsElementwise] # properties # fusible> {
  let summary = "Element-wise " # formula # ".";
  let description = [{
    y = }] # formula # [{, computed in f32 and rounded once.

    ```mlir
    }] # Mpc_ExampleOf<mnemonic, ["x"], "y", exampleValues>.text # [{
    ```
  }];
  let alike = 1;
  let arguments = (ins Mpc_FloatTensor:$x);
  let results = (outs Mpc_FloatTensor:$y);
}

// The derivative is an operation of the cotangent and of the operand, or of the result.
class Mpc_UnaryOpFromX<string mnemonic, string ampClass, string formula, string gradient, list<Trait> properties = [],
                       list<Trait> fusible = [Mpc_Elementwise]>
    : Mpc_UnaryOp<mnemonic, ampClass, formula, properties, fusible> {
  let gradientOp = gradient;
  let gradientReads = "getX()";
}
class Mpc_UnaryOpFromY<string mnemonic, string ampClass, string formula, string gradient, list<Trait> properties = []>
    : Mpc_UnaryOp<mnemonic, ampClass, formula, properties> {
  let gradientOp = gradient;
  let gradientReads = "getY()";
}

def Mpc_ReluOp
    : Mpc_UnaryOpFromY<"relu", "Clear", "max(x, 0)", "ReluGradOp", [Mpc_SelectsValues, Mpc_IsSimpleArithmetic]> {
  let description = [{
    y = x where x > 0 and +0 where x <= 0, -0 included; NaN stays NaN. This is `maximum(x, +0)` of IEEE 754-2019. So relu
    commutes with rounding, with widening and with the largest of several values, the signs of zeros included.

    ```mlir
    %x = mpc.constant {value = dense<[-2.0, 0.0, 3.0]> : tensor<3xf32>} : () -> tensor<3xf32>
    %y = mpc.relu %x : tensor<3xf32>
    // %y = [0.0, 0.0, 3.0]
    ```
  }];
}
def Mpc_SigmoidOp : Mpc_UnaryOpFromY<"sigmoid", "Infer", "1 / (1 + exp(-x))", "SigmoidGradOp", [Mpc_IsExpensive]> {
  let exampleValues = ["[-1.0, 0.0, 1.0]", "[0.268941432, 0.5, 0.731058598]"];
}
def Mpc_TanhOp : Mpc_UnaryOpFromY<"tanh", "Infer", "tanh(x)", "TanhGradOp", [Mpc_IsExpensive]> {
  let exampleValues = ["[-1.0, 0.0, 1.0]", "[-0.761594176, 0.0, 0.761594176]"];
}
// dx = dy * y.
def Mpc_ExpOp : Mpc_UnaryOpFromY<"exp", "Deny", "exp(x)", "MulOp", [Mpc_IsArithmetic, Mpc_IsExpensive]> {
  let exampleValues = ["[-1.0, 0.0, 1.0]", "[0.36787945, 1.0, 2.71828175]"];
}
// dx = dy / x.
def Mpc_LogOp : Mpc_UnaryOpFromX<"log", "Deny", "log(x)", "DivOp", [Mpc_IsArithmetic, Mpc_IsExpensive]> {
  let exampleValues = ["[1.0, 2.0, 4.0]", "[0.0, 0.693147182, 1.38629436]"];
}
def Mpc_SqrtOp : Mpc_UnaryOpFromY<"sqrt", "Infer", "sqrt(x)", "SqrtGradOp"> {
  let exampleValues = ["[1.0, 4.0, 9.0]", "[1.0, 2.0, 3.0]"];
}
def Mpc_NegOp : Mpc_UnaryOp<"neg", "Clear", "-x", [Mpc_HandsOnValue, Mpc_SelectsValues]> {
  let exampleValues = ["[-2.0, 1.5, 3.0]", "[2.0, -1.5, -3.0]"];
  let gradientOp = "NegOp";
}

class Mpc_UnaryGradOp<string mnemonic, string formula>
    : Mpc_DifferentiableGradientOp<mnemonic, [Mpc_Elementwise, Mpc_IsElementwise]> {
  let summary = "Derivative of the operation of the same name: " # formula # ".";
  let description = [{
    dx = }] # formula # [{ from the forward result y, computed in f32 and rounded once.

    ```mlir
    }] # Mpc_ExampleOf<mnemonic, ["dy", "y"], "dx", exampleValues>.text # [{
    ```
  }];
  let alike = 1;
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$y);
  let results = (outs Mpc_FloatTensor:$dx);
}

def Mpc_ReluGradOp : Mpc_UnaryGradOp<"relu_grad", "y > 0 ? dy : 0"> {
  let exampleValues = ["[1.0, 2.0, 3.0]", "[0.0, 0.0, 3.0]", "[0.0, 0.0, 3.0]"];
}
def Mpc_SigmoidGradOp : Mpc_UnaryGradOp<"sigmoid_grad", "dy * y * (1 - y)"> {
  let exampleValues = ["[4.0, 16.0, 4.0]", "[0.5, 0.25, 1.0]", "[1.0, 3.0, 0.0]"];
}
def Mpc_TanhGradOp : Mpc_UnaryGradOp<"tanh_grad", "dy * (1 - y * y)"> {
  let exampleValues = ["[4.0, 4.0, 4.0]", "[0.0, 0.5, -1.0]", "[4.0, 3.0, 0.0]"];
}
def Mpc_SqrtGradOp : Mpc_UnaryGradOp<"sqrt_grad", "dy / (2 * y)"> {
  let exampleValues = ["[1.0, 1.0, 3.0]", "[1.0, 2.0, 3.0]", "[0.5, 0.25, 0.5]"];
}

class Mpc_BinaryOp<string mnemonic, string ampClass, string formula, list<Trait> properties>
    : Mpc_DifferentiableOp<mnemonic, ampClass,
                           [Mpc_Elementwise, Mpc_IsElementwise, Mpc_IsArithmetic] # properties> {
  let summary = "Element-wise " # formula # ", with broadcasting.";
  let description = [{
    y = }] # formula # [{, computed in f32 and rounded once. Shapes are aligned at the right; an extent of 1 stretches.

    ```mlir
    }] # Mpc_ExampleOf<mnemonic, ["a", "b"], "y", exampleValues, ["tensor<3xf32>", "tensor<f32>"]>.text # [{
    ```
  }];
  let inference = "inferBroadcast";
  let arguments = (ins Mpc_FloatTensor:$a, Mpc_FloatTensor:$b);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_AddOp : Mpc_BinaryOp<"add", "Infer", "a + b", [Mpc_IsSimpleArithmetic, Mpc_SumsGradients]> {
  let exampleValues = ["[1.0, 2.0, 3.0]", "10.0", "[11.0, 12.0, 13.0]"];
}
def Mpc_SubOp : Mpc_BinaryOp<"sub", "Infer", "a - b", [Mpc_IsSimpleArithmetic, Mpc_SumsGradients]> {
  let exampleValues = ["[1.0, 2.0, 3.0]", "10.0", "[-9.0, -8.0, -7.0]"];
}
def Mpc_MulOp : Mpc_BinaryOp<"mul", "Infer", "a * b", [Mpc_IsSimpleArithmetic, Mpc_IsProductOrQuotient]> {
  let exampleValues = ["[1.0, 2.0, 3.0]", "10.0", "[10.0, 20.0, 30.0]"];
}
def Mpc_DivOp : Mpc_BinaryOp<"div", "Infer", "a / b", [Mpc_IsProductOrQuotient]> {
  let exampleValues = ["[1.0, 2.0, 3.0]", "2.0", "[0.5, 1.0, 1.5]"];
}
def Mpc_MaximumOp : Mpc_BinaryOp<"maximum", "Clear", "max(a, b), NaN if either is", [Mpc_SelectsValues]> {
  let exampleValues = ["[1.0, 5.0, 3.0]", "3.0", "[3.0, 5.0, 3.0]"];
}

def Mpc_DivGradOp : Mpc_DifferentiableGradientOp<"div_grad", [Mpc_Elementwise, Mpc_IsElementwise]> {
  let summary = "Derivative of div by its divisor, before broadcasting is undone.";
  let description = [{
    db = -dy * y / b, with b broadcast to dy; computed in f32 and rounded once.

    ```mlir
    %dy = mpc.constant {value = dense<1.0> : tensor<2xf32>} : () -> tensor<2xf32>
    %y = mpc.constant {value = dense<[3.0, 0.5]> : tensor<2xf32>} : () -> tensor<2xf32>
    %b = mpc.constant {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
    %db = mpc.div_grad %dy, %y, %b : (tensor<2xf32>, tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
    // %db = [-1.5, -0.25]
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$y, Mpc_FloatTensor:$b);
  let results = (outs Mpc_FloatTensor:$db);
}

def Mpc_MaximumGradOp : Mpc_DifferentiableGradientOp<"maximum_grad", [Mpc_Elementwise, Mpc_IsElementwise]> {
  let summary = "Derivative of maximum, before broadcasting is undone.";
  let description = [{
    The larger operand receives dy; equal operands receive half of it each.

    ```mlir
    %dy = mpc.constant {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>} : () -> tensor<3xf32>
    %a = mpc.constant {value = dense<[1.0, 5.0, 3.0]> : tensor<3xf32>} : () -> tensor<3xf32>
    %b = mpc.constant {value = dense<3.0> : tensor<f32>} : () -> tensor<f32>
    %da, %db = mpc.maximum_grad %dy, %a, %b
        : (tensor<3xf32>, tensor<3xf32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>)
    // %da = [0.0, 2.0, 1.5]
    // %db = [1.0, 0.0, 1.5]
    ```
  }];
  let inference = "inferExtremumGrad";
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$a, Mpc_FloatTensor:$b);
  let results = (outs Mpc_FloatTensor:$da, Mpc_FloatTensor:$db);
}

class Mpc_ScalarOp<string mnemonic, string formula>
    : Mpc_DifferentiableOp<mnemonic, "Infer", [Mpc_Elementwise, Mpc_IsElementwise, Mpc_IsArithmetic]> {
  let summary = "Element-wise " # formula # " with an f32 constant.";
  let description = [{
    y = }] # formula # [{, computed in f32 and rounded once; the constant never becomes low.

    ```mlir}] # example # [{  ```
  }];
  let alike = 1;
  let arguments = (ins Mpc_FloatTensor:$x, F32Attr:$value);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_AddScalarOp : Mpc_ScalarOp<"add_scalar", "x + value"> {
  let example = [{
    %x = mpc.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %y = mpc.add_scalar %x {value = 0.5} : tensor<2xf32>
    // %y = [1.5, 2.5]
  }];
}
def Mpc_MulScalarOp : Mpc_ScalarOp<"mul_scalar", "x * value"> {
  let example = [{
    %x = mpc.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %y = mpc.mul_scalar %x {value = 0.5} : tensor<2xf32>
    // %y = [0.5, 1.0]
  }];
  let gradientOp = "MulScalarOp";
  let gradientReads = "getValueAttr()";
}

def Mpc_SumNOp
    : Mpc_DifferentiableOp<"sum_n", "Infer",
                           [Mpc_Elementwise, Mpc_IsElementwise, Mpc_IsArithmetic, Mpc_SumsGradients]> {
  let summary = "Sum of several tensors of one shape: added in f32, rounded once.";
  let description = [{
    y = x_0 + x_1 + ... in operand order. Autodiff adds the cotangents of several uses with it.

    ```mlir
    %dx0 = mpc.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %dx1 = mpc.constant {value = dense<[10.0, 20.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %dx2 = mpc.constant {value = dense<[100.0, 200.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %dx = mpc.sum_n %dx0, %dx1, %dx2 : tensor<2xf32>
    // %dx = [111.0, 222.0]
    ```
  }];
  let arguments = (ins Variadic<Mpc_FloatTensor>:$inputs);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_EqualOp : Mpc_Op<"equal", "Clear", [Pure, Mpc_Elementwise, Mpc_IsElementwise]> {
  let summary = "Element-wise a == b, with broadcasting.";
  let description = [{
    Compares exact values; NaN equals nothing.

    ```mlir
    %label = mpc.constant {value = dense<[1, 2, 3]> : tensor<3xi32>} : () -> tensor<3xi32>
    %ignored = mpc.constant {value = dense<2> : tensor<i32>} : () -> tensor<i32>
    %y = mpc.equal %label, %ignored : (tensor<3xi32>, tensor<i32>) -> tensor<3xi1>
    // %y = [false, true, false]
    ```
  }];
  let inference = "inferComparison";
  let arguments = (ins Mpc_NumberTensor:$a, Mpc_NumberTensor:$b);
  let results = (outs Mpc_BoolTensor:$y);
}

def Mpc_SelectOp
    : Mpc_Op<"select", "Clear", [Pure, Mpc_Elementwise, Mpc_IsElementwise, Mpc_IsDataMovement]> {
  let summary = "a where the condition holds, else b.";
  let description = [{
    The condition is a scalar or has the shape of a and b. Writes the bits of the chosen operand.

    ```mlir
    %finite = mpc.constant {value = dense<false> : tensor<i1>} : () -> tensor<i1>
    %new = mpc.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %old = mpc.constant {value = dense<[3.0, 4.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %y = mpc.select %finite, %new, %old : (tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    // %y = [3.0, 4.0]
    ```
  }];
  let arguments = (ins Mpc_BoolTensor:$condition, Mpc_Tensor:$a, Mpc_Tensor:$b);
  let results = (outs Mpc_Tensor:$y);
}

// Some types are stored, but nothing computes in them or moves them yet.
def Mpc_StoredTensor : Mpc_TensorOf<[F32, F16, BF16, F64, F8E4M3FN, F8E5M2, I8, I32, I64, I1]>;

def Mpc_CastOp
    : Mpc_DifferentiableOp<"cast", "Exempt",
                           [Mpc_ElementwiseInSpace, Mpc_IsElementwise, Mpc_KeepsScale, Mpc_PreparesUpdate]> {
  let summary = "The same values in another element type.";
  let description = [{
    Between floating types widening is exact and narrowing rounds to nearest even. To an integer it truncates towards
    zero and saturates. What lies beyond the integer's range becomes the nearest limit, also infinities and wider
    integers. NaN becomes 0. From an integer it rounds once, to nearest even. To i1 it asks whether the element differs
    from 0, as NaN does; from i1 it gives 0 or 1.

    f8E4M3FN and f8E5M2 are types that nothing but casts reads or writes. What rounds beyond the largest value of
    f8E4M3FN, 448, becomes NaN, since it has no infinities; f8E5M2 has them. So far the reference alone casts them, and
    no derivative goes through them.

    `user = true` marks a cast that the user wrote: its rounding is never removed. The derivative of a cast is a cast.

    Folds: a cast to the type it has; trunc(ext(x)) of one type. ext(trunc(x)) is never folded.

    ```mlir
    %x = mpc.constant {value = dense<[2.75, -300.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %y = mpc.cast %x : (tensor<2xf32>) -> tensor<2xi8>
    // %y = [2, -128]
    ```
  }];
  let alike = 1;
  let arguments = (ins Mpc_StoredTensor:$x, Mpc_Flag:$user);
  let results = (outs Mpc_StoredTensor:$y);
  let hasFolder = 1;
}

def Mpc_StopGradientOp
    : Mpc_DifferentiableOp<"stop_gradient", "Clear",
                           [Mpc_Elementwise, Mpc_IsElementwise, Mpc_HandsOnValue, Mpc_SelectsValues, Mpc_KeepsScale]> {
  let summary = "Identity with a zero derivative.";
  let description = [{
    Autodiff treats the result as a constant. Integers and truth values, which are constants, may be operands, too.

    ```mlir
    %x = mpc.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %y = mpc.stop_gradient %x : tensor<2xf32>
    // %y = [1.0, 2.0]
    ```
  }];
  let alike = 1;
  let arguments = (ins Mpc_Tensor:$x);
  let results = (outs Mpc_Tensor:$y);
}

def Mpc_DropoutOp : Mpc_DifferentiableOp<"dropout", "Infer", [Mpc_Elementwise, Mpc_IsExpensive]> {
  let summary = "Zeroes elements with probability `p` and scales the rest by 1 / (1 - p).";
  let description = [{
    The mask is Philox: key = seed, counter = (element / 4, step, call_site). It depends on nothing else, so that the
    derivative (`mpc.dropout` on the cotangent) draws it again instead of saving it.

    ```mlir
    %y = mpc.dropout %x, %seed, %step {p = 0.5} : (tensor<4x8xf32>, tensor<i64>, tensor<i32>) -> tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$x, Mpc_I64Tensor:$seed, Mpc_I32Tensor:$step,
                       F32Attr:$p, Mpc_Int<"0">:$call_site);
  let results = (outs Mpc_FloatTensor:$y);
}

//===-- Data movement --------------------------------------------------------------------------------------------===//

// The properties of movement: the same elements in another shape or order, or several times.
defvar Mpc_Moves = [Mpc_IsDataMovement, Mpc_IsMovement, Mpc_HandsOnValue, Mpc_KeepsScale];

def Mpc_ReshapeOp
    : Mpc_DifferentiableOp<"reshape", "Clear",
                           Mpc_Moves # [Mpc_ReordersElements, DeclareOpInterfaceMethods<ViewLikeOpInterface>]> {
  let summary = "The same elements in row-major order under another shape.";
  let description = [{
    The element counts agree. In the IR every extent of `shape` is explicit.

    ```mlir
    %x = mpc.constant {value = dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
    %y = mpc.reshape %x {shape = [3, 2]} : (tensor<2x3xf32>) -> tensor<3x2xf32>
    // %y = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    ```
  }];
  let arguments = (ins Mpc_Tensor:$x, DenseI64ArrayAttr:$shape);
  let results = (outs Mpc_Tensor:$y);
  let hasFolder = 1;
}

def Mpc_TransposeOp : Mpc_DifferentiableOp<"transpose", "Clear", Mpc_Moves # [Mpc_ReordersElements]> {
  let summary = "Permutes axes: result axis i is operand axis permutation[i].";
  let description = [{
    `permutation` names every axis once.

    ```mlir
    %x = mpc.constant {value = dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
    %y = mpc.transpose %x {permutation = [1, 0]} : (tensor<2x3xf32>) -> tensor<3x2xf32>
    // %y = [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
    ```
  }];
  let arguments = (ins Mpc_Tensor:$x, DenseI64ArrayAttr:$permutation);
  let results = (outs Mpc_Tensor:$y);
  let hasFolder = 1;
}

def Mpc_BroadcastToOp : Mpc_DifferentiableOp<"broadcast_to", "Clear", Mpc_Moves # [Mpc_Elementwise]> {
  let summary = "Stretches extents of 1 and missing leading axes to `shape`.";
  let description = [{
    Shapes are aligned at the right.

    ```mlir
    %x = mpc.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %y = mpc.broadcast_to %x {shape = [2, 2]} : (tensor<2xf32>) -> tensor<2x2xf32>
    // %y = [[1.0, 2.0], [1.0, 2.0]]
    ```
  }];
  let arguments = (ins Mpc_Tensor:$x, DenseI64ArrayAttr:$shape);
  let results = (outs Mpc_Tensor:$y);
}

//===-- Reductions -----------------------------------------------------------------------------------------------===//

class Mpc_ReductionOp<string mnemonic, string what>
    : Mpc_DifferentiableOp<mnemonic, "Deny", [Mpc_Reducing, Mpc_IsArithmetic, Mpc_IsSum, Mpc_ReductionInterface]> {
  let summary = what # " over the given axes.";
  let description = [{
    Accumulates in f32 and rounds once. Axes are distinct and not negative; none means all.

    ```mlir}] # example # [{  ```
  }];
  let arguments = (ins Mpc_FloatTensor:$x, DenseI64ArrayAttr:$axes, Mpc_Flag:$keep_dims);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_ReduceSumOp : Mpc_ReductionOp<"reduce_sum", "Sum"> {
  let example = [{
    %x = mpc.constant {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
    %y = mpc.reduce_sum %x {axes = [1]} : (tensor<2x2xf32>) -> tensor<2xf32>
    // %y = [3.0, 7.0]
  }];
}
def Mpc_ReduceMeanOp : Mpc_ReductionOp<"reduce_mean", "Mean"> {
  let example = [{
    %x = mpc.constant {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
    %y = mpc.reduce_mean %x {axes = [0]} : (tensor<2x2xf32>) -> tensor<2xf32>
    // %y = [2.0, 3.0]
  }];
}

def Mpc_ArgmaxOp : Mpc_Op<"argmax", "Clear", [Pure]> {
  let summary = "Index of the largest element along an axis; the first of equals.";
  let description = [{
    The axis disappears from the shape. A NaN counts as the largest value.

    ```mlir
    %x = mpc.constant {value = dense<[[1.0, 5.0, 5.0], [9.0, 2.0, 3.0]]> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
    %y = mpc.argmax %x {axis = 1} : (tensor<2x3xf32>) -> tensor<2xi32>
    // %y = [1, 0]
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$x, Mpc_LastAxis:$axis);
  let results = (outs Mpc_I32Tensor:$y);
}

#endif
