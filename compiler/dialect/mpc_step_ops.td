// Operations of a training step: differentiation, loss scaling, guarded updates, optimizers.
#ifndef MPC_STEP_OPS_TD
#define MPC_STEP_OPS_TD

include "compiler/dialect/mpc_base.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def Mpc_ValueAndGradOp : Op<Mpc_Dialect, "value_and_grad", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Calls a function and differentiates its first result.";
  let description = [{
    Results: the loss (first result of the callee), the callee's other results, then one gradient for each position of
    `wrt`, of that operand's type. `seed` is the cotangent of the loss: f32, of the loss's shape (a scalar seed is
    broadcast).

    ```mlir
    %loss, %mean, %dw = mpc.value_and_grad @forward(%w, %x) seed(%one) {wrt = array<i64: 0>}
        : (tensor<4x4xf32>, tensor<2x4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<4x4xf32>)
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<Mpc_Tensor>:$inputs, Mpc_F32Tensor:$seed,
                       DenseI64ArrayAttr:$wrt);
  let results = (outs Variadic<Mpc_Tensor>:$outputs);
  let assemblyFormat = "$callee `(` $inputs `)` `seed` `(` $seed `)` attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Mpc_UnscaleOp : Mpc_Op<"unscale", "Exempt", [Pure]> {
  let summary = "gradient * (1 / scale), in f32.";
  let description = "Reads a low or f32 gradient, writes f32.";
  let arguments = (ins Mpc_FloatTensor:$gradient, Mpc_F32Tensor:$scale);
  let results = (outs Mpc_F32Tensor:$output);
}

def Mpc_AllFiniteOp : Mpc_Op<"all_finite", "Exempt", [Pure]> {
  let summary = "Whether a loss and all gradients are finite, unscaled in f32.";
  let description = [{
    `first_bad` is the position of the first gradient g with a non-finite g * (1 / scale); -1 if every value is finite;
    -2 if the gradients are finite and the loss is not.
  }];
  let arguments = (ins Mpc_F32Tensor:$scale, Mpc_FloatTensor:$loss, Variadic<Mpc_FloatTensor>:$gradients);
  let results = (outs Mpc_BoolTensor:$finite, Mpc_I32Tensor:$first_bad);
}

def Mpc_GuardedUpdateOp : Op<Mpc_Dialect, "guarded_update", [
    SingleBlockImplicitTerminator<"YieldOp">, RecursiveMemoryEffects, NoRegionArguments]> {
  let summary = "New state where the condition holds, else the old state.";
  let description = [{
    Result i is the yielded value i if `condition`, else `old` i. The region may hold only what updates state: unscale,
    clip, optimizer, running-statistics and counter operations.

    ```mlir
    %w_new = mpc.guarded_update %finite else(%w) {
      %g = mpc.unscale %dw, %scale : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
      ...
      mpc.yield %updated : tensor<4xf32>
    } : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins Mpc_BoolTensor:$condition, Variadic<Mpc_Tensor>:$old);
  let results = (outs Variadic<Mpc_Tensor>:$updated);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat =
      "$condition `else` `(` $old `)` $body attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Mpc_YieldOp : Op<Mpc_Dialect, "yield", [Pure, Terminator, ReturnLike, HasParent<"GuardedUpdateOp">]> {
  let summary = "The new state of a guarded update.";
  let description = "One operand for each result of the enclosing operation.";
  let arguments = (ins Variadic<Mpc_Tensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
}

def Mpc_UpdateLossScaleOp : Mpc_Op<"update_loss_scale", "Exempt", [Pure]> {
  let summary = "One step of the loss-scale state machine.";
  let description = [{
    ```
    overflow (first_bad >= 0):  good = 0;  if dynamic and ++bad >= bad_limit { scale = max(min, scale * backoff); bad = 0 }
    finite (first_bad == -1):   bad = 0;   if dynamic and ++good >= interval { s = scale * growth;
                                           if isfinite(s) scale = min(max, s);  good = 0 }
    loss alone (first_bad == -2): nothing moves: no scale cures the forward pass
    skipped += not finite;  consecutive = finite ? 0 : consecutive + 1
    ```
    The scale stays in [2^-126, 2^126]. Every field is state, configuration too, so that it can change between steps
    without a recompile (a limit may be lowered below its counter, hence `>=`). `dynamic` is 0 or 1. `skip` is 1 where a non-finite step is skipped; the counters `skipped` and
    `consecutive` count nothing otherwise.
  }];
  let arguments = (ins Mpc_I32Tensor:$first_bad, Mpc_F32Tensor:$scale, Mpc_I32Tensor:$good, Mpc_I32Tensor:$bad,
                       Mpc_I32Tensor:$skipped, Mpc_I32Tensor:$consecutive, Mpc_F32Tensor:$growth,
                       Mpc_F32Tensor:$backoff, Mpc_F32Tensor:$minimum, Mpc_F32Tensor:$maximum,
                       Mpc_I32Tensor:$interval, Mpc_I32Tensor:$bad_limit, Mpc_I32Tensor:$dynamic,
                       Mpc_I32Tensor:$skip);
  let results = (outs Mpc_F32Tensor:$new_scale, Mpc_I32Tensor:$new_good, Mpc_I32Tensor:$new_bad,
                      Mpc_I32Tensor:$new_skipped, Mpc_I32Tensor:$new_consecutive);
}

//===-- State updates: operand i becomes result i where the optional predicate holds -----------------------------===//

// The first operands are state in the order of the results. `predicate`, the last operand, is written by
// flatten-guards: where it is false every result equals its state operand, bit for bit.
class Mpc_UpdateOp<string mnemonic> : Mpc_Op<mnemonic, "Exempt", [Pure, Mpc_StateUpdateTrait]>;

def Mpc_IncrementOp : Mpc_UpdateOp<"increment"> {
  let summary = "Counts: counter + 1.";
  let description = "For step and RNG counters.";
  let arguments = (ins Mpc_I32Tensor:$counter, Optional<Mpc_BoolTensor>:$predicate);
  let results = (outs Mpc_I32Tensor:$updated);
}

def Mpc_BatchNormRunningUpdateOp : Mpc_UpdateOp<"batch_norm_running_update"> {
  let summary = "Moves running statistics towards those of the batch.";
  let description = [{
    r' = momentum * r + (1 - momentum) * batch: momentum is the weight of the *old* statistic (MindSpore's meaning). The
    running variance takes the unbiased variance, batch * count / (count - 1), of `count` elements a channel.
  }];
  let arguments = (ins Mpc_F32Tensor:$running_mean, Mpc_F32Tensor:$running_variance, Mpc_F32Tensor:$mean,
                       Mpc_F32Tensor:$variance, Optional<Mpc_BoolTensor>:$predicate,
                       Mpc_Float<"0.9f">:$momentum, I64Attr:$count);
  let results = (outs Mpc_F32Tensor:$new_mean, Mpc_F32Tensor:$new_variance);
}

