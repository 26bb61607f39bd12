// Convolution, matrix product, pooling, normalisation, softmax and losses, with their gradient operations.
#ifndef MPC_NN_OPS_TD
#define MPC_NN_OPS_TD

include "compiler/dialect/mpc_base.td"

//===-- Matrix work ----------------------------------------------------------------------------------------------===//

def Mpc_MatmulOp : Mpc_DifferentiableOp<"matmul", "Allow", [Mpc_MatrixWork, Mpc_TakesActivation]> {
  let summary = "Matrix product with optional bias and activation, rounded once.";
  let description = [{
    y = activation(op(a) op(b) + bias), y: [M, N]. a: [M, K] ([K, M] if transpose_a), b: [K, N] ([N, K] if transpose_b).
    bias: [N], or [M, N] with an element for each of y. Accumulates in f32. y may take the place of a bias of its type.

    `activation` is `relu`, `sigmoid`, `tanh`, or `mpc.gelu` in its form `none` (`gelu`) or `tanh` (`gelu_tanh`). The
    derivative of gelu reads what gelu is applied to, so the derivative of such a product computes it again.
    mpc-fold-activation writes gelu here, after autodiff, where nothing else reads the product.
  }];
  let arguments = (ins Mpc_FloatTensor:$a, Mpc_FloatTensor:$b, Optional<Mpc_FloatTensor>:$bias,
                       Mpc_Flag:$transpose_a, Mpc_Flag:$transpose_b, Mpc_Activation:$activation);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_Conv2dOp : Mpc_DifferentiableOp<"conv2d", "Allow", [Mpc_MatrixWork, Mpc_Image, Mpc_TakesActivation]> {
  let summary = "2-D cross-correlation with optional bias and activation, rounded once.";
  let description = [{
    x: [N, C, H, W] (or [N, H, W, C] by `data_format`), weight: [O, C / groups, kh, kw] in either format, bias: [O].

    y[n, o, i, j] = activation(bias[o] + sum over c, u, v of
                    weight[o, c, u, v] * x[n, c, i * stride_h - top + u * dilation_h, j * stride_w - left + v * dilation_w])

    `pad_mode`: `valid` has no padding; `same` gives ceil(in / stride) with the odd element at the end; `pad` takes
    `padding` = [top, bottom, left, right]. `activation` is that of `mpc.matmul`.
  }];
  let imageOperands = [0];
  let imageResults = [0];
  let arguments = (ins Mpc_FloatTensor:$x, Mpc_FloatTensor:$weight, Optional<Mpc_FloatTensor>:$bias,
                       Mpc_Strides:$strides, Mpc_Strides:$dilations, Mpc_PadMode:$pad_mode, Mpc_Padding:$padding,
                       Mpc_Int<"1">:$groups, Mpc_DataFormat:$data_format, Mpc_Activation:$activation);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_Conv2dStatisticsOp : Mpc_Op<"conv2d_statistics", "Exempt", [Pure, Mpc_MatrixWork]> {
  let summary = "conv2d without bias and activation, with the statistics of each channel of its result.";
  let description = [{
    y is conv2d's. mean, variance and inv_std, [O], are those of `mpc.batch_norm_train` for the stored y. They are
    sum y / n, the biased sum y^2 / n - mean^2, and 1 / sqrt(variance + epsilon). The sums are f32 at least.
    mpc-conv-statistics writes it in front of batch normalisation.
  }];
  let f32Results = [1, 2, 3];
  let arguments = (ins Mpc_FloatTensor:$x, Mpc_FloatTensor:$weight, Mpc_Strides:$strides, Mpc_Strides:$dilations,
                       Mpc_PadMode:$pad_mode, Mpc_Padding:$padding, Mpc_Int<"1">:$groups, Mpc_DataFormat:$data_format,
                       Mpc_Float<"1e-5f">:$epsilon);
  let results = (outs Mpc_FloatTensor:$y, Mpc_F32Tensor:$mean, Mpc_F32Tensor:$variance, Mpc_F32Tensor:$inv_std);
}

def Mpc_Conv2dGradInputOp : Mpc_GradientOp<"conv2d_grad_input", [Mpc_MatrixWork, Mpc_Image]> {
  let summary = "Derivative of conv2d by x.";
  let description = "`input_shape` is the shape of x, in `data_format`.";
  let imageOperands = [0];
  let imageResults = [0];
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$weight, DenseI64ArrayAttr:$input_shape,
                       Mpc_Strides:$strides, Mpc_Strides:$dilations, Mpc_PadMode:$pad_mode, Mpc_Padding:$padding,
                       Mpc_Int<"1">:$groups, Mpc_DataFormat:$data_format);
  let results = (outs Mpc_FloatTensor:$dx);
}

def Mpc_Conv2dGradWeightOp : Mpc_GradientOp<"conv2d_grad_weight", [Mpc_MatrixWork, Mpc_Image]> {
  let summary = "Derivative of conv2d by the weight: accumulated in f32, rounded once.";
  let description = "`weight_shape` is [O, C / groups, kh, kw].";
  let imageOperands = [0, 1];
  let arguments = (ins Mpc_FloatTensor:$x, Mpc_FloatTensor:$dy, DenseI64ArrayAttr:$weight_shape,
                       Mpc_Strides:$strides, Mpc_Strides:$dilations, Mpc_PadMode:$pad_mode, Mpc_Padding:$padding,
                       Mpc_Int<"1">:$groups, Mpc_DataFormat:$data_format);
  let results = (outs Mpc_FloatTensor:$dweight);
}

//===-- Pooling --------------------------------------------------------------------------------------------------===//

def Mpc_MaxPool2dOp : Mpc_DifferentiableOp<"max_pool2d", "Clear", [Mpc_Image, Mpc_SelectsValues]> {
  let summary = "Maximum over windows; padding never wins.";
  let description = [{
    `indices` holds the position of the winning input element in its window for each result element. It is row * kernel
    width + column, counted from the window's first element, which may lie in the padding. The first in row-major order
    wins; a NaN wins. Windows of at most 128 elements take i8, which is what tracing gives, or i32; larger ones i32. It
    is saved for the derivative and costs nothing where it is unused.
  }];
  let imageOperands = [0];
  let imageResults = [0, 1];
  let gradientOp = "MaxPool2dGradOp";
  let gradientReads = [{getIndices(), getX().getType().getShape(), getKernelSize(), getStrides(), getPadMode(),
                        getPadding(), getDataFormat()}];
  let arguments = (ins Mpc_FloatTensor:$x, DenseI64ArrayAttr:$kernel_size, Mpc_Strides:$strides,
                       Mpc_PadMode:$pad_mode, Mpc_Padding:$padding, Mpc_DataFormat:$data_format);
  let results = (outs Mpc_FloatTensor:$y, Mpc_WindowIndexTensor:$indices);
  let hasVerifier = 1;
}

def Mpc_MaxPool2dGradOp : Mpc_GradientOp<"max_pool2d_grad", [Mpc_Image]> {
  let summary = "Derivative of max_pool2d: sends each cotangent to the winning element.";
  let description = [{
    `indices` are those of max_pool2d. Cotangents that meet in one element are added in f32 and rounded once.
  }];
  let imageOperands = [0, 1];
  let imageResults = [0];
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_WindowIndexTensor:$indices, DenseI64ArrayAttr:$input_shape,
                       DenseI64ArrayAttr:$kernel_size, Mpc_Strides:$strides,
                       Mpc_PadMode:$pad_mode, Mpc_Padding:$padding, Mpc_DataFormat:$data_format);
  let results = (outs Mpc_FloatTensor:$dx);
  let hasVerifier = 1;
}

