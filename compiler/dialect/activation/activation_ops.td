// Activation functions and other element-wise functions with a derivative of their own.
#ifndef MPC_ACTIVATION_OPS_TD
#define MPC_ACTIVATION_OPS_TD

include "compiler/dialect/elementwise/elementwise_ops.td"

// The derivative of a unary operation from its operand.
class Mpc_UnaryInputGradOp<string mnemonic, string formula, list<Trait> properties = [],
                           list<Trait> fusible = [Mpc_Elementwise]>
    : Mpc_GradientOp<mnemonic, [Mpc_IsElementwise] # properties # fusible> {
  let summary = "Derivative of the operation of the same name: " # formula # ".";
  let description = "dx = " # formula # " from the forward operand x, computed in f32 and rounded once.";
  let alike = ["dy", "x"];
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$x);
  let results = (outs Mpc_FloatTensor:$dx);
}

def Mpc_AbsOp : Mpc_UnaryOpFromX<"abs", "Clear", "|x|", "AbsGradOp", [Mpc_SelectsValues]>;
def Mpc_FloorOp : Mpc_UnaryOp<"floor", "Clear", "the largest integer <= x; its derivative is zero">;
def Mpc_SquareOp : Mpc_UnaryOpFromX<"square", "Deny", "x * x", "SquareGradOp", [Mpc_IsArithmetic]>;
def Mpc_Log1pOp : Mpc_UnaryOpFromX<"log1p", "Deny", "log(1 + x)", "Log1pGradOp", [Mpc_IsArithmetic, Mpc_IsExpensive]>;
def Mpc_SinOp : Mpc_UnaryOpFromX<"sin", "Deny", "sin(x)", "SinGradOp", [Mpc_IsArithmetic], []>;
def Mpc_CosOp : Mpc_UnaryOpFromX<"cos", "Deny", "cos(x)", "CosGradOp", [Mpc_IsArithmetic], []>;
def Mpc_SiluOp : Mpc_UnaryOpFromX<"silu", "Infer", "x / (1 + exp(-x))", "SiluGradOp", [Mpc_IsExpensive]>;

def Mpc_AbsGradOp : Mpc_UnaryInputGradOp<"abs_grad", "dy * sign(x), 0 at 0">;
def Mpc_SquareGradOp : Mpc_UnaryInputGradOp<"square_grad", "2 * dy * x">;
def Mpc_Log1pGradOp : Mpc_UnaryInputGradOp<"log1p_grad", "dy / (1 + x)">;
def Mpc_SinGradOp : Mpc_UnaryInputGradOp<"sin_grad", "dy * cos(x)", [], []>;
def Mpc_CosGradOp : Mpc_UnaryInputGradOp<"cos_grad", "-dy * sin(x)", [], []>;
def Mpc_SiluGradOp
    : Mpc_UnaryInputGradOp<"silu_grad", "dy * s * (1 + x * (1 - s)), s = 1 / (1 + exp(-x))", [Mpc_IsExpensive]>;

// Howard et al. 2019, "Searching for MobileNetV3".
def Mpc_HardSwishOp
    : Mpc_UnaryOpFromX<"hard_swish", "Infer", "x * min(max(x + 3, 0), 6) / 6", "HardSwishGradOp",
                       [Mpc_IsGeneratedOnCpu]>;
def Mpc_HardSwishGradOp
    : Mpc_UnaryInputGradOp<"hard_swish_grad", "0 where x <= -3, dy where x >= 3, dy * (2 * x + 3) / 6 between",
                           [Mpc_IsGeneratedOnCpu]>;

def Mpc_GeluForm : DefaultValuedAttr<Mpc_OneOf<["none", "tanh"]>, "\"none\"">;

def Mpc_GeluOp : Mpc_DifferentiableOp<"gelu", "Infer", [Mpc_Elementwise, Mpc_IsElementwise, Mpc_IsExpensive]> {
  let summary = "Gaussian error linear unit (Hendrycks and Gimpel 2016).";
  let description = [{
    `approximate = "none"`: y = x / 2 * (1 + erf(x / sqrt 2)). `"tanh"`:
    y = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))). Computed in f32 and rounded once.
  }];
  let gradientOp = "GeluGradOp";
  let gradientReads = "getX(), getApproximateAttr()";
  let arguments = (ins Mpc_FloatTensor:$x, Mpc_GeluForm:$approximate);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_GeluGradOp : Mpc_GradientOp<"gelu_grad", [Mpc_Elementwise, Mpc_IsElementwise, Mpc_IsExpensive]> {
  let summary = "Derivative of gelu from its operand.";
  let description = "The derivative of the form that `approximate` names, computed in f32 and rounded once.";
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$x, Mpc_GeluForm:$approximate);
  let results = (outs Mpc_FloatTensor:$dx);
}

def Mpc_LeakyReluOp : Mpc_DifferentiableOp<"leaky_relu", "Infer", [Mpc_Elementwise, Mpc_IsElementwise]> {
  let summary = "x where x > 0, else alpha * x.";
  let description = "Computed in f32 and rounded once.";
  let alike = ["x"];
  let gradientOp = "LeakyReluGradOp";
  let gradientReads = "getX(), getAlphaAttr()";
  let arguments = (ins Mpc_FloatTensor:$x, Mpc_Float<"0.2f">:$alpha);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_LeakyReluGradOp : Mpc_GradientOp<"leaky_relu_grad", [Mpc_Elementwise, Mpc_IsElementwise]> {
  let summary = "dy where x > 0, else alpha * dy.";
  let description = "Computed in f32 and rounded once.";
  let alike = ["dy", "x"];
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$x, Mpc_Float<"0.2f">:$alpha);
  let results = (outs Mpc_FloatTensor:$dx);
}

