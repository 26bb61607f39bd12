// Batched matrix work, attention, recurrent cells, transposed convolution, layer and group normalisation.
#ifndef MPC_SEQUENCE_OPS_TD
#define MPC_SEQUENCE_OPS_TD

include "compiler/dialect/mpc_base.td"

def Mpc_BatchMatmulOp : Mpc_DifferentiableOp<"batch_matmul", "Allow", [Mpc_MatrixWork]> {
  let summary = "One matrix product for each index of the leading axes.";
  let description = [{
    y = op(a) op(b) on the last two axes. a: [..., M, K] ([..., K, M] if transpose_a), b: [..., K, N] ([..., N, K] if
    transpose_b). The leading axes are equal, and there is at least one. Accumulates in f32, rounds once.

    ```mlir
    %a = mpc.constant {value = dense<[[[1.0, 2.0]], [[3.0, 4.0]]]> : tensor<2x1x2xf32>} : () -> tensor<2x1x2xf32>
    %b = mpc.constant {value = dense<[[[1.0], [1.0]], [[10.0], [1.0]]]> : tensor<2x2x1xf32>} : () -> tensor<2x2x1xf32>
    %y = mpc.batch_matmul %a, %b : (tensor<2x1x2xf32>, tensor<2x2x1xf32>) -> tensor<2x1x1xf32>
    // %y = [[[3.0]], [[34.0]]]
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$a, Mpc_FloatTensor:$b, Mpc_Flag:$transpose_a, Mpc_Flag:$transpose_b);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_AttentionOp : Mpc_DifferentiableOp<"attention", "Allow", [Mpc_MatrixWork]> {
  let summary = "Scaled-dot-product attention (Vaswani et al. 2017).";
  let description = [{
    query: [B, H, T, D], key: [B, H, S, D], value: [B, H, S, E]. mask: i1, broadcast to [B, H, T, S], true where a
    position may be read. `causal` lets row t read columns s <= t + S - T only.

    scores = scale * query key^T (f32); log_sum_exp = log sum over allowed s of exp(scores) (f32).
    p = exp(scores - log_sum_exp), 0 where not allowed, rounded to the type of value. y = p value, accumulated in f32
    and rounded once. A row that may read nothing has log_sum_exp = -inf and y = 0, without NaN, in the derivative too.

    ```mlir
    %query = mpc.constant {value = dense<0.0> : tensor<1x1x1x1xf32>} : () -> tensor<1x1x1x1xf32>
    %key = mpc.constant {value = dense<[[[[1.0], [2.0]]]]> : tensor<1x1x2x1xf32>} : () -> tensor<1x1x2x1xf32>
    %value = mpc.constant {value = dense<[[[[1.0, 2.0], [3.0, 4.0]]]]> : tensor<1x1x2x2xf32>}
        : () -> tensor<1x1x2x2xf32>
    %y, %log_sum_exp = mpc.attention %query, %key, %value {scale = 1.0}
        : (tensor<1x1x1x1xf32>, tensor<1x1x2x1xf32>, tensor<1x1x2x2xf32>) -> (tensor<1x1x1x2xf32>, tensor<1x1x1xf32>)
    // %y = [[[[2.0, 3.0]]]]
    // %log_sum_exp = 0.693147182
    ```
  }];
  let f32Results = [1];
  let arguments = (ins Mpc_FloatTensor:$query, Mpc_FloatTensor:$key, Mpc_FloatTensor:$value,
                       Optional<Mpc_BoolTensor>:$mask, F32Attr:$scale, Mpc_Flag:$causal);
  let results = (outs Mpc_FloatTensor:$y, Mpc_F32Tensor:$log_sum_exp);
}

def Mpc_AttentionGradOp : Mpc_DifferentiableGradientOp<"attention_grad", [Mpc_MatrixWork]> {
  let summary = "Derivatives of attention by query, key and value.";
  let description = [{
    p = exp(scores - log_sum_exp) again, P = p rounded to the type of value. dvalue = P^T dy; dp = dy value^T (f32);
    delta = sum over s of dp * p (f32). ds = scale * p * (dp - delta), rounded to the type of query; dquery = ds key;
    dkey = ds^T query. Products accumulate in f32 and round once.

    ```mlir
    %dquery, %dkey, %dvalue = mpc.attention_grad %dy, %query, %key, %value, %log_sum_exp
        {scale = 0.125 : f32, causal = true}
        : (tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4xf32>)
        -> (tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>)
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$query, Mpc_FloatTensor:$key, Mpc_FloatTensor:$value,
                       Mpc_F32Tensor:$log_sum_exp, Optional<Mpc_BoolTensor>:$mask, F32Attr:$scale, Mpc_Flag:$causal);
  let results = (outs Mpc_FloatTensor:$dquery, Mpc_FloatTensor:$dkey, Mpc_FloatTensor:$dvalue);
}

def Mpc_PackedAttentionOp : Mpc_DifferentiableOp<"packed_attention", "Allow", [Mpc_MatrixWork]> {
  let summary = "Self-attention that reads queries, keys and values where one product has left them.";
  let description = [{
    qkv: [B, T, 3 * H * D], in each row the queries of all H heads, then the keys, then the values. y: [B, T, H * D].
    log_sum_exp: [B, H, T]. Formulas, precision, mask and `causal` are those of attention, with S = T and E = D: no
    head is copied before or after. `mpc-pack-attention` makes it of attention.

    ```mlir
    %qkv = mpc.constant {value = dense<[[[0.0, 1.0, 1.0], [0.0, 2.0, 3.0]]]> : tensor<1x2x3xf32>}
        : () -> tensor<1x2x3xf32>
    %y, %log_sum_exp = mpc.packed_attention %qkv {heads = 1, scale = 1.0}
        : (tensor<1x2x3xf32>) -> (tensor<1x2x1xf32>, tensor<1x1x2xf32>)
    // %y = [[[2.0], [2.0]]]
    // %log_sum_exp = [[[0.693147182, 0.693147182]]]
    ```
  }];
  let f32Results = [1];
  let arguments = (ins Mpc_FloatTensor:$qkv, Optional<Mpc_BoolTensor>:$mask, I64Attr:$heads, F32Attr:$scale,
                       Mpc_Flag:$causal);
  let results = (outs Mpc_FloatTensor:$y, Mpc_F32Tensor:$log_sum_exp);
}

def Mpc_PackedAttentionGradOp : Mpc_GradientOp<"packed_attention_grad", [Mpc_MatrixWork]> {
  let summary = "Derivative of packed_attention by qkv.";
  let description = [{
    dqkv holds dquery, dkey and dvalue of attention_grad as qkv holds query, key and value. y is what packed_attention
    has stored. A kernel takes delta either as attention_grad does, or as the sum over a row of dy * y (f32). The two
    are equal but for the roundings that y has: one of each probability to the type of qkv, and one of y itself.

    ```mlir
    %dqkv = mpc.packed_attention_grad %dy, %qkv, %y, %log_sum_exp {heads = 2, scale = 0.125 : f32, causal = true}
        : (tensor<1x4x16xf16>, tensor<1x4x48xf16>, tensor<1x4x16xf16>, tensor<1x2x4xf32>) -> tensor<1x4x48xf16>
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$qkv, Mpc_FloatTensor:$y, Mpc_F32Tensor:$log_sum_exp,
                       Optional<Mpc_BoolTensor>:$mask, I64Attr:$heads, F32Attr:$scale, Mpc_Flag:$causal);
  let results = (outs Mpc_FloatTensor:$dqkv);
}

def Mpc_LstmCellOp : Mpc_DifferentiableOp<"lstm_cell", "Allow"> {
  let summary = "The gates of a long short-term memory cell (Hochreiter and Schmidhuber 1997).";
  let description = [{
    gates: [N, 4H], the sums of the input's and the state's matrix products. Their order is input i, forget f, cell g,
    output o. cell_state c: [N, H].
    c' = sigmoid(f) * c + sigmoid(i) * tanh(g); h' = sigmoid(o) * tanh(c'). Computed in f32, each result rounded once;
    cell states are f32. `activations`, f32 too, holds the four activated gates for the derivative.

    ```mlir
    %gates = mpc.constant {value = dense<0.0> : tensor<1x4xf32>} : () -> tensor<1x4xf32>
    %cell_state = mpc.constant {value = dense<2.0> : tensor<1x1xf32>} : () -> tensor<1x1xf32>
    %hidden, %new_cell_state, %activations = mpc.lstm_cell %gates, %cell_state
        : (tensor<1x4xf32>, tensor<1x1xf32>) -> (tensor<1x1xf32>, tensor<1x1xf32>, tensor<1x4xf32>)
    // %hidden = 0.380797088
    // %new_cell_state = 1.0
    // %activations = [[0.5, 0.5, 0.0, 0.5]]
    ```
  }];
  let f32Operands = [1];
  let f32Results = [1, 2];
  let arguments = (ins Mpc_FloatTensor:$gates, Mpc_FloatTensor:$cell_state);
  let results = (outs Mpc_FloatTensor:$hidden, Mpc_FloatTensor:$new_cell_state, Mpc_FloatTensor:$activations);
}

def Mpc_LstmCellGradOp : Mpc_DifferentiableGradientOp<"lstm_cell_grad"> {
  let summary = "Derivatives of lstm_cell by the gates and the cell state.";
  let description = [{
    With a = activations, t = tanh(c'): dc' = dnew_cell_state + dhidden * o * (1 - t^2). di = dc' g i (1 - i);
    df = dc' c f (1 - f). dg = dc' i (1 - g^2); do = dhidden t o (1 - o); dc = dc' f. Computed in f32, rounded once.
    Only dhidden and dgates may be low.

    ```mlir
    %dgates, %dcell_state = mpc.lstm_cell_grad %dhidden, %dnew_cell_state, %activations, %cell_state, %new_cell_state
        : (tensor<2x5xf16>, tensor<2x5xf32>, tensor<2x20xf32>, tensor<2x5xf32>, tensor<2x5xf32>)
        -> (tensor<2x20xf16>, tensor<2x5xf32>)
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$dhidden, Mpc_FloatTensor:$dnew_cell_state, Mpc_FloatTensor:$activations,
                       Mpc_FloatTensor:$cell_state, Mpc_FloatTensor:$new_cell_state);
  let results = (outs Mpc_FloatTensor:$dgates, Mpc_FloatTensor:$dcell_state);
}

def Mpc_ConvTranspose2dOp : Mpc_DifferentiableOp<"conv_transpose2d", "Allow", [Mpc_MatrixWork, Mpc_Image]> {
  let summary = "2-D transposed convolution with optional bias, rounded once.";
  let description = [{
    The derivative of conv2d by its input, as a layer. x: [N, C, H, W] (or [N, H, W, C]), weight: [C, O / groups, kh,
    kw], bias: [O]. Result extent: (in - 1) * stride - low - high + dilation * (kernel - 1) + 1 + output_padding with
    `pad_mode` `pad`. Here `padding` = [top, bottom, left, right]. The extent is in * stride with `same`; `valid` has no
    padding.

    ```mlir
    %x = mpc.constant {value = dense<[[[[1.0, 2.0]]]]> : tensor<1x1x1x2xf32>} : () -> tensor<1x1x1x2xf32>
    %weight = mpc.constant {value = dense<1.0> : tensor<1x1x2x2xf32>} : () -> tensor<1x1x2x2xf32>
    %y = mpc.conv_transpose2d %x, %weight : (tensor<1x1x1x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x3xf32>
    // %y = [[[[1.0, 3.0, 2.0], [1.0, 3.0, 2.0]]]]
    ```
  }];
  let imageOperands = [0];
  let imageResults = [0];
  let arguments = (ins Mpc_FloatTensor:$x, Mpc_FloatTensor:$weight, Optional<Mpc_FloatTensor>:$bias,
                       Mpc_Strides:$strides, Mpc_Dilations:$dilations, Mpc_PadMode:$pad_mode, Mpc_Padding:$padding,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{0, 0}">:$output_padding, Mpc_Groups:$groups,
                       Mpc_DataFormat:$data_format);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_LayerNormOp : Mpc_DifferentiableOp<"layer_norm", "Norm", [Mpc_Reducing, Mpc_IsGeneratedOnCpu]> {
  let summary = "Normalises over the trailing axes (Ba et al. 2016).";
  let description = [{
    gamma and beta have the shape of the trailing axes that are normalised together.
    y = (x - mean) * inv_std * gamma + beta, inv_std = 1 / sqrt(variance + epsilon). The variance is the biased one of
    the stored x, computed as the mean of (x - mean)^2. mean and inv_std have the shape of the leading axes. Arithmetic,
    parameters and statistics are f32; only x and y may be low.

    ```mlir
    %x = mpc.constant {value = dense<[[1.0, 3.0], [10.0, 14.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
    %gamma = mpc.constant {value = dense<1.0> : tensor<2xf32>} : () -> tensor<2xf32>
    %beta = mpc.constant {value = dense<0.0> : tensor<2xf32>} : () -> tensor<2xf32>
    %y, %mean, %inv_std = mpc.layer_norm %x, %gamma, %beta {epsilon = 0.0}
        : (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>)
    // %y = [[-1.0, 1.0], [-1.0, 1.0]]
    // %mean = [2.0, 12.0]
    // %inv_std = [1.0, 0.5]
    ```
  }];
  let f32Operands = [1, 2];
  let f32Results = [1, 2];
  let arguments = (ins Mpc_FloatTensor:$x, Mpc_F32Tensor:$gamma, Mpc_F32Tensor:$beta, Mpc_Epsilon:$epsilon);
  let results = (outs Mpc_FloatTensor:$y, Mpc_F32Tensor:$mean, Mpc_F32Tensor:$inv_std);
}

def Mpc_LayerNormGradOp : Mpc_DifferentiableGradientOp<"layer_norm_grad", [Mpc_Reducing, Mpc_IsGeneratedOnCpu]> {
  let summary = "Derivatives of layer_norm's y by x, gamma and beta.";
  let description = [{
    Let x_hat = (x - mean) * inv_std and g = dy * gamma, with n elements a row.
    dx = inv_std * (g - mean(g) - x_hat * mean(g * x_hat)). dgamma = sum over rows of dy * x_hat; dbeta = sum over rows
    of dy.

    ```mlir
    %dy = mpc.constant {value = dense<[[4.0, 0.0, 0.0, 0.0]]> : tensor<1x4xf32>} : () -> tensor<1x4xf32>
    %x = mpc.constant {value = dense<[[1.0, 1.0, 3.0, 3.0]]> : tensor<1x4xf32>} : () -> tensor<1x4xf32>
    %gamma = mpc.constant {value = dense<1.0> : tensor<4xf32>} : () -> tensor<4xf32>
    %mean = mpc.constant {value = dense<[2.0]> : tensor<1xf32>} : () -> tensor<1xf32>
    %inv_std = mpc.constant {value = dense<[1.0]> : tensor<1xf32>} : () -> tensor<1xf32>
    %dx, %dgamma, %dbeta = mpc.layer_norm_grad %dy, %x, %gamma, %mean, %inv_std
        : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<4xf32>, tensor<1xf32>, tensor<1xf32>)
        -> (tensor<1x4xf32>, tensor<4xf32>, tensor<4xf32>)
    // %dx = [[2.0, -2.0, 0.0, 0.0]]
    // %dgamma = [-4.0, 0.0, 0.0, 0.0]
    // %dbeta = [4.0, 0.0, 0.0, 0.0]
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$x, Mpc_F32Tensor:$gamma, Mpc_F32Tensor:$mean,
                       Mpc_F32Tensor:$inv_std);
  let results = (outs Mpc_FloatTensor:$dx, Mpc_F32Tensor:$dgamma, Mpc_F32Tensor:$dbeta);
}

def Mpc_GroupNormOp : Mpc_DifferentiableOp<"group_norm", "Norm", [Mpc_Image]> {
  let summary = "Normalises groups of channels of each sample (Wu and He 2018).";
  let description = [{
    x: [N, C, H, W] (or [N, H, W, C]); gamma, beta: [C]. Each sample's C / groups channels and all positions share a
    mean and a biased variance. Results mean and inv_std: [N, groups]. Formula and precision as in layer_norm.

    ```mlir
    %x = mpc.constant {value = dense<[[[[1.0, 3.0]], [[10.0, 14.0]]]]> : tensor<1x2x1x2xf32>}
        : () -> tensor<1x2x1x2xf32>
    %gamma = mpc.constant {value = dense<1.0> : tensor<2xf32>} : () -> tensor<2xf32>
    %beta = mpc.constant {value = dense<0.0> : tensor<2xf32>} : () -> tensor<2xf32>
    %y, %mean, %inv_std = mpc.group_norm %x, %gamma, %beta {groups = 2, epsilon = 0.0}
        : (tensor<1x2x1x2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<1x2x1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>)
    // %y = [[[[-1.0, 1.0]], [[-1.0, 1.0]]]]
    // %mean = [[2.0, 12.0]]
    // %inv_std = [[1.0, 0.5]]
    ```
  }];
  let f32Operands = [1, 2];
  let f32Results = [1, 2];
  let imageOperands = [0];
  let imageResults = [0];
  let arguments = (ins Mpc_FloatTensor:$x, Mpc_F32Tensor:$gamma, Mpc_F32Tensor:$beta, I64Attr:$groups,
                       Mpc_Epsilon:$epsilon, Mpc_DataFormat:$data_format);
  let results = (outs Mpc_FloatTensor:$y, Mpc_F32Tensor:$mean, Mpc_F32Tensor:$inv_std);
}

def Mpc_GroupNormGradOp : Mpc_DifferentiableGradientOp<"group_norm_grad", [Mpc_Image]> {
  let summary = "Derivatives of group_norm's y by x, gamma and beta.";
  let description = [{
    As layer_norm_grad, each group of a sample being a row and gamma varying by channel.

    ```mlir
    %dx, %dgamma, %dbeta = mpc.group_norm_grad %dy, %x, %gamma, %mean, %inv_std {groups = 3}
        : (tensor<2x6x4x4xf16>, tensor<2x6x4x4xf16>, tensor<6xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
        -> (tensor<2x6x4x4xf16>, tensor<6xf32>, tensor<6xf32>)
    ```
  }];
  let imageOperands = [0, 1];
  let imageResults = [0];
  let arguments = (ins Mpc_FloatTensor:$dy, Mpc_FloatTensor:$x, Mpc_F32Tensor:$gamma, Mpc_F32Tensor:$mean,
                       Mpc_F32Tensor:$inv_std, I64Attr:$groups, Mpc_DataFormat:$data_format);
  let results = (outs Mpc_FloatTensor:$dx, Mpc_F32Tensor:$dgamma, Mpc_F32Tensor:$dbeta);
}

def Mpc_BceWithLogitsOp : Mpc_DifferentiableOp<"bce_with_logits", "Loss", [Mpc_Reducing, Mpc_IsGeneratedOnCpu]> {
  let summary = "Binary cross-entropy of sigmoid(logits) against labels.";
  let description = [{
    loss = max(x, 0) - x * z + log(1 + exp(-|x|)) with logits x and labels z of one shape, in [0, 1]. `reduction`: `none`
    keeps the shape; `mean` divides the sum by the element count. Everything is f32; labels have no derivative.

    ```mlir
    %logits = mpc.constant {value = dense<[0.0, 0.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %labels = mpc.constant {value = dense<[1.0, 0.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %loss = mpc.bce_with_logits %logits, %labels : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>
    // %loss = 0.693147182
    ```
  }];
  let f32Operands = [0, 1];
  let f32Results = [0];
  let arguments = (ins Mpc_FloatTensor:$logits, Mpc_FloatTensor:$labels, Mpc_Reduction:$reduction);
  let results = (outs Mpc_F32Tensor:$loss);
}

def Mpc_BceWithLogitsGradOp
    : Mpc_DifferentiableGradientOp<"bce_with_logits_grad", [Mpc_Elementwise, Mpc_IsGeneratedOnCpu, Mpc_IsExpensive]> {
  let summary = "Derivative of bce_with_logits by the logits.";
  let description = [{
    dlogits = dloss * (sigmoid(logits) - labels), divided by the element count for `mean`.

    ```mlir
    %dloss = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
    %logits = mpc.constant {value = dense<[0.0, 0.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %labels = mpc.constant {value = dense<[1.0, 0.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %dlogits = mpc.bce_with_logits_grad %dloss, %logits, %labels
        : (tensor<f32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    // %dlogits = [-0.25, 0.25]
    ```
  }];
  let arguments = (ins Mpc_F32Tensor:$dloss, Mpc_FloatTensor:$logits, Mpc_FloatTensor:$labels,
                       Mpc_Reduction:$reduction);
  let results = (outs Mpc_FloatTensor:$dlogits);
}

#endif