def Mpc_AvgPool2dOp : Mpc_DifferentiableOp<"avg_pool2d", "Infer", [Mpc_Image]> {
  let summary = "Mean over windows.";
  let description = [{
    `count_include_pad` divides by the window's size, padding included; otherwise by the elements inside the input.
  }];
  let imageOperands = [0];
  let imageResults = [0];
  let gradientOp = "AvgPool2dGradOp";
  let gradientReads = [{getX().getType().getShape(), getKernelSize(), getStrides(), getPadMode(), getPadding(),
                        getCountIncludePad(), getDataFormat()}];
  let arguments = (ins Mpc_FloatTensor:$x, DenseI64ArrayAttr:$kernel_size, Mpc_Strides:$strides,
                       Mpc_PadMode:$pad_mode, Mpc_Padding:$padding,
                       DefaultValuedAttr<BoolAttr, "true">:$count_include_pad, Mpc_DataFormat:$data_format);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_AvgPool2dGradOp : Mpc_GradientOp<"avg_pool2d_grad", [Mpc_Image]> {
  let summary = "Derivative of avg_pool2d.";
  let description = "Contributions are added in f32 and rounded once.";
  let imageOperands = [0];
  let imageResults = [0];
  let arguments = (ins Mpc_FloatTensor:$dy, DenseI64ArrayAttr:$input_shape, DenseI64ArrayAttr:$kernel_size,
                       Mpc_Strides:$strides, Mpc_PadMode:$pad_mode, Mpc_Padding:$padding,
                       DefaultValuedAttr<BoolAttr, "true">:$count_include_pad, Mpc_DataFormat:$data_format);
  let results = (outs Mpc_FloatTensor:$dx);
}

//===-- Batch normalisation --------------------------------------------------------------------------------------===//

def Mpc_BatchNormTrainOp
    : Mpc_DifferentiableOp<"batch_norm_train", "Norm",
                           [Mpc_Reducing, Mpc_IsGeneratedOnCpu, Mpc_IsBatchNorm, Mpc_Image]> {
  let summary = "Normalises each channel by the statistics of the batch.";
  let description = [{
    y = (x - mean) * inv_std * gamma + beta per channel, inv_std = 1 / sqrt(variance + epsilon). The variance is the
    biased one of the stored x, computed as the mean of (x - mean)^2. x is [N, C] or rank 4 by `data_format`.
    Arithmetic, parameters and statistics are f32; only x and y may be low.
  }];
  let f32Operands = [1, 2];
  let f32Results = [1, 2, 3];
  let imageOperands = [0];
  let imageResults = [0];
  let arguments = (ins Mpc_FloatTensor:$x, Mpc_F32Tensor:$gamma, Mpc_F32Tensor:$beta,
                       Mpc_Float<"1e-5f">:$epsilon, Mpc_DataFormat:$data_format);
  let results = (outs Mpc_FloatTensor:$y, Mpc_F32Tensor:$mean, Mpc_F32Tensor:$variance, Mpc_F32Tensor:$inv_std);
}

def Mpc_BatchNormTrainGradOp
    : Mpc_GradientOp<"batch_norm_train_grad", [Mpc_Reducing, Mpc_IsGeneratedOnCpu, Mpc_Image]> {
  let summary = "Derivatives of batch_norm_train's y by x, gamma and beta.";
  let description = [{
    Let x_hat = (x - mean) * inv_std and n the elements of a channel. dbeta = sum dy; dgamma = sum dy * x_hat.
    dx = gamma * inv_std * (dy - dbeta / n - x_hat * dgamma / n).
  }];
  let imageOperands = [0, 1];
  let imageResults = [0];
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$x, Mpc_F32Tensor:$gamma, Mpc_F32Tensor:$mean,
                       Mpc_F32Tensor:$inv_std, Mpc_DataFormat:$data_format);
  let results = (outs Mpc_FloatTensor:$dx, Mpc_F32Tensor:$dgamma, Mpc_F32Tensor:$dbeta);
}

