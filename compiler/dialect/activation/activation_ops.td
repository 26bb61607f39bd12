// Activation functions and other element-wise functions with a derivative of their own.
#ifndef MPC_ACTIVATION_OPS_TD
#define MPC_ACTIVATION_OPS_TD

include "compiler/dialect/elementwise/elementwise_ops.td"

// The derivative of a unary operation from its operand.
class Mpc_UnaryInputGradOp<string mnemonic, string formula, list<Trait> properties = [],
                           list<Trait> fusible = [Mpc_Elementwise]>
    : Mpc_DifferentiableGradientOp<mnemonic, [Mpc_IsElementwise] # properties # fusible> {
  let summary = "Derivative of the operation of the same name: " # formula # ".";
  let description = [{
    dx = }] # formula # [{ from the forward operand x, computed in f32 and rounded once.

    ```mlir
    }] # Mpc_ExampleOf<mnemonic, ["dy", "x"], "dx", exampleValues>.text # [{
    ```
  }];
  let alike = 1;
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$x);
  let results = (outs Mpc_FloatTensor:$dx);
}

def Mpc_AbsOp : Mpc_UnaryOpFromX<"abs", "Clear", "|x|", "AbsGradOp", [Mpc_SelectsValues]> {
  let exampleValues = ["[-2.0, 0.0, 3.0]", "[2.0, 0.0, 3.0]"];
}
def Mpc_FloorOp : Mpc_UnaryOp<"floor", "Clear", "the largest integer <= x; its derivative is zero"> {
  let exampleValues = ["[-1.5, 0.5, 2.0]", "[-2.0, 0.0, 2.0]"];
}
def Mpc_SquareOp : Mpc_UnaryOpFromX<"square", "Deny", "x * x", "SquareGradOp", [Mpc_IsArithmetic]> {
  let exampleValues = ["[-2.0, 0.5, 3.0]", "[4.0, 0.25, 9.0]"];
}
def Mpc_Log1pOp : Mpc_UnaryOpFromX<"log1p", "Deny", "log(1 + x)", "Log1pGradOp", [Mpc_IsArithmetic, Mpc_IsExpensive]> {
  let exampleValues = ["[0.0, 1.0, 3.0]", "[0.0, 0.693147182, 1.38629436]"];
}
def Mpc_SinOp : Mpc_UnaryOpFromX<"sin", "Deny", "sin(x)", "SinGradOp", [Mpc_IsArithmetic], []> {
  let exampleValues = ["[0.0, 1.0, -1.0]", "[0.0, 0.841470957, -0.841470957]"];
}
def Mpc_CosOp : Mpc_UnaryOpFromX<"cos", "Deny", "cos(x)", "CosGradOp", [Mpc_IsArithmetic], []> {
  let exampleValues = ["[0.0, 1.0, -1.0]", "[1.0, 0.540302277, 0.540302277]"];
}
def Mpc_SiluOp : Mpc_UnaryOpFromX<"silu", "Infer", "x / (1 + exp(-x))", "SiluGradOp", [Mpc_IsExpensive]> {
  let exampleValues = ["[-1.0, 0.0, 1.0]", "[-0.268941432, 0.0, 0.731058598]"];
}