def Mpc_SgdOp : Mpc_UpdateOp<"sgd"> {
  let summary = "Stochastic gradient descent with optional momentum (PyTorch's definition).";
  let description = [{
    g = gradient / loss_scale + weight_decay * p. Without momentum p -= lr * g. With it v = g at step 0, then
    v = momentum * v + (1 - dampening) * g; p -= lr * v, or lr * (g + momentum * v) for nesterov.
  }];
  let arguments = (ins Mpc_FloatTensor:$parameter, Mpc_F32Tensor:$velocity, Mpc_FloatTensor:$gradient,
                       Mpc_F32Tensor:$learning_rate, Mpc_I32Tensor:$step, Optional<Mpc_BoolTensor>:$predicate,
                       Mpc_Float<"0.0f">:$momentum, Mpc_Float<"0.0f">:$dampening, Mpc_Flag:$nesterov,
                       Mpc_Float<"0.0f">:$weight_decay, Mpc_Float<"1.0f">:$loss_scale);
  let results = (outs Mpc_FloatTensor:$new_parameter, Mpc_F32Tensor:$new_velocity);
}

def Mpc_MomentumOp : Mpc_UpdateOp<"momentum"> {
  let summary = "Gradient descent with momentum (MindSpore's definition).";
  let description = [{
    g = gradient / loss_scale + weight_decay * p; v = momentum * v + g; p -= lr * v, or for nesterov
    p -= lr * (g + momentum * v).
  }];
  let arguments = (ins Mpc_FloatTensor:$parameter, Mpc_F32Tensor:$velocity, Mpc_FloatTensor:$gradient,
                       Mpc_F32Tensor:$learning_rate, Optional<Mpc_BoolTensor>:$predicate,
                       Mpc_Float<"0.9f">:$momentum, Mpc_Flag:$nesterov,
                       Mpc_Float<"0.0f">:$weight_decay, Mpc_Float<"1.0f">:$loss_scale);
  let results = (outs Mpc_FloatTensor:$new_parameter, Mpc_F32Tensor:$new_velocity);
}

def Mpc_AdamOp : Mpc_UpdateOp<"adam"> {
  let summary = "Adam with coupled weight decay (Kingma and Ba 2015; MindSpore's placement of epsilon).";
  let description = [{
    g = gradient / loss_scale + weight_decay * p; t = step + 1; m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2;
    p -= lr * sqrt(1 - b2^t) / (1 - b1^t) * m / (sqrt(v) + epsilon).
  }];
  let arguments = (ins Mpc_FloatTensor:$parameter, Mpc_F32Tensor:$moment1, Mpc_F32Tensor:$moment2,
                       Mpc_FloatTensor:$gradient, Mpc_F32Tensor:$learning_rate, Mpc_I32Tensor:$step,
                       Optional<Mpc_BoolTensor>:$predicate,
                       Mpc_Float<"0.9f">:$beta1, Mpc_Float<"0.999f">:$beta2, Mpc_Float<"1e-8f">:$epsilon,
                       Mpc_Float<"0.0f">:$weight_decay, Mpc_Float<"1.0f">:$loss_scale);
  let results = (outs Mpc_FloatTensor:$new_parameter, Mpc_F32Tensor:$new_moment1, Mpc_F32Tensor:$new_moment2);
}

def Mpc_AdamWeightDecayOp : Mpc_UpdateOp<"adam_weight_decay"> {
  let summary = "Adam with decoupled weight decay and no bias correction (MindSpore's AdamWeightDecay).";
  let description = [{
    m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; p -= lr * (m / (sqrt(v) + epsilon) + weight_decay * p).
  }];
  let arguments = (ins Mpc_FloatTensor:$parameter, Mpc_F32Tensor:$moment1, Mpc_F32Tensor:$moment2,
                       Mpc_FloatTensor:$gradient, Mpc_F32Tensor:$learning_rate, Optional<Mpc_BoolTensor>:$predicate,
                       Mpc_Float<"0.9f">:$beta1, Mpc_Float<"0.999f">:$beta2, Mpc_Float<"1e-6f">:$epsilon,
                       Mpc_Float<"0.0f">:$weight_decay);
  let results = (outs Mpc_FloatTensor:$new_parameter, Mpc_F32Tensor:$new_moment1, Mpc_F32Tensor:$new_moment2);
}

#endif
