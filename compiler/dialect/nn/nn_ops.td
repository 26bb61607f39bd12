// Convolution, matrix product, pooling, normalisation, softmax and losses, with their gradient operations.
#ifndef MPC_NN_OPS_TD
#define MPC_NN_OPS_TD

include "compiler/dialect/mpc_base.td"

//===-- Matrix work ----------------------------------------------------------------------------------------------===//

def Mpc_MatmulOp : Mpc_DifferentiableOp<"matmul", "Allow", [Mpc_MatrixWork, Mpc_ActivationInterface]> {
  let summary = "Matrix product with optional bias and activation, rounded once.";
  let description = [{
    y = activation(op(a) op(b) + bias), y: [M, N]. a: [M, K] ([K, M] if transpose_a), b: [K, N] ([N, K] if transpose_b).
    bias: [N], or [M, N] with an element for each of y. Accumulates in f32. y may take the place of a bias of its type.

    `activation` is `relu`, `sigmoid`, `tanh`, or `mpc.gelu` in its form `none` (`gelu`) or `tanh` (`gelu_tanh`). The
    derivative of gelu reads what gelu is applied to, so the derivative of such a product computes it again.
    mpc-fold-activation writes gelu here, after autodiff, where nothing else reads the product.

    ```mlir
    %x = mpc.constant {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
    %weight = mpc.constant {value = dense<[[1.0, 0.0], [0.0, 2.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
    %bias = mpc.constant {value = dense<[10.0, -5.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %y = mpc.matmul %x, %weight, %bias {activation = relu}
        : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
    // %y = [[11.0, 0.0], [13.0, 3.0]]
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$a, Mpc_FloatTensor:$b, Optional<Mpc_FloatTensor>:$bias,
                       Mpc_Flag:$transpose_a, Mpc_Flag:$transpose_b, Mpc_Activation:$activation);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_Conv2dOp : Mpc_DifferentiableOp<"conv2d", "Allow", [Mpc_MatrixWork, Mpc_Image, Mpc_ActivationInterface]> {
  let summary = "2-D cross-correlation with optional bias and activation, rounded once.";
  let description = [{
    x: [N, C, H, W] (or [N, H, W, C] by `data_format`), weight: [O, C / groups, kh, kw] in either format, bias: [O].

    y[n, o, i, j] = activation(bias[o] + sum over c, u, v of
                    weight[o, c, u, v] * x[n, c, i * stride_h - top + u * dilation_h, j * stride_w - left + v * dilation_w])

    `pad_mode`: `valid` has no padding; `same` gives ceil(in / stride) with the odd element at the end; `pad` takes
    `padding` = [top, bottom, left, right]. `activation` is that of `mpc.matmul`.

    ```mlir
    %x = mpc.constant {value = dense<[[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]]> : tensor<1x1x2x3xf32>}
        : () -> tensor<1x1x2x3xf32>
    %weight = mpc.constant {value = dense<1.0> : tensor<1x1x2x2xf32>} : () -> tensor<1x1x2x2xf32>
    %y = mpc.conv2d %x, %weight : (tensor<1x1x2x3xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x1x2xf32>
    // %y = [[[[12.0, 16.0]]]]
    ```
  }];
  let imageOperands = [0];
  let imageResults = [0];
  let arguments = (ins Mpc_FloatTensor:$x, Mpc_FloatTensor:$weight, Optional<Mpc_FloatTensor>:$bias,
                       Mpc_Strides:$strides, Mpc_Dilations:$dilations, Mpc_PadMode:$pad_mode, Mpc_Padding:$padding,
                       Mpc_Groups:$groups, Mpc_DataFormat:$data_format, Mpc_Activation:$activation);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_Conv2dStatisticsOp : Mpc_Op<"conv2d_statistics", "Exempt", [Pure, Mpc_MatrixWork]> {
  let summary = "conv2d without bias and activation, with the statistics of each channel of its result.";
  let description = [{
    y is conv2d's. mean, variance and inv_std, [O], are those of `mpc.batch_norm_train` for the stored y. They are
    sum y / n, the biased sum y^2 / n - mean^2, and 1 / sqrt(variance + epsilon). The sums are f32 at least.
    mpc-conv-statistics writes it in front of batch normalisation.

    ```mlir
    %y, %mean, %variance, %inv_std = mpc.conv2d_statistics %x, %weight
        : (tensor<2x3x8x8xf16>, tensor<6x3x3x3xf16>)
        -> (tensor<2x6x6x6xf16>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>)
    ```
  }];
  let f32Results = [1, 2, 3];
  let arguments = (ins Mpc_FloatTensor:$x, Mpc_FloatTensor:$weight, Mpc_Strides:$strides, Mpc_Dilations:$dilations,
                       Mpc_PadMode:$pad_mode, Mpc_Padding:$padding, Mpc_Groups:$groups, Mpc_DataFormat:$data_format,
                       Mpc_Epsilon:$epsilon);
  let results = (outs Mpc_FloatTensor:$y, Mpc_F32Tensor:$mean, Mpc_F32Tensor:$variance, Mpc_F32Tensor:$inv_std);
}

def Mpc_Conv2dGradInputOp : Mpc_DifferentiableGradientOp<"conv2d_grad_input", [Mpc_MatrixWork, Mpc_Image]> {
  let summary = "Derivative of conv2d by x.";
  let description = [{
    `input_shape` is the shape of x, in `data_format`.

    ```mlir
    %dy = mpc.constant {value = dense<[[[[1.0, 2.0]]]]> : tensor<1x1x1x2xf32>} : () -> tensor<1x1x1x2xf32>
    %weight = mpc.constant {value = dense<1.0> : tensor<1x1x2x2xf32>} : () -> tensor<1x1x2x2xf32>
    %dx = mpc.conv2d_grad_input %dy, %weight {input_shape = [1, 1, 2, 3]}
        : (tensor<1x1x1x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x3xf32>
    // %dx = [[[[1.0, 3.0, 2.0], [1.0, 3.0, 2.0]]]]
    ```
  }];
  let imageOperands = [0];
  let imageResults = [0];
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$weight, DenseI64ArrayAttr:$input_shape,
                       Mpc_Strides:$strides, Mpc_Dilations:$dilations, Mpc_PadMode:$pad_mode, Mpc_Padding:$padding,
                       Mpc_Groups:$groups, Mpc_DataFormat:$data_format);
  let results = (outs Mpc_FloatTensor:$dx);
}

def Mpc_Conv2dGradWeightOp : Mpc_DifferentiableGradientOp<"conv2d_grad_weight", [Mpc_MatrixWork, Mpc_Image]> {
  let summary = "Derivative of conv2d by the weight: accumulated in f32, rounded once.";
  let description = [{
    `weight_shape` is [O, C / groups, kh, kw].

    ```mlir
    %x = mpc.constant {value = dense<[[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]]> : tensor<1x1x2x3xf32>}
        : () -> tensor<1x1x2x3xf32>
    %dy = mpc.constant {value = dense<[[[[1.0, 2.0]]]]> : tensor<1x1x1x2xf32>} : () -> tensor<1x1x1x2xf32>
    %dweight = mpc.conv2d_grad_weight %x, %dy {weight_shape = [1, 1, 2, 2]}
        : (tensor<1x1x2x3xf32>, tensor<1x1x1x2xf32>) -> tensor<1x1x2x2xf32>
    // %dweight = [[[[5.0, 8.0], [14.0, 17.0]]]]
    ```
  }];
  let imageOperands = [0, 1];
  let arguments = (ins Mpc_FloatTensor:$x, Mpc_FloatTensor:$dy, DenseI64ArrayAttr:$weight_shape,
                       Mpc_Strides:$strides, Mpc_Dilations:$dilations, Mpc_PadMode:$pad_mode, Mpc_Padding:$padding,
                       Mpc_Groups:$groups, Mpc_DataFormat:$data_format);
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

    ```mlir
    %x = mpc.constant {value = dense<[[[[1.0, 2.0, 3.0, 8.0], [5.0, 4.0, 7.0, 6.0]]]]> : tensor<1x1x2x4xf32>}
        : () -> tensor<1x1x2x4xf32>
    %y, %indices = mpc.max_pool2d %x {kernel_size = [2, 2], strides = [2, 2]}
        : (tensor<1x1x2x4xf32>) -> (tensor<1x1x1x2xf32>, tensor<1x1x1x2xi8>)
    // %y = [[[[5.0, 8.0]]]]
    // %indices = [[[[2, 1]]]]
    ```
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

def Mpc_MaxPool2dGradOp : Mpc_DifferentiableGradientOp<"max_pool2d_grad", [Mpc_Image]> {
  let summary = "Derivative of max_pool2d: sends each cotangent to the winning element.";
  let description = [{
    `indices` are those of max_pool2d. Cotangents that meet in one element are added in f32 and rounded once.

    ```mlir
    %dy = mpc.constant {value = dense<[[[[10.0, 20.0]]]]> : tensor<1x1x1x2xf32>} : () -> tensor<1x1x1x2xf32>
    %indices = mpc.constant {value = dense<[[[[2, 1]]]]> : tensor<1x1x1x2xi8>} : () -> tensor<1x1x1x2xi8>
    %dx = mpc.max_pool2d_grad %dy, %indices
        {input_shape = array<i64: 1, 1, 2, 4>, kernel_size = array<i64: 2, 2>, strides = array<i64: 2, 2>}
        : (tensor<1x1x1x2xf32>, tensor<1x1x1x2xi8>) -> tensor<1x1x2x4xf32>
    // %dx = [[[[0.0, 0.0, 0.0, 20.0], [10.0, 0.0, 0.0, 0.0]]]]
    ```
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

    ```mlir
    %x = mpc.constant {value = dense<[[[[1.0, 2.0, 3.0, 8.0], [5.0, 4.0, 7.0, 6.0]]]]> : tensor<1x1x2x4xf32>}
        : () -> tensor<1x1x2x4xf32>
    %y = mpc.avg_pool2d %x {kernel_size = [2, 2], strides = [2, 2]}
        : (tensor<1x1x2x4xf32>) -> tensor<1x1x1x2xf32>
    // %y = [[[[3.0, 6.0]]]]
    ```
  }];
  let imageOperands = [0];
  let imageResults = [0];
  let gradientOp = "AvgPool2dGradOp";
  let gradientReads = [{getX().getType().getShape(), getKernelSize(), getStrides(), getPadMode(), getPadding(),
                        getCountIncludePad(), getDataFormat()}];
  let arguments = (ins Mpc_FloatTensor:$x, DenseI64ArrayAttr:$kernel_size, Mpc_Strides:$strides,
                       Mpc_PadMode:$pad_mode, Mpc_Padding:$padding,
                       Mpc_CountIncludePad:$count_include_pad, Mpc_DataFormat:$data_format);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_AvgPool2dGradOp : Mpc_DifferentiableGradientOp<"avg_pool2d_grad", [Mpc_Image]> {
  let summary = "Derivative of avg_pool2d.";
  let description = [{
    Contributions are added in f32 and rounded once.

    ```mlir
    %dy = mpc.constant {value = dense<[[[[4.0, 8.0]]]]> : tensor<1x1x1x2xf32>} : () -> tensor<1x1x1x2xf32>
    %dx = mpc.avg_pool2d_grad %dy
        {input_shape = array<i64: 1, 1, 2, 4>, kernel_size = array<i64: 2, 2>, strides = array<i64: 2, 2>}
        : (tensor<1x1x1x2xf32>) -> tensor<1x1x2x4xf32>
    // %dx = [[[[1.0, 1.0, 2.0, 2.0], [1.0, 1.0, 2.0, 2.0]]]]
    ```
  }];
  let imageOperands = [0];
  let imageResults = [0];
  let arguments = (ins Mpc_FloatTensor:$dy, DenseI64ArrayAttr:$input_shape, DenseI64ArrayAttr:$kernel_size,
                       Mpc_Strides:$strides, Mpc_PadMode:$pad_mode, Mpc_Padding:$padding,
                       Mpc_CountIncludePad:$count_include_pad, Mpc_DataFormat:$data_format);
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

    ```mlir
    %x = mpc.constant {value = dense<[[1.0, 10.0], [3.0, 14.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
    %gamma = mpc.constant {value = dense<1.0> : tensor<2xf32>} : () -> tensor<2xf32>
    %beta = mpc.constant {value = dense<0.0> : tensor<2xf32>} : () -> tensor<2xf32>
    %y, %mean, %variance, %inv_std = mpc.batch_norm_train %x, %gamma, %beta {epsilon = 0.0}
        : (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>)
        -> (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
    // %y = [[-1.0, -1.0], [1.0, 1.0]]
    // %mean = [2.0, 12.0]
    // %variance = [1.0, 4.0]
    // %inv_std = [1.0, 0.5]
    ```
  }];
  let f32Operands = [1, 2];
  let f32Results = [1, 2, 3];
  let imageOperands = [0];
  let imageResults = [0];
  let arguments = (ins Mpc_FloatTensor:$x, Mpc_F32Tensor:$gamma, Mpc_F32Tensor:$beta,
                       Mpc_Epsilon:$epsilon, Mpc_DataFormat:$data_format);
  let results = (outs Mpc_FloatTensor:$y, Mpc_F32Tensor:$mean, Mpc_F32Tensor:$variance, Mpc_F32Tensor:$inv_std);
}

def Mpc_BatchNormTrainGradOp
    : Mpc_DifferentiableGradientOp<"batch_norm_train_grad", [Mpc_Reducing, Mpc_IsGeneratedOnCpu, Mpc_Image]> {
  let summary = "Derivatives of batch_norm_train's y by x, gamma and beta.";
  let description = [{
    Let x_hat = (x - mean) * inv_std and n the elements of a channel. dbeta = sum dy; dgamma = sum dy * x_hat.
    dx = gamma * inv_std * (dy - dbeta / n - x_hat * dgamma / n).

    ```mlir
    %dx, %dgamma, %dbeta = mpc.batch_norm_train_grad %dy, %x, %gamma, %mean, %inv_std
        : (tensor<2x3x4x4xf16>, tensor<2x3x4x4xf16>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
        -> (tensor<2x3x4x4xf16>, tensor<3xf32>, tensor<3xf32>)
    ```
  }];
  let imageOperands = [0, 1];
  let imageResults = [0];
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$x, Mpc_F32Tensor:$gamma, Mpc_F32Tensor:$mean,
                       Mpc_F32Tensor:$inv_std, Mpc_DataFormat:$data_format);
  let results = (outs Mpc_FloatTensor:$dx, Mpc_F32Tensor:$dgamma, Mpc_F32Tensor:$dbeta);
}

def Mpc_BatchNormApplyOp
    : Mpc_Op<"batch_norm_apply", "Exempt", [Pure, Mpc_ElementwiseInSpace, Mpc_IsGeneratedOnCpu, Mpc_Image]> {
  let summary = "Normalises each channel by the mean and inv_std that batch_norm_train gave.";
  let description = [{
    y = (x - mean) * (inv_std * gamma) + beta per channel. It has the bits of batch_norm_train's y and sums nothing. Passes
    write it where a batch's statistics are known.

    ```mlir
    %x = mpc.constant {value = dense<[[1.0, 10.0], [3.0, 14.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
    %gamma = mpc.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %beta = mpc.constant {value = dense<[0.0, 1.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %mean = mpc.constant {value = dense<[2.0, 12.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %inv_std = mpc.constant {value = dense<[1.0, 0.5]> : tensor<2xf32>} : () -> tensor<2xf32>
    %y = mpc.batch_norm_apply %x, %gamma, %beta, %mean, %inv_std
        : (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
    // %y = [[-1.0, -1.0], [1.0, 3.0]]
    ```
  }];
  let imageOperands = [0];
  let imageResults = [0];
  let arguments = (ins Mpc_FloatTensor:$x, Mpc_F32Tensor:$gamma, Mpc_F32Tensor:$beta, Mpc_F32Tensor:$mean,
                       Mpc_F32Tensor:$inv_std, Mpc_DataFormat:$data_format);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_BatchNormInferOp
    : Mpc_DifferentiableOp<"batch_norm_infer", "Norm",
                           [Mpc_ElementwiseInSpace, Mpc_IsGeneratedOnCpu, Mpc_IsBatchNorm, Mpc_Image]> {
  let summary = "Normalises each channel by given statistics.";
  let description = [{
    y = (x - mean) / sqrt(variance + epsilon) * gamma + beta per channel.

    ```mlir
    %x = mpc.constant {value = dense<[[1.0, 10.0], [3.0, 14.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
    %gamma = mpc.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %beta = mpc.constant {value = dense<[0.0, 1.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %mean = mpc.constant {value = dense<[2.0, 12.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %variance = mpc.constant {value = dense<[1.0, 4.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %y = mpc.batch_norm_infer %x, %gamma, %beta, %mean, %variance {epsilon = 0.0}
        : (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
    // %y = [[-1.0, -1.0], [1.0, 3.0]]
    ```
  }];
  let f32Operands = [1, 2, 3, 4];
  let imageOperands = [0];
  let imageResults = [0];
  let arguments = (ins Mpc_FloatTensor:$x, Mpc_F32Tensor:$gamma, Mpc_F32Tensor:$beta, Mpc_F32Tensor:$mean,
                       Mpc_F32Tensor:$variance, Mpc_Epsilon:$epsilon, Mpc_DataFormat:$data_format);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_BatchNormInferGradOp
    : Mpc_DifferentiableGradientOp<"batch_norm_infer_grad", [Mpc_Reducing, Mpc_IsGeneratedOnCpu, Mpc_Image]> {
  let summary = "Derivatives of batch_norm_infer by x, gamma and beta; the statistics are constants.";
  let description = [{
    dx = dy * gamma * inv_std; dgamma = sum dy * x_hat; dbeta = sum dy.

    ```mlir
    %dx, %dgamma, %dbeta = mpc.batch_norm_infer_grad %dy, %x, %gamma, %mean, %variance
        : (tensor<8x3xf32>, tensor<8x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
        -> (tensor<8x3xf32>, tensor<3xf32>, tensor<3xf32>)
    ```
  }];
  let imageOperands = [0, 1];
  let imageResults = [0];
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$x, Mpc_F32Tensor:$gamma, Mpc_F32Tensor:$mean,
                       Mpc_F32Tensor:$variance, Mpc_Epsilon:$epsilon, Mpc_DataFormat:$data_format);
  let results = (outs Mpc_FloatTensor:$dx, Mpc_F32Tensor:$dgamma, Mpc_F32Tensor:$dbeta);
}

//===-- Softmax and losses ---------------------------------------------------------------------------------------===//

class Mpc_SoftmaxOpBase<string mnemonic, string formula, string gradient, list<Trait> properties = []>
    : Mpc_DifferentiableOp<mnemonic, "Deny",
                           [Mpc_Reducing, Mpc_IsGeneratedOnCpu, Mpc_IsArithmetic, Mpc_LinesInterface] # properties> {
  let summary = formula # " along an axis.";
  let description = [{
    The maximum is subtracted first; f32 inside, rounded once.

    ```mlir}] # example # [{  ```
  }];
  let gradientOp = gradient;
  let gradientReads = "getY(), getAxis()";
  let arguments = (ins Mpc_FloatTensor:$x, Mpc_LastAxis:$axis);
  let results = (outs Mpc_FloatTensor:$y);
}
def Mpc_SoftmaxOp : Mpc_SoftmaxOpBase<"softmax", "exp(x) / sum exp(x)", "SoftmaxGradOp", [Mpc_IsExpensive]> {
  let example = [{
    %x = mpc.constant {value = dense<[0.0, 1.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %y = mpc.softmax %x : tensor<2xf32>
    // %y = [0.268941432, 0.731058598]
  }];
}
def Mpc_LogSoftmaxOp : Mpc_SoftmaxOpBase<"log_softmax", "x - log sum exp(x)", "LogSoftmaxGradOp"> {
  let example = [{
    %x = mpc.constant {value = dense<[0.0, 1.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %y = mpc.log_softmax %x : tensor<2xf32>
    // %y = [-1.31326163, -0.313261688]
  }];
}

class Mpc_SoftmaxGradOpBase<string mnemonic, string formula, list<Trait> properties = []>
    : Mpc_DifferentiableGradientOp<mnemonic, [Mpc_Reducing, Mpc_IsGeneratedOnCpu, Mpc_LinesInterface] # properties> {
  let summary = "dx = " # formula # ".";
  let description = [{
    From the forward result y; sums run along the axis, in f32.

    ```mlir}] # example # [{  ```
  }];
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$y, Mpc_LastAxis:$axis);
  let results = (outs Mpc_FloatTensor:$dx);
}
def Mpc_SoftmaxGradOp : Mpc_SoftmaxGradOpBase<"softmax_grad", "y * (dy - sum(dy * y))"> {
  let example = [{
    %dy = mpc.constant {value = dense<[1.0, 0.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %y = mpc.constant {value = dense<0.5> : tensor<2xf32>} : () -> tensor<2xf32>
    %dx = mpc.softmax_grad %dy, %y : tensor<2xf32>
    // %dx = [0.25, -0.25]
  }];
}
def Mpc_LogSoftmaxGradOp : Mpc_SoftmaxGradOpBase<"log_softmax_grad", "dy - exp(y) * sum(dy)", [Mpc_IsExpensive]> {
  let example = [{
    %dy = mpc.constant {value = dense<[1.0, 0.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %y = mpc.constant {value = dense<-0.693147182> : tensor<2xf32>} : () -> tensor<2xf32>
    %dx = mpc.log_softmax_grad %dy, %y : tensor<2xf32>
    // %dx = [0.5, -0.5]
  }];
}

def Mpc_SoftmaxCrossEntropyOp
    : Mpc_DifferentiableOp<"softmax_cross_entropy", "Loss", [Mpc_Reducing, Mpc_IsGeneratedOnCpu]> {
  let summary = "Cross-entropy of softmax(logits) against labels.";
  let description = [{
    logits: [N, C]. Dense labels: floating, [N, C]; loss_n = sum_c labels * (log_sum_exp_n - logits). Sparse labels: i32
    or i64, [N]; loss_n = log_sum_exp_n - logits[n, label]. A sparse label outside [0, C) gives a NaN loss. `reduction`:
    `none` keeps [N]; `mean` divides the sum by N. Everything is f32. `log_sum_exp` is saved for the derivative; labels
    have none.

    `classes` says how many classes there are, where rows of the logits are longer: mpc-pad-classes writes it. What lies
    behind them counts for nothing, NaN included. It is for sparse labels.

    ```mlir
    %logits = mpc.constant {value = dense<[[0.0, 0.0]]> : tensor<1x2xf32>} : () -> tensor<1x2xf32>
    %labels = mpc.constant {value = dense<[1]> : tensor<1xi32>} : () -> tensor<1xi32>
    %loss, %log_sum_exp = mpc.softmax_cross_entropy %logits, %labels
        : (tensor<1x2xf32>, tensor<1xi32>) -> (tensor<f32>, tensor<1xf32>)
    // %loss = 0.693147182
    // %log_sum_exp = [0.693147182]
    ```
  }];
  let f32Operands = [0, 1];
  let f32Results = [0, 1];
  let arguments = (ins Mpc_FloatTensor:$logits, Mpc_NumberTensor:$labels, Mpc_Reduction:$reduction,
                       OptionalAttr<I64Attr>:$classes);
  let results = (outs Mpc_F32Tensor:$loss, Mpc_F32Tensor:$log_sum_exp);
  // The classes of the logits' rows: `classes`, or all of a row.
  let extraDeclarations = "int64_t countClasses();";
}

def Mpc_SoftmaxCrossEntropyGradOp
    : Mpc_DifferentiableGradientOp<"softmax_cross_entropy_grad",
                                   [Mpc_Reducing, Mpc_IsGeneratedOnCpu, Mpc_IsExpensive]> {
  let summary = "Derivative of softmax_cross_entropy by the logits.";
  let description = [{
    dlogits = g_n * (softmax(logits) * sum_c labels - labels), g = dloss, divided by N for `mean`; sparse labels count
    as one-hot. Behind the first `classes` of a row, if that is given, dlogits is 0.

    ```mlir
    %dloss = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
    %logits = mpc.constant {value = dense<[[0.0, 0.0]]> : tensor<1x2xf32>} : () -> tensor<1x2xf32>
    %labels = mpc.constant {value = dense<[1]> : tensor<1xi32>} : () -> tensor<1xi32>
    %log_sum_exp = mpc.constant {value = dense<[0.693147182]> : tensor<1xf32>} : () -> tensor<1xf32>
    %dlogits = mpc.softmax_cross_entropy_grad %dloss, %logits, %labels, %log_sum_exp
        : (tensor<f32>, tensor<1x2xf32>, tensor<1xi32>, tensor<1xf32>) -> tensor<1x2xf32>
    // %dlogits = [[0.5, -0.5]]
    ```
  }];
  let arguments = (ins Mpc_F32Tensor:$dloss, Mpc_FloatTensor:$logits, Mpc_NumberTensor:$labels,
                       Mpc_F32Tensor:$log_sum_exp, Mpc_Reduction:$reduction, OptionalAttr<I64Attr>:$classes);
  let results = (outs Mpc_FloatTensor:$dlogits);
  // The classes of the logits' rows: `classes`, or all of a row.
  let extraDeclarations = "int64_t countClasses();";
}

def Mpc_MseOp : Mpc_DifferentiableOp<"mse", "Loss", [Mpc_Reducing, Mpc_IsGeneratedOnCpu]> {
  let summary = "Squared error (prediction - target)^2: per element, its mean or its sum.";
  let description = [{
    Both operands have one shape. `mean` divides by the element count.

    ```mlir
    %prediction = mpc.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %target = mpc.constant {value = dense<[3.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %loss = mpc.mse %prediction, %target : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>
    // %loss = 2.0
    ```
  }];
  let f32Operands = [0, 1];
  let f32Results = [0];
  let arguments = (ins Mpc_FloatTensor:$prediction, Mpc_FloatTensor:$target, Mpc_Reduction:$reduction);
  let results = (outs Mpc_F32Tensor:$loss);
}

def Mpc_MseGradOp : Mpc_DifferentiableGradientOp<"mse_grad", [Mpc_Elementwise, Mpc_IsGeneratedOnCpu]> {
  let summary = "Derivative of mse by the prediction; the target's is its negative.";
  let description = [{
    2 * dloss * (prediction - target), divided by the element count for `mean`.

    ```mlir
    %dloss = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
    %prediction = mpc.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %target = mpc.constant {value = dense<[3.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %dprediction = mpc.mse_grad %dloss, %prediction, %target
        : (tensor<f32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    // %dprediction = [-2.0, 0.0]
    ```
  }];
  let arguments = (ins Mpc_F32Tensor:$dloss, Mpc_FloatTensor:$prediction, Mpc_FloatTensor:$target,
                       Mpc_Reduction:$reduction);
  let results = (outs Mpc_FloatTensor:$dprediction);
}

#endif