def Mpc_AbsGradOp : Mpc_UnaryInputGradOp<"abs_grad", "dy * sign(x), 0 at 0"> {
  let exampleValues = ["[5.0, 6.0, 7.0]", "[-2.0, 0.0, 3.0]", "[-5.0, 0.0, 7.0]"];
}
def Mpc_SquareGradOp : Mpc_UnaryInputGradOp<"square_grad", "2 * dy * x"> {
  let exampleValues = ["[1.0, 2.0, 3.0]", "[-2.0, 0.5, 3.0]", "[-4.0, 2.0, 18.0]"];
}
def Mpc_Log1pGradOp : Mpc_UnaryInputGradOp<"log1p_grad", "dy / (1 + x)"> {
  let exampleValues = ["[1.0, 1.0, 2.0]", "[0.0, 1.0, 3.0]", "[1.0, 0.5, 0.5]"];
}
def Mpc_SinGradOp : Mpc_UnaryInputGradOp<"sin_grad", "dy * cos(x)", [], []> {
  let exampleValues = ["[2.0, 1.0, 1.0]", "[0.0, 1.0, -1.0]", "[2.0, 0.540302277, 0.540302277]"];
}
def Mpc_CosGradOp : Mpc_UnaryInputGradOp<"cos_grad", "-dy * sin(x)", [], []> {
  let exampleValues = ["[1.0, 1.0, 2.0]", "[1.0, -1.0, 1.0]", "[-0.841470957, 0.841470957, -1.68294191]"];
}
def Mpc_SiluGradOp
    : Mpc_UnaryInputGradOp<"silu_grad", "dy * s * (1 + x * (1 - s)), s = 1 / (1 + exp(-x))", [Mpc_IsExpensive]> {
  let exampleValues = ["[1.0, 2.0, 1.0]", "[-1.0, 0.0, 1.0]", "[0.0723294913, 1.0, 0.927670538]"];
}

// Howard et al. 2019, "Searching for MobileNetV3".
def Mpc_HardSwishOp
    : Mpc_UnaryOpFromX<"hard_swish", "Infer", "x * min(max(x + 3, 0), 6) / 6", "HardSwishGradOp",
                       [Mpc_IsGeneratedOnCpu]> {
  let exampleValues = ["[-1.5, 3.0, 6.0]", "[-0.375, 3.0, 6.0]"];
}
def Mpc_HardSwishGradOp
    : Mpc_UnaryInputGradOp<"hard_swish_grad", "0 where x <= -3, dy where x >= 3, dy * (2 * x + 3) / 6 between",
                           [Mpc_IsGeneratedOnCpu]> {
  let exampleValues = ["[2.0, 2.0, 2.0]", "[-4.0, 0.0, 4.0]", "[0.0, 1.0, 2.0]"];
}

def Mpc_ErfOp : Mpc_UnaryOpFromX<"erf", "Infer", "erf(x)", "ErfGradOp", [Mpc_IsExpensive, Mpc_IsGeneratedOnCpu]> {
  let exampleValues = ["[-1.0, 0.0, 2.0]", "[-0.842700779, 0.0, 0.995322287]"];
}
def Mpc_ErfGradOp
    : Mpc_UnaryInputGradOp<"erf_grad", "dy * 2 / sqrt(pi) * exp(-x * x)", [Mpc_IsExpensive, Mpc_IsGeneratedOnCpu]> {
  let exampleValues = ["[1.0, 2.0, 1.0]", "[-1.0, 0.0, 2.0]", "[0.415107489, 2.25675845, 0.0206669848]"];
}