def Mpc_BatchNormInferOp
    : Mpc_DifferentiableOp<"batch_norm_infer", "Norm",
                           [Mpc_ElementwiseInSpace, Mpc_IsGeneratedOnCpu, Mpc_IsBatchNorm, Mpc_Image]> {
  let summary = "Normalises each channel by given statistics.";
  let description = "y = (x - mean) / sqrt(variance + epsilon) * gamma + beta per channel.";
  let f32Operands = [1, 2, 3, 4];
  let imageOperands = [0];
  let imageResults = [0];
  let arguments = (ins Mpc_FloatTensor:$x, Mpc_F32Tensor:$gamma, Mpc_F32Tensor:$beta, Mpc_F32Tensor:$mean,
                       Mpc_F32Tensor:$variance, Mpc_Float<"1e-5f">:$epsilon, Mpc_DataFormat:$data_format);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_BatchNormInferGradOp
    : Mpc_GradientOp<"batch_norm_infer_grad", [Mpc_Reducing, Mpc_IsGeneratedOnCpu, Mpc_Image]> {
  let summary = "Derivatives of batch_norm_infer by x, gamma and beta; the statistics are constants.";
  let description = "dx = dy * gamma * inv_std; dgamma = sum dy * x_hat; dbeta = sum dy.";
  let imageOperands = [0, 1];
  let imageResults = [0];
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$x, Mpc_F32Tensor:$gamma, Mpc_F32Tensor:$mean,
                       Mpc_F32Tensor:$variance, Mpc_Float<"1e-5f">:$epsilon, Mpc_DataFormat:$data_format);
  let results = (outs Mpc_FloatTensor:$dx, Mpc_F32Tensor:$dgamma, Mpc_F32Tensor:$dbeta);
}

//===-- Softmax and losses ---------------------------------------------------------------------------------------===//