def Mpc_PreluOp : Mpc_DifferentiableOp<"prelu", "Allow", [Mpc_ElementwiseInSpace, Mpc_Image]> {
  let summary = "x where x > 0, else a learned slope times x.";
  let description = [{
    x: [N, C, ...]; alpha: [C], one slope a channel, or [1], one for all. The channel is axis 1, or the last axis where
    `data_format` is NHWC and x has rank 4.
  }];
  let imageOperands = [0];
  let imageResults = [0];
  let arguments = (ins Mpc_FloatTensor:$x, Mpc_FloatTensor:$alpha, Mpc_DataFormat:$data_format);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_PreluGradOp : Mpc_GradientOp<"prelu_grad", [Mpc_Reducing, Mpc_Image]> {
  let summary = "Derivatives of prelu by x and alpha.";
  let description = [{
    dx = x > 0 ? dy : alpha * dy; dalpha = sum of dy * x over the elements with x <= 0 that share a slope, accumulated
    in f32 and rounded once.
  }];
  let imageOperands = [0, 1];
  let imageResults = [0];
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$x, Mpc_FloatTensor:$alpha, Mpc_DataFormat:$data_format);
  let results = (outs Mpc_FloatTensor:$dx, Mpc_FloatTensor:$dalpha);
}

def Mpc_PowOp : Mpc_DifferentiableOp<"pow", "Deny", [Mpc_IsElementwise, Mpc_IsArithmetic, Mpc_IsExpensive]> {
  let summary = "x raised to a constant exponent.";
  let description = "y = x^exponent in f32, rounded once; a negative x with a fractional exponent gives NaN.";
  let alike = ["x"];
  let gradientOp = "PowGradOp";
  let gradientReads = "getX(), getExponentAttr()";
  let arguments = (ins Mpc_FloatTensor:$x, F32Attr:$exponent);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_PowGradOp : Mpc_GradientOp<"pow_grad", [Mpc_IsElementwise, Mpc_IsExpensive]> {
  let summary = "dy * exponent * x^(exponent - 1).";
  let description = "Zero where the exponent is zero. Computed in f32 and rounded once.";
  let alike = ["dy", "x"];
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$x, F32Attr:$exponent);
  let results = (outs Mpc_FloatTensor:$dx);
}

def Mpc_ClampOp : Mpc_DifferentiableOp<"clamp", "Clear", [Mpc_Elementwise, Mpc_IsElementwise]> {
  let summary = "x limited to [minimum, maximum].";
  let description = "A NaN stays. The limits are f32 constants, rounded with the result.";
  let alike = ["x"];
  let gradientOp = "ClampGradOp";
  let gradientReads = "getX(), getMinimumAttr(), getMaximumAttr()";
  let arguments = (ins Mpc_FloatTensor:$x, F32Attr:$minimum, F32Attr:$maximum);
  let results = (outs Mpc_FloatTensor:$y);
  let hasVerifier = 1;
}

def Mpc_ClampGradOp : Mpc_GradientOp<"clamp_grad", [Mpc_Elementwise, Mpc_IsElementwise]> {
  let summary = "dy where minimum <= x <= maximum, else 0.";
  let description = "The limits count as inside.";
  let alike = ["dy", "x"];
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$x, F32Attr:$minimum, F32Attr:$maximum);
  let results = (outs Mpc_FloatTensor:$dx);
}

def Mpc_MinimumOp : Mpc_BinaryOp<"minimum", "Clear", "min(a, b), NaN if either is", [Mpc_SelectsValues]>;

def Mpc_MinimumGradOp : Mpc_GradientOp<"minimum_grad", [Mpc_Elementwise, Mpc_IsElementwise]> {
  let summary = "Derivative of minimum, before broadcasting is undone.";
  let description = "The smaller operand receives dy; equal operands receive half of it each.";
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$a, Mpc_FloatTensor:$b);
  let results = (outs Mpc_FloatTensor:$da, Mpc_FloatTensor:$db);
}

class Mpc_ComparisonOp<string mnemonic, string formula> : Mpc_Op<mnemonic, "Clear", [Pure, Mpc_Elementwise, Mpc_IsElementwise]> {
  let summary = "Element-wise " # formula # ", with broadcasting.";
  let description = "Compares exact values; false where either is NaN.";
  let arguments = (ins Mpc_NumberTensor:$a, Mpc_NumberTensor:$b);
  let results = (outs Mpc_BoolTensor:$y);
}

def Mpc_GreaterOp : Mpc_ComparisonOp<"greater", "a > b">;
def Mpc_LessOp : Mpc_ComparisonOp<"less", "a < b">;

def Mpc_WhereOp : Mpc_DifferentiableOp<"where", "Clear", [Mpc_Elementwise, Mpc_IsElementwise, Mpc_SelectsValues]> {
  let summary = "a where the condition holds, else b, element by element with broadcasting.";
  let description = [{
    Condition, a and b are broadcast to one shape. The cotangent goes to the chosen operand, zero to the other: a NaN in
    the operand that is not chosen does not reach the derivative.
  }];
  let arguments = (ins Mpc_BoolTensor:$condition, Mpc_FloatTensor:$a, Mpc_FloatTensor:$b);
  let results = (outs Mpc_FloatTensor:$y);
}

#endif