def Mpc_GeluOp : Mpc_DifferentiableOp<"gelu", "Infer", [Mpc_Elementwise, Mpc_IsElementwise, Mpc_IsExpensive]> {
  let summary = "Gaussian error linear unit (Hendrycks and Gimpel 2016).";
  let description = [{
    `approximate = "none"`: y = x / 2 * (1 + erf(x / sqrt 2)). `"tanh"`:
    y = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))). Computed in f32 and rounded once.

    ```mlir
    %x = mpc.constant {value = dense<[-1.0, 0.0, 1.0]> : tensor<3xf32>} : () -> tensor<3xf32>
    %y = mpc.gelu %x : tensor<3xf32>
    // %y = [-0.158655254, 0.0, 0.841344746]
    ```
  }];
  let gradientOp = "GeluGradOp";
  let gradientReads = "getX(), getApproximateAttr()";
  let arguments = (ins Mpc_FloatTensor:$x, Mpc_Approximation:$approximate);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_GeluGradOp : Mpc_DifferentiableGradientOp<"gelu_grad", [Mpc_Elementwise, Mpc_IsElementwise, Mpc_IsExpensive]> {
  let summary = "Derivative of gelu from its operand.";
  let description = [{
    The derivative of the form that `approximate` names, computed in f32 and rounded once.

    ```mlir
    %dy = mpc.constant {value = dense<[2.0, -4.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %x = mpc.constant {value = dense<0.0> : tensor<2xf32>} : () -> tensor<2xf32>
    %dx = mpc.gelu_grad %dy, %x {approximate = tanh} : tensor<2xf32>
    // %dx = [1.0, -2.0]
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$x, Mpc_Approximation:$approximate);
  let results = (outs Mpc_FloatTensor:$dx);
}

def Mpc_LeakyReluOp : Mpc_DifferentiableOp<"leaky_relu", "Infer", [Mpc_Elementwise, Mpc_IsElementwise]> {
  let summary = "x where x > 0, else alpha * x.";
  let description = [{
    Computed in f32 and rounded once.

    ```mlir
    %x = mpc.constant {value = dense<[-2.0, 4.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %y = mpc.leaky_relu %x {alpha = 0.25} : tensor<2xf32>
    // %y = [-0.5, 4.0]
    ```
  }];
  let alike = 1;
  let gradientOp = "LeakyReluGradOp";
  let gradientReads = "getX(), getAlphaAttr()";
  let arguments = (ins Mpc_FloatTensor:$x, Mpc_Slope:$alpha);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_LeakyReluGradOp : Mpc_DifferentiableGradientOp<"leaky_relu_grad", [Mpc_Elementwise, Mpc_IsElementwise]> {
  let summary = "dy where x > 0, else alpha * dy.";
  let description = [{
    Computed in f32 and rounded once.

    ```mlir
    %dy = mpc.constant {value = dense<[1.0, 1.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %x = mpc.constant {value = dense<[-2.0, 4.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %dx = mpc.leaky_relu_grad %dy, %x {alpha = 0.25} : tensor<2xf32>
    // %dx = [0.25, 1.0]
    ```
  }];
  let alike = 1;
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$x, Mpc_Slope:$alpha);
  let results = (outs Mpc_FloatTensor:$dx);
}

def Mpc_PreluOp : Mpc_DifferentiableOp<"prelu", "Allow", [Mpc_ElementwiseInSpace, Mpc_Image]> {
  let summary = "x where x > 0, else a learned slope times x.";
  let description = [{
    x: [N, C, ...]; alpha: [C], one slope a channel, or [1], one for all. The channel is axis 1, or the last axis where
    `data_format` is NHWC and x has rank 4.

    ```mlir
    %x = mpc.constant {value = dense<[[-1.0, 2.0], [3.0, -4.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
    %alpha = mpc.constant {value = dense<[0.5, 0.25]> : tensor<2xf32>} : () -> tensor<2xf32>
    %y = mpc.prelu %x, %alpha : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
    // %y = [[-0.5, 2.0], [3.0, -1.0]]
    ```
  }];
  let imageOperands = [0];
  let imageResults = [0];
  let arguments = (ins Mpc_FloatTensor:$x, Mpc_FloatTensor:$alpha, Mpc_DataFormat:$data_format);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_PreluGradOp : Mpc_DifferentiableGradientOp<"prelu_grad", [Mpc_Reducing, Mpc_Image]> {
  let summary = "Derivatives of prelu by x and alpha.";
  let description = [{
    dx = x > 0 ? dy : alpha * dy; dalpha = sum of dy * x over the elements with x <= 0 that share a slope, accumulated
    in f32 and rounded once.

    ```mlir
    %dy = mpc.constant {value = dense<1.0> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
    %x = mpc.constant {value = dense<[[-1.0, 2.0], [3.0, -4.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
    %alpha = mpc.constant {value = dense<[0.5, 0.25]> : tensor<2xf32>} : () -> tensor<2xf32>
    %dx, %dalpha = mpc.prelu_grad %dy, %x, %alpha
        : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>)
    // %dx = [[0.5, 1.0], [1.0, 0.25]]
    // %dalpha = [-1.0, -4.0]
    ```
  }];
  let imageOperands = [0, 1];
  let imageResults = [0];
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$x, Mpc_FloatTensor:$alpha, Mpc_DataFormat:$data_format);
  let results = (outs Mpc_FloatTensor:$dx, Mpc_FloatTensor:$dalpha);
}

def Mpc_PowOp : Mpc_DifferentiableOp<"pow", "Deny", [Mpc_IsElementwise, Mpc_IsArithmetic, Mpc_IsExpensive]> {
  let summary = "x raised to a constant exponent.";
  let description = [{
    y = x^exponent in f32, rounded once; a negative x with a fractional exponent gives NaN. The exponent is finite.

    ```mlir
    %x = mpc.constant {value = dense<[1.0, 4.0, 9.0]> : tensor<3xf32>} : () -> tensor<3xf32>
    %y = mpc.pow %x {exponent = 0.5} : tensor<3xf32>
    // %y = [1.0, 2.0, 3.0]
    ```
  }];
  let alike = 1;
  let gradientOp = "PowGradOp";
  let gradientReads = "getX(), getExponentAttr()";
  let arguments = (ins Mpc_FloatTensor:$x, F32Attr:$exponent);
  let results = (outs Mpc_FloatTensor:$y);
  let hasVerifier = 1;
}

def Mpc_PowGradOp : Mpc_DifferentiableGradientOp<"pow_grad", [Mpc_IsElementwise, Mpc_IsExpensive]> {
  let summary = "dy * exponent * x^(exponent - 1).";
  let description = [{
    Zero where the exponent is zero. Computed in f32 and rounded once. The exponent is finite.

    ```mlir
    %dy = mpc.constant {value = dense<1.0> : tensor<3xf32>} : () -> tensor<3xf32>
    %x = mpc.constant {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>} : () -> tensor<3xf32>
    %dx = mpc.pow_grad %dy, %x {exponent = 2.0} : tensor<3xf32>
    // %dx = [2.0, 4.0, 6.0]
    ```
  }];
  let alike = 1;
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$x, F32Attr:$exponent);
  let results = (outs Mpc_FloatTensor:$dx);
  let hasVerifier = 1;
}

def Mpc_ClampOp : Mpc_DifferentiableOp<"clamp", "Clear", [Mpc_Elementwise, Mpc_IsElementwise]> {
  let summary = "x limited to [minimum, maximum].";
  let description = [{
    A NaN stays. The limits are f32 constants, rounded with the result.

    ```mlir
    %x = mpc.constant {value = dense<[-1.0, 0.5, 7.0]> : tensor<3xf32>} : () -> tensor<3xf32>
    %y = mpc.clamp %x {minimum = 0.0, maximum = 6.0} : tensor<3xf32>
    // %y = [0.0, 0.5, 6.0]
    ```
  }];
  let alike = 1;
  let gradientOp = "ClampGradOp";
  let gradientReads = "getX(), getMinimumAttr(), getMaximumAttr()";
  let arguments = (ins Mpc_FloatTensor:$x, F32Attr:$minimum, F32Attr:$maximum);
  let results = (outs Mpc_FloatTensor:$y);
  let hasVerifier = 1;
}

def Mpc_ClampGradOp : Mpc_DifferentiableGradientOp<"clamp_grad", [Mpc_Elementwise, Mpc_IsElementwise]> {
  let summary = "dy where minimum <= x <= maximum, else 0.";
  let description = [{
    The limits count as inside.

    ```mlir
    %dy = mpc.constant {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>} : () -> tensor<3xf32>
    %x = mpc.constant {value = dense<[-1.0, 0.5, 7.0]> : tensor<3xf32>} : () -> tensor<3xf32>
    %dx = mpc.clamp_grad %dy, %x {minimum = 0.0, maximum = 6.0}
        : tensor<3xf32>
    // %dx = [0.0, 2.0, 0.0]
    ```
  }];
  let alike = 1;
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$x, F32Attr:$minimum, F32Attr:$maximum);
  let results = (outs Mpc_FloatTensor:$dx);
}

def Mpc_MinimumOp : Mpc_BinaryOp<"minimum", "Clear", "min(a, b), NaN if either is", [Mpc_SelectsValues]> {
  let exampleValues = ["[1.0, 5.0, 3.0]", "3.0", "[1.0, 3.0, 3.0]"];
}

def Mpc_MinimumGradOp : Mpc_DifferentiableGradientOp<"minimum_grad", [Mpc_Elementwise, Mpc_IsElementwise]> {
  let summary = "Derivative of minimum, before broadcasting is undone.";
  let description = [{
    The smaller operand receives dy; equal operands receive half of it each.

    ```mlir
    %dy = mpc.constant {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>} : () -> tensor<3xf32>
    %a = mpc.constant {value = dense<[1.0, 5.0, 3.0]> : tensor<3xf32>} : () -> tensor<3xf32>
    %b = mpc.constant {value = dense<3.0> : tensor<f32>} : () -> tensor<f32>
    %da, %db = mpc.minimum_grad %dy, %a, %b
        : (tensor<3xf32>, tensor<3xf32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>)
    // %da = [1.0, 0.0, 1.5]
    // %db = [0.0, 2.0, 1.5]
    ```
  }];
  let inference = "inferExtremumGrad";
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$a, Mpc_FloatTensor:$b);
  let results = (outs Mpc_FloatTensor:$da, Mpc_FloatTensor:$db);
}

class Mpc_ComparisonOp<string mnemonic, string formula, string ofNan = "false">
    : Mpc_Op<mnemonic, "Clear", [Pure, Mpc_Elementwise, Mpc_IsElementwise]> {
  let summary = "Element-wise " # formula # ", with broadcasting.";
  let description = [{
    Compares exact values; }] # ofNan # [{ where either is NaN.

    ```mlir}] # example # [{  ```
  }];
  let inference = "inferComparison";
  let arguments = (ins Mpc_NumberTensor:$a, Mpc_NumberTensor:$b);
  let results = (outs Mpc_BoolTensor:$y);
}

def Mpc_GreaterOp : Mpc_ComparisonOp<"greater", "a > b"> {
  let example = [{
    %a = mpc.constant {value = dense<[1.0, 3.0, 5.0]> : tensor<3xf32>} : () -> tensor<3xf32>
    %b = mpc.constant {value = dense<3.0> : tensor<f32>} : () -> tensor<f32>
    %y = mpc.greater %a, %b : (tensor<3xf32>, tensor<f32>) -> tensor<3xi1>
    // %y = [false, false, true]
  }];
}
def Mpc_LessOp : Mpc_ComparisonOp<"less", "a < b"> {
  let example = [{
    %a = mpc.constant {value = dense<[1.0, 3.0, 5.0]> : tensor<3xf32>} : () -> tensor<3xf32>
    %b = mpc.constant {value = dense<3.0> : tensor<f32>} : () -> tensor<f32>
    %y = mpc.less %a, %b : (tensor<3xf32>, tensor<f32>) -> tensor<3xi1>
    // %y = [true, false, false]
  }];
}

def Mpc_NotEqualOp : Mpc_ComparisonOp<"not_equal", "a != b", "true"> {
  let example = [{
    %label = mpc.constant {value = dense<[1, 2, 3]> : tensor<3xi32>} : () -> tensor<3xi32>
    %ignored = mpc.constant {value = dense<2> : tensor<i32>} : () -> tensor<i32>
    %y = mpc.not_equal %label, %ignored : (tensor<3xi32>, tensor<i32>) -> tensor<3xi1>
    // %y = [true, false, true]
  }];
}
def Mpc_GreaterEqualOp : Mpc_ComparisonOp<"greater_equal", "a >= b"> {
  let example = [{
    %a = mpc.constant {value = dense<[1.0, 3.0, 5.0]> : tensor<3xf32>} : () -> tensor<3xf32>
    %b = mpc.constant {value = dense<3.0> : tensor<f32>} : () -> tensor<f32>
    %y = mpc.greater_equal %a, %b : (tensor<3xf32>, tensor<f32>) -> tensor<3xi1>
    // %y = [false, true, true]
  }];
}
def Mpc_LessEqualOp : Mpc_ComparisonOp<"less_equal", "a <= b"> {
  let example = [{
    %a = mpc.constant {value = dense<[1.0, 3.0, 5.0]> : tensor<3xf32>} : () -> tensor<3xf32>
    %b = mpc.constant {value = dense<3.0> : tensor<f32>} : () -> tensor<f32>
    %y = mpc.less_equal %a, %b : (tensor<3xf32>, tensor<f32>) -> tensor<3xi1>
    // %y = [true, true, false]
  }];
}

class Mpc_LogicalOp<string mnemonic, string formula>
    : Mpc_Op<mnemonic, "Clear", [Pure, Mpc_Elementwise, Mpc_IsElementwise]> {
  let summary = "Element-wise " # formula # " of truth values, with broadcasting.";
  let description = [{
    A comparison makes truth values of numbers.

    ```mlir}] # example # [{  ```
  }];
  let arguments = (ins Mpc_BoolTensor:$a, Mpc_BoolTensor:$b);
  let results = (outs Mpc_BoolTensor:$y);
}

def Mpc_LogicalAndOp : Mpc_LogicalOp<"logical_and", "conjunction"> {
  let example = [{
    %a = mpc.constant {value = dense<[true, true, false]> : tensor<3xi1>} : () -> tensor<3xi1>
    %b = mpc.constant {value = dense<[true, false, false]> : tensor<3xi1>} : () -> tensor<3xi1>
    %y = mpc.logical_and %a, %b : tensor<3xi1>
    // %y = [true, false, false]
  }];
}
def Mpc_LogicalOrOp : Mpc_LogicalOp<"logical_or", "disjunction"> {
  let example = [{
    %a = mpc.constant {value = dense<[true, true, false]> : tensor<3xi1>} : () -> tensor<3xi1>
    %b = mpc.constant {value = dense<[true, false, false]> : tensor<3xi1>} : () -> tensor<3xi1>
    %y = mpc.logical_or %a, %b : tensor<3xi1>
    // %y = [true, true, false]
  }];
}

def Mpc_LogicalNotOp : Mpc_Op<"logical_not", "Clear", [Pure, Mpc_Elementwise, Mpc_IsElementwise]> {
  let summary = "Element-wise negation of truth values.";
  let description = [{
    True where a is false.

    ```mlir
    %a = mpc.constant {value = dense<[true, false]> : tensor<2xi1>} : () -> tensor<2xi1>
    %y = mpc.logical_not %a : tensor<2xi1>
    // %y = [false, true]
    ```
  }];
  let arguments = (ins Mpc_BoolTensor:$a);
  let results = (outs Mpc_BoolTensor:$y);
}

def Mpc_WhereOp : Mpc_DifferentiableOp<"where", "Clear", [Mpc_Elementwise, Mpc_IsElementwise, Mpc_SelectsValues]> {
  let summary = "a where the condition holds, else b, element by element with broadcasting.";
  let description = [{
    Condition, a and b are broadcast to one shape. Both are floating, or both hold integers of one type or truth values.
    The cotangent goes to the chosen operand, zero to the other: a NaN in the operand that is not chosen does not reach
    the derivative.

    ```mlir
    %positive = mpc.constant {value = dense<[true, false]> : tensor<2xi1>} : () -> tensor<2xi1>
    %x = mpc.constant {value = dense<[1.0, -2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %zero = mpc.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %y = mpc.where %positive, %x, %zero : (tensor<2xi1>, tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
    // %y = [1.0, 0.0]
    ```
  }];
  let arguments = (ins Mpc_BoolTensor:$condition, Mpc_Tensor:$a, Mpc_Tensor:$b);
  let results = (outs Mpc_Tensor:$y);
}

#endif