class Mpc_SoftmaxOpBase<string mnemonic, string formula, string gradient, list<Trait> properties = []>
    : Mpc_DifferentiableOp<mnemonic, "Deny",
                           [Mpc_Reducing, Mpc_IsGeneratedOnCpu, Mpc_IsArithmetic, Mpc_IsAlongAnAxis] # properties> {
  let summary = formula # " along an axis.";
  let description = "The maximum is subtracted first; f32 inside, rounded once.";
  let gradientOp = gradient;
  let gradientReads = "getY(), getAxis()";
  let arguments = (ins Mpc_FloatTensor:$x, Mpc_Int<"-1">:$axis);
  let results = (outs Mpc_FloatTensor:$y);
}
def Mpc_SoftmaxOp : Mpc_SoftmaxOpBase<"softmax", "exp(x) / sum exp(x)", "SoftmaxGradOp", [Mpc_IsExpensive]>;
def Mpc_LogSoftmaxOp : Mpc_SoftmaxOpBase<"log_softmax", "x - log sum exp(x)", "LogSoftmaxGradOp">;

class Mpc_SoftmaxGradOpBase<string mnemonic, string formula, list<Trait> properties = []>
    : Mpc_GradientOp<mnemonic, [Mpc_Reducing, Mpc_IsGeneratedOnCpu, Mpc_IsAlongAnAxis] # properties> {
  let summary = "dx = " # formula # ".";
  let description = "From the forward result y; sums run along the axis, in f32.";
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$y, Mpc_Int<"-1">:$axis);
  let results = (outs Mpc_FloatTensor:$dx);
}
def Mpc_SoftmaxGradOp : Mpc_SoftmaxGradOpBase<"softmax_grad", "y * (dy - sum(dy * y))">;
def Mpc_LogSoftmaxGradOp : Mpc_SoftmaxGradOpBase<"log_softmax_grad", "dy - exp(y) * sum(dy)", [Mpc_IsExpensive]>;

def Mpc_SoftmaxCrossEntropyOp
    : Mpc_DifferentiableOp<"softmax_cross_entropy", "Loss", [Mpc_Reducing, Mpc_IsGeneratedOnCpu]> {
  let summary = "Cross-entropy of softmax(logits) against labels.";
  let description = [{
    logits: [N, C]. Dense labels: floating, [N, C]; loss_n = sum_c labels * (log_sum_exp_n - logits). Sparse labels: i32
    or i64, [N]; loss_n = log_sum_exp_n - logits[n, label]. A sparse label outside [0, C) gives a NaN loss. `reduction`:
    `none` keeps [N]; `mean` divides the sum by N. Everything is f32. `log_sum_exp` is saved for the derivative; labels
    have none.
  }];
  let f32Operands = [0, 1];
  let f32Results = [0, 1];
  let arguments = (ins Mpc_FloatTensor:$logits, Mpc_NumberTensor:$labels, Mpc_Reduction:$reduction);
  let results = (outs Mpc_F32Tensor:$loss, Mpc_F32Tensor:$log_sum_exp);
}

def Mpc_SoftmaxCrossEntropyGradOp
    : Mpc_GradientOp<"softmax_cross_entropy_grad", [Mpc_Reducing, Mpc_IsGeneratedOnCpu, Mpc_IsExpensive]> {
  let summary = "Derivative of softmax_cross_entropy by the logits.";
  let description = [{
    dlogits = g_n * (softmax(logits) * sum_c labels - labels), g = dloss, divided by N for `mean`; sparse labels count
    as one-hot.
  }];
  let arguments = (ins Mpc_F32Tensor:$dloss, Mpc_FloatTensor:$logits, Mpc_NumberTensor:$labels,
                       Mpc_F32Tensor:$log_sum_exp, Mpc_Reduction:$reduction);
  let results = (outs Mpc_FloatTensor:$dlogits);
}

def Mpc_MseOp : Mpc_DifferentiableOp<"mse", "Loss", [Mpc_Reducing, Mpc_IsGeneratedOnCpu]> {
  let summary = "Squared error (prediction - target)^2: per element, its mean or its sum.";
  let description = "Both operands have one shape. `mean` divides by the element count.";
  let f32Operands = [0, 1];
  let f32Results = [0];
  let arguments = (ins Mpc_FloatTensor:$prediction, Mpc_FloatTensor:$target, Mpc_Reduction:$reduction);
  let results = (outs Mpc_F32Tensor:$loss);
}

def Mpc_MseGradOp : Mpc_GradientOp<"mse_grad", [Mpc_Elementwise, Mpc_IsGeneratedOnCpu]> {
  let summary = "Derivative of mse by the prediction; the target's is its negative.";
  let description = "2 * dloss * (prediction - target), divided by the element count for `mean`.";
  let arguments = (ins Mpc_F32Tensor:$dloss, Mpc_FloatTensor:$prediction, Mpc_FloatTensor:$target,
                       Mpc_Reduction:$reduction);
  let results = (outs Mpc_FloatTensor:$dprediction);
}

#endif
