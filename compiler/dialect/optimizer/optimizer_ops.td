// Optimizers: one update of one parameter and its slots.
//
// `gradient` below is what mpc.unscale and mpc.clip_by_norm would make of the operand. With `unscale`, the scalar
// `scale` divides it. With `max_norm`, it is clipped by the scalar `norm`. The optional predicate is the last scalar.
#ifndef MPC_OPTIMIZER_OPS_TD
#define MPC_OPTIMIZER_OPS_TD

include "compiler/dialect/step/state_ops.td"

// A parameter that the network reads in a low type has a shadow: its low copy, written with it. `shadow` names the type
// and `new_shadow` is the last result: the new parameter rounded to that type (the old one where the predicate is false).

// The scalars and the attribute of the work between the backward pass and the rule that the update itself does: see
// OptimizerOpInterface.
def Mpc_UpdateScalar : StaticShapeTensorOf<[F32, F64, I1]>;
def Mpc_MaxNorm : Mpc_Float<"0.0f">;
class Mpc_OptimizerOp<string mnemonic, list<Trait> traits = []>
    : Mpc_UpdateOp<mnemonic, [Mpc_OptimizerInterface, Mpc_GradientReaderInterface] # traits>;

def Mpc_SgdOp : Mpc_OptimizerOp<"sgd", [Mpc_IsElementwiseUpdate]> {
  let summary = "Stochastic gradient descent with optional momentum (PyTorch's definition).";
  let description = [{
    g = gradient / loss_scale + weight_decay * p. Without momentum p -= lr * g. With it v = g at step 0, then
    v = momentum * v + (1 - dampening) * g; p -= lr * v, or lr * (g + momentum * v) for nesterov.

    ```mlir
    %w = mpc.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %velocity = mpc.constant {value = dense<0.0> : tensor<2xf32>} : () -> tensor<2xf32>
    %dw = mpc.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %rate = mpc.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
    %step = mpc.constant {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %new_w, %new_velocity = mpc.sgd %w, %velocity, %dw, %rate, %step
        : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xf32>)
    // %new_w = [0.5, 1.0]
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$parameter, Mpc_F32Tensor:$velocity, Mpc_FloatTensor:$gradient,
                       Mpc_F32Tensor:$learning_rate, Mpc_I32Tensor:$step, Variadic<Mpc_UpdateScalar>:$scalars,
                       Mpc_Float<"0.0f">:$momentum, Mpc_Float<"0.0f">:$dampening, Mpc_Flag:$nesterov,
                       Mpc_Float<"0.0f">:$weight_decay, Mpc_LossScale:$loss_scale, Mpc_Flag:$unscale,
                       Mpc_MaxNorm:$max_norm, Mpc_LowCopy:$shadow);
  let results = (outs Mpc_FloatTensor:$new_parameter, Mpc_F32Tensor:$new_velocity,
                      Optional<Mpc_FloatTensor>:$new_shadow);
}

def Mpc_MomentumOp : Mpc_OptimizerOp<"momentum", [Mpc_IsElementwiseUpdate]> {
  let summary = "Gradient descent with momentum (MindSpore's definition).";
  let description = [{
    g = gradient / loss_scale + weight_decay * p; v = momentum * v + g; p -= lr * v, or for nesterov
    p -= lr * (g + momentum * v).

    ```mlir
    %w = mpc.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %velocity = mpc.constant {value = dense<[2.0, 4.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %dw = mpc.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %rate = mpc.constant {value = dense<0.25> : tensor<f32>} : () -> tensor<f32>
    %new_w, %new_velocity = mpc.momentum %w, %velocity, %dw, %rate {momentum = 0.5}
        : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>) -> (tensor<2xf32>, tensor<2xf32>)
    // %new_w = [0.5, 1.0]
    // %new_velocity = [2.0, 4.0]
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$parameter, Mpc_F32Tensor:$velocity, Mpc_FloatTensor:$gradient,
                       Mpc_F32Tensor:$learning_rate, Variadic<Mpc_UpdateScalar>:$scalars,
                       Mpc_Momentum:$momentum, Mpc_Flag:$nesterov,
                       Mpc_Float<"0.0f">:$weight_decay, Mpc_LossScale:$loss_scale, Mpc_Flag:$unscale,
                       Mpc_MaxNorm:$max_norm, Mpc_LowCopy:$shadow);
  let results = (outs Mpc_FloatTensor:$new_parameter, Mpc_F32Tensor:$new_velocity,
                      Optional<Mpc_FloatTensor>:$new_shadow);
}

def Mpc_AdamOp : Mpc_OptimizerOp<"adam", [Mpc_IsElementwiseUpdate]> {
  let summary = "Adam with coupled weight decay (Kingma and Ba 2015; MindSpore's placement of epsilon).";
  let description = [{
    g = gradient / loss_scale + weight_decay * p; t = step + 1. m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2.
    p -= lr * sqrt(1 - b2^t) / (1 - b1^t) * m / (sqrt(v) + epsilon).

    ```mlir
    %w = mpc.constant {value = dense<[1.0]> : tensor<1xf32>} : () -> tensor<1xf32>
    %zero = mpc.constant {value = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
    %dw = mpc.constant {value = dense<[4.0]> : tensor<1xf32>} : () -> tensor<1xf32>
    %rate = mpc.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
    %step = mpc.constant {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %new_w, %moment1, %moment2 = mpc.adam %w, %zero, %zero, %dw, %rate, %step
        {beta1 = 0.5 : f32, beta2 = 0.75 : f32, epsilon = 0.0 : f32}
        : (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<f32>, tensor<i32>)
        -> (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>)
    // %new_w = [0.5]
    // %moment1 = [2.0]
    // %moment2 = [4.0]
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$parameter, Mpc_F32Tensor:$moment1, Mpc_F32Tensor:$moment2,
                       Mpc_FloatTensor:$gradient, Mpc_F32Tensor:$learning_rate, Mpc_I32Tensor:$step,
                       Variadic<Mpc_UpdateScalar>:$scalars,
                       Mpc_Beta1:$beta1, Mpc_Beta2:$beta2, Mpc_AdamEpsilon:$epsilon,
                       Mpc_Float<"0.0f">:$weight_decay, Mpc_LossScale:$loss_scale, Mpc_Flag:$unscale,
                       Mpc_MaxNorm:$max_norm, Mpc_LowCopy:$shadow);
  let results = (outs Mpc_FloatTensor:$new_parameter, Mpc_F32Tensor:$new_moment1, Mpc_F32Tensor:$new_moment2,
                      Optional<Mpc_FloatTensor>:$new_shadow);
}

def Mpc_AdamWeightDecayOp : Mpc_OptimizerOp<"adam_weight_decay", [Mpc_IsElementwiseUpdate]> {
  let summary = "Adam with decoupled weight decay and no bias correction (MindSpore's AdamWeightDecay).";
  let description = [{
    m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; p -= lr * (m / (sqrt(v) + epsilon) + weight_decay * p).

    ```mlir
    %w = mpc.constant {value = dense<[1.0]> : tensor<1xf32>} : () -> tensor<1xf32>
    %zero = mpc.constant {value = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
    %dw = mpc.constant {value = dense<[4.0]> : tensor<1xf32>} : () -> tensor<1xf32>
    %rate = mpc.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
    %new_w, %moment1, %moment2 = mpc.adam_weight_decay %w, %zero, %zero, %dw, %rate
        {beta1 = 0.5 : f32, beta2 = 0.75 : f32, epsilon = 0.0 : f32, weight_decay = 0.5 : f32}
        : (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<f32>)
        -> (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>)
    // %new_w = [0.25]
    // %moment1 = [2.0]
    // %moment2 = [4.0]
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$parameter, Mpc_F32Tensor:$moment1, Mpc_F32Tensor:$moment2,
                       Mpc_FloatTensor:$gradient, Mpc_F32Tensor:$learning_rate, Variadic<Mpc_UpdateScalar>:$scalars,
                       Mpc_Beta1:$beta1, Mpc_Beta2:$beta2, Mpc_LambEpsilon:$epsilon,
                       Mpc_Float<"0.0f">:$weight_decay, Mpc_Flag:$unscale,
                       Mpc_MaxNorm:$max_norm, Mpc_LowCopy:$shadow);
  let results = (outs Mpc_FloatTensor:$new_parameter, Mpc_F32Tensor:$new_moment1, Mpc_F32Tensor:$new_moment2,
                      Optional<Mpc_FloatTensor>:$new_shadow);
}

def Mpc_AdamWOp : Mpc_OptimizerOp<"adamw", [Mpc_IsElementwiseUpdate]> {
  let summary = "Adam with decoupled weight decay (Loshchilov and Hutter 2019; PyTorch's placement of epsilon).";
  let description = [{
    g = gradient / loss_scale; t = step + 1. p -= lr * weight_decay * p. m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2.
    p -= lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + epsilon).

    ```mlir
    %w = mpc.constant {value = dense<[1.0]> : tensor<1xf32>} : () -> tensor<1xf32>
    %zero = mpc.constant {value = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
    %dw = mpc.constant {value = dense<[4.0]> : tensor<1xf32>} : () -> tensor<1xf32>
    %rate = mpc.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
    %step = mpc.constant {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %new_w, %moment1, %moment2 = mpc.adamw %w, %zero, %zero, %dw, %rate, %step
        {beta1 = 0.5 : f32, beta2 = 0.75 : f32, epsilon = 0.0 : f32, weight_decay = 0.5 : f32}
        : (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<f32>, tensor<i32>)
        -> (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>)
    // %new_w = [0.25]
    // %moment1 = [2.0]
    // %moment2 = [4.0]
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$parameter, Mpc_F32Tensor:$moment1, Mpc_F32Tensor:$moment2,
                       Mpc_FloatTensor:$gradient, Mpc_F32Tensor:$learning_rate, Mpc_I32Tensor:$step,
                       Variadic<Mpc_UpdateScalar>:$scalars,
                       Mpc_Beta1:$beta1, Mpc_Beta2:$beta2, Mpc_AdamEpsilon:$epsilon,
                       Mpc_AdamWDecay:$weight_decay, Mpc_LossScale:$loss_scale, Mpc_Flag:$unscale,
                       Mpc_MaxNorm:$max_norm, Mpc_LowCopy:$shadow);
  let results = (outs Mpc_FloatTensor:$new_parameter, Mpc_F32Tensor:$new_moment1, Mpc_F32Tensor:$new_moment2,
                      Optional<Mpc_FloatTensor>:$new_shadow);
}

def Mpc_LambOp : Mpc_OptimizerOp<"lamb"> {
  let summary = "Layer-wise adaptive moments (You et al. 2020).";
  let description = [{
    t = step + 1; m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2.
    u = m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon) + weight_decay * p.
    r = |p| / |u|, limited to [0, 10], 1 where either norm is 0; p -= lr * r * u. Norms are f64.

    ```mlir
    %w = mpc.constant {value = dense<[2.0]> : tensor<1xf32>} : () -> tensor<1xf32>
    %zero = mpc.constant {value = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
    %dw = mpc.constant {value = dense<[4.0]> : tensor<1xf32>} : () -> tensor<1xf32>
    %rate = mpc.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
    %step = mpc.constant {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %new_w, %moment1, %moment2 = mpc.lamb %w, %zero, %zero, %dw, %rate, %step
        {beta1 = 0.5 : f32, beta2 = 0.75 : f32, epsilon = 0.0 : f32}
        : (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<f32>, tensor<i32>)
        -> (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>)
    // %new_w = [1.0]
    // %moment1 = [2.0]
    // %moment2 = [4.0]
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$parameter, Mpc_F32Tensor:$moment1, Mpc_F32Tensor:$moment2,
                       Mpc_FloatTensor:$gradient, Mpc_F32Tensor:$learning_rate, Mpc_I32Tensor:$step,
                       Variadic<Mpc_UpdateScalar>:$scalars,
                       Mpc_Beta1:$beta1, Mpc_Beta2:$beta2, Mpc_LambEpsilon:$epsilon,
                       Mpc_Float<"0.0f">:$weight_decay, Mpc_LossScale:$loss_scale, Mpc_Flag:$unscale,
                       Mpc_MaxNorm:$max_norm, Mpc_LowCopy:$shadow);
  let results = (outs Mpc_FloatTensor:$new_parameter, Mpc_F32Tensor:$new_moment1, Mpc_F32Tensor:$new_moment2,
                      Optional<Mpc_FloatTensor>:$new_shadow);
}

#endif
