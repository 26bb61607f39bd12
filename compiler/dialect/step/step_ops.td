// Operations of a training step: differentiation, loss scaling, guarded updates, optimizers.
#ifndef MPC_STEP_OPS_TD
#define MPC_STEP_OPS_TD

include "compiler/dialect/mpc_base.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def Mpc_ValueAndGradOp
    : Op<Mpc_Dialect, "value_and_grad", [DeclareOpInterfaceMethods<SymbolUserOpInterface>, Mpc_IsGradientRequest]> {
  let summary = "Calls a function and differentiates its first result.";
  let description = [{
    Results: the loss (first result of the callee), the callee's other results, then one gradient for each position of
    `wrt`, of that operand's type. `seed` is the cotangent of the loss: f32, of the loss's shape (a scalar seed is
    broadcast). `loss_id` chooses among several loss scalers; -1: the place of this operation among those of the step.

    ```mlir
    func.func private @sum_of_squares(%w: tensor<2xf32>) -> tensor<f32> {
      %squares = mpc.square %w : tensor<2xf32>
      %loss = mpc.reduce_sum %squares {axes = []} : (tensor<2xf32>) -> tensor<f32>
      return %loss : tensor<f32>
    }

    %w = mpc.constant {value = dense<[3.0, 4.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
    %loss, %dw = mpc.value_and_grad @sum_of_squares(%w) seed(%one) {wrt = array<i64: 0>}
        : (tensor<2xf32>, tensor<f32>) -> (tensor<f32>, tensor<2xf32>)
    // %loss = 25.0
    // %dw = [6.0, 8.0]
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<Mpc_Tensor>:$inputs, Mpc_F32Tensor:$seed,
                       DenseI64ArrayAttr:$wrt, Mpc_Int<"-1">:$loss_id);
  let results = (outs Variadic<Mpc_Tensor>:$outputs);
  let assemblyFormat = "$callee `(` $inputs `)` `seed` `(` $seed `)` attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The function that it differentiates; null: there is none of this name.
    ::mlir::func::FuncOp getFunction();
  }];
}

def Mpc_BackwardOp : Op<Mpc_Dialect, "backward", [Mpc_IsGradientRequest]> {
  let summary = "Differentiates a value of the same function.";
  let description = [{
    One gradient for each operand of `wrt`, of its type, from the operations that lead from it to `loss`. `seed` and
    `loss_id` are those of value_and_grad. Several losses may share forward operations: they run once.

    `by_values` says that `wrt` are values of the batch, such as inputs, and no state. The gradients are values as any
    others: no loss scale multiplies them, no check decides by them, and nothing averages them over micro-batches.

    ```mlir
    %w = mpc.constant {value = dense<[3.0, 4.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
    %squares = mpc.square %w : tensor<2xf32>
    %loss = mpc.reduce_sum %squares {axes = []} : (tensor<2xf32>) -> tensor<f32>
    %dw = mpc.backward %loss wrt(%w) seed(%one) : (tensor<f32>, tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
    // %dw = [6.0, 8.0]
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$loss, Variadic<Mpc_FloatTensor>:$wrt, Mpc_F32Tensor:$seed,
                       Mpc_Int<"-1">:$loss_id, Mpc_Flag:$by_values);
  let results = (outs Variadic<Mpc_FloatTensor>:$gradients);
  let assemblyFormat =
      "$loss `wrt` `(` $wrt `)` `seed` `(` $seed `)` attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Mpc_CustomVjpOp : Op<Mpc_Dialect, "custom_vjp", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>, DeclareOpInterfaceMethods<Mpc_DifferentiableInterface>]> {
  let summary = "Calls a function whose derivative the user wrote.";
  let description = [{
    `callee` maps inputs to outputs. `vjp` takes the inputs, the outputs and one cotangent an output, and returns one
    cotangent a floating input, of its type. Autodiff inlines both; nothing of `callee` is differentiated.

    ```mlir
    func.func private @round(%x: tensor<2xf32>) -> tensor<2xf32> {
      %y = mpc.floor %x : tensor<2xf32>
      return %y : tensor<2xf32>
    }
    func.func private @straight_through(%x: tensor<2xf32>, %y: tensor<2xf32>, %dy: tensor<2xf32>) -> tensor<2xf32> {
      return %dy : tensor<2xf32>
    }

    %x = mpc.constant {value = dense<[1.5, -0.5]> : tensor<2xf32>} : () -> tensor<2xf32>
    %y = mpc.custom_vjp @round(%x) vjp @straight_through : (tensor<2xf32>) -> tensor<2xf32>
    // %y = [1.0, -1.0]
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, FlatSymbolRefAttr:$vjp, Variadic<Mpc_Tensor>:$inputs);
  let results = (outs Variadic<Mpc_Tensor>:$outputs);
  let assemblyFormat = "$callee `(` $inputs `)` `vjp` $vjp attr-dict `:` functional-type(operands, results)";
}

def Mpc_RepeatOp : Op<Mpc_Dialect, "repeat", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Calls a function several times, each time with what it returned.";
  let description = [{
    `callee` is a private function with `mpc.sequence`: its results are new values of its first arguments, of their types
    and in their order. The other arguments are the same in every call. The results are those of the last of `count` calls.
    Passes take it for an operation with effects: they neither merge, move nor remove it.

    Lowering makes the function a sequence of the Program, which one instruction runs. The graph of a step on a GPU holds
    the kernels of every call. The front end traces no such operation, and autodiff has no derivative of it.

    ```mlir
    func.func private @halve(%x: tensor<2xf32>, %half: tensor<f32>) -> tensor<2xf32> attributes {mpc.sequence} {
      %y = mpc.mul %x, %half : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
      return %y : tensor<2xf32>
    }

    %x = mpc.constant {value = dense<[8.0, 16.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %half = mpc.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
    %y = mpc.repeat @halve(%x, %half) {count = 3 : i64} : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
    // %y = [1.0, 2.0]
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<Mpc_Tensor>:$inputs, I64Attr:$count);
  let results = (outs Variadic<Mpc_Tensor>:$outputs);
  let assemblyFormat = "$callee `(` $inputs `)` attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The function that it calls.
    ::mlir::func::FuncOp getFunction();
  }];
}

def Mpc_ScaleLossOp
    : Mpc_DifferentiableOp<"scale_loss", "Exempt", [Mpc_InPhase<"Scale">, Mpc_Elementwise, Mpc_IsScaling]> {
  let summary = "loss * scale, in f32: what a gradient scaler gives to the backward pass.";
  let description = [{
    The scale is a scalar; it has no derivative.

    ```mlir
    %loss = mpc.constant {value = dense<3.0> : tensor<f32>} : () -> tensor<f32>
    %scale = mpc.constant {value = dense<1024.0> : tensor<f32>} : () -> tensor<f32>
    %scaled = mpc.scale_loss %loss, %scale : tensor<f32>
    // %scaled = 3072.0
    ```
  }];
  let arguments = (ins Mpc_F32Tensor:$loss, Mpc_F32Tensor:$scale);
  let results = (outs Mpc_F32Tensor:$output);
}

// An operation that says which of its operands are gradients.
defvar Mpc_ReadsGradients = DeclareOpInterfaceMethods<Mpc_GradientReaderInterface, ["getGradientOperands"]>;

def Mpc_UnscaleOp
    : Mpc_Op<"unscale", "Exempt",
             [Pure, DeclareOpInterfaceMethods<Mpc_DifferentiableInterface>, Mpc_InPhase<"Unscale">,
              Mpc_GradientReaderInterface, Mpc_Elementwise, Mpc_IsScaling,
              Mpc_FollowsUpdate, Mpc_ReadsParameterGradients, Mpc_EndsScale,
              Mpc_IsBesideNetwork, Mpc_PreparesUpdate]> {
  let summary = "gradient * (1 / scale), in f32.";
  let description = [{
    Reads a low or f32 gradient, writes f32.

    ```mlir
    %dw = mpc.constant {value = dense<[2.0, 4.0]> : tensor<2xf16>} : () -> tensor<2xf16>
    %scale = mpc.constant {value = dense<4.0> : tensor<f32>} : () -> tensor<f32>
    %unscaled = mpc.unscale %dw, %scale : (tensor<2xf16>, tensor<f32>) -> tensor<2xf32>
    // %unscaled = [0.5, 1.0]
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$gradient, Mpc_F32Tensor:$scale);
  let results = (outs Mpc_F32Tensor:$output);
}

def Mpc_AllFiniteOp
    : Mpc_Op<"all_finite", "Exempt",
             [Pure, Mpc_InPhase<"Check">, Mpc_ReadsGradients, Mpc_FollowsUpdate, Mpc_ReadsParameterGradients,
              Mpc_EndsScale, Mpc_DecidesStep,
              Mpc_IsBesideNetwork]> {
  let summary = "Whether a loss and all gradients are finite, unscaled in f32.";
  let description = [{
    `first_bad` is the position of the first gradient g with a non-finite g * (1 / scale). It is -1 if every value is
    finite, and -2 if the gradients are finite and the loss is not. A scalar flag in the place of a gradient is what
    mpc.check_finite found of it.

    ```mlir
    %scale = mpc.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
    %loss = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
    %dw = mpc.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %db = mpc.constant {value = dense<[3.0e38]> : tensor<1xf32>} : () -> tensor<1xf32>
    %finite, %first_bad = mpc.all_finite %scale, %loss, %dw, %db
        : (tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<1xf32>) -> (tensor<i1>, tensor<i32>)
    // %finite = false
    // %first_bad = 1
    ```
  }];
  let arguments = (ins Mpc_F32Tensor:$scale, Mpc_FloatTensor:$loss, Variadic<Mpc_GradientOrFlag>:$gradients);
  let results = (outs Mpc_BoolTensor:$finite, Mpc_I32Tensor:$first_bad);
}

def Mpc_CheckFiniteOp
    : Mpc_Op<"check_finite", "Exempt",
             [Pure, Mpc_InPhase<"Check">, Mpc_Reducing, Mpc_FollowsUpdate, Mpc_IsGradientPart]> {
  let summary = "Whether every element of one gradient is finite, unscaled in f32.";
  let description = [{
    The part of mpc.all_finite that is one gradient's: of every g * (1 / scale). The fusion pass takes it out of
    mpc.all_finite where the region that produces the gradient can check it.

    ```mlir
    %dw = mpc.constant {value = dense<[1.0, 3.0e38]> : tensor<2xf32>} : () -> tensor<2xf32>
    %scale = mpc.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
    %finite = mpc.check_finite %dw, %scale : (tensor<2xf32>, tensor<f32>) -> tensor<i1>
    // %finite = false
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$gradient, Mpc_F32Tensor:$scale);
  let results = (outs Mpc_BoolTensor:$finite);
}

def Mpc_MergeChecksOp : Mpc_Op<"merge_checks", "Exempt", [Pure, Mpc_InPhase<"Check">, Mpc_IsBesideNetwork]> {
  let summary = "The `first_bad` of several finite checks together.";
  let description = [{
    The largest position if any is >= 0; else -2 if any is -2; else -1.

    ```mlir
    %finite = mpc.constant {value = dense<-1> : tensor<i32>} : () -> tensor<i32>
    %bad = mpc.constant {value = dense<2> : tensor<i32>} : () -> tensor<i32>
    %first_bad = mpc.merge_checks %finite, %bad : tensor<i32>
    // %first_bad = 2
    ```
  }];
  let arguments = (ins Variadic<Mpc_I32Tensor>:$checks);
  let results = (outs Mpc_I32Tensor:$first_bad);
}

class Mpc_FlagReductionOp<string mnemonic, string what>
    : Mpc_Op<mnemonic, "Exempt", [Pure, Mpc_InPhase<"Check">, Mpc_JoinsFlags, Mpc_IsBesideNetwork]> {
  let summary = "Whether " # what # " scalar flags hold.";
  let description = [{
    At least one operand.

    ```mlir}] # example # [{  ```
  }];
  let arguments = (ins Variadic<Mpc_BoolTensor>:$flags);
  let results = (outs Mpc_BoolTensor:$output);
}
def Mpc_AllOfOp : Mpc_FlagReductionOp<"all_of", "all"> {
  let example = [{
    %finite = mpc.constant {value = dense<true> : tensor<i1>} : () -> tensor<i1>
    %in_range = mpc.constant {value = dense<false> : tensor<i1>} : () -> tensor<i1>
    %y = mpc.all_of %finite, %in_range : tensor<i1>
    // %y = false
  }];
}
def Mpc_AnyOfOp : Mpc_FlagReductionOp<"any_of", "any of the"> {
  let example = [{
    %finite = mpc.constant {value = dense<true> : tensor<i1>} : () -> tensor<i1>
    %in_range = mpc.constant {value = dense<false> : tensor<i1>} : () -> tensor<i1>
    %y = mpc.any_of %finite, %in_range : tensor<i1>
    // %y = true
  }];
}

def Mpc_GlobalNormOp
    : Mpc_Op<"global_norm", "Exempt",
             [Pure, Mpc_InPhase<"Clip">, Mpc_ReadsGradients, Mpc_ReadsParameterGradients, Mpc_DecidesStep,
              Mpc_IsBesideNetwork]> {
  let summary = "sqrt of the sum of squares of every element of every gradient.";
  let description = [{
    Accumulated in f64, in operand order: finite f32 gradients have a finite norm, though their squares overflow f32.
    With `unscale` the first operand is a scale: the norm is that of the gradients times 1 / scale, each rounded to f32.
    The last `sums` operands are what mpc.sum_of_squares gave of gradients. A norm that clips is f64; one that was made
    before norms were may be f32.

    ```mlir
    %dw = mpc.constant {value = dense<[3.0, 0.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %db = mpc.constant {value = dense<[4.0]> : tensor<1xf32>} : () -> tensor<1xf32>
    %norm = mpc.global_norm %dw, %db : (tensor<2xf32>, tensor<1xf32>) -> tensor<f64>
    // %norm = 5.0
    ```
  }];
  let arguments = (ins Variadic<Mpc_FloatTensor>:$inputs, Mpc_Flag:$unscale, Mpc_Int<"0">:$sums);
  let results = (outs Mpc_F32Tensor:$norm);
  let extraDeclarations = [{
    /// Null without `unscale`.
    ::mlir::Value getScale() { return getUnscale() ? getInputs().front() : ::mlir::Value(); }
    ::mlir::OperandRange getGradients() { return getInputs().drop_front(getUnscale() ? 1 : 0).drop_back(getSums()); }
  }];
}

def Mpc_SumOfSquaresOp
    : Mpc_Op<"sum_of_squares", "Exempt", [Pure, Mpc_InPhase<"Clip">, Mpc_Reducing, Mpc_IsGradientPart]> {
  let summary = "The sum of squares of every element of one gradient.";
  let description = [{
    The part of mpc.global_norm that is one gradient's, accumulated in f64. With `scale` of g * (1 / scale), rounded to
    f32. The fusion pass takes it out of mpc.global_norm where the region that produces the gradient can sum it.

    ```mlir
    %dw = mpc.constant {value = dense<[1.0, 2.0, 2.0]> : tensor<3xf32>} : () -> tensor<3xf32>
    %sum = mpc.sum_of_squares %dw : (tensor<3xf32>) -> tensor<f64>
    // %sum = 9.0
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$gradient, Optional<Mpc_F32Tensor>:$scale);
  let results = (outs Mpc_F32Tensor:$sum);
}

def Mpc_ClipByNormOp
    : Mpc_Op<"clip_by_norm", "Exempt",
             [Pure, Mpc_InPhase<"Clip">, Mpc_GradientReaderInterface, Mpc_Elementwise, Mpc_IsScaling,
              Mpc_ReadsParameterGradients,
              Mpc_IsBesideNetwork,
              Mpc_PreparesUpdate]> {
  let summary = "gradient * min(1, max_norm / (norm + 1e-6)).";
  let description = [{
    `norm` is that of mpc.global_norm. The factor is computed in f64 and rounded to f32; of a norm that is not finite it
    is NaN.

    ```mlir
    %dw = mpc.constant {value = dense<[3.0, 4.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %norm = mpc.constant {value = dense<5.0> : tensor<f64>} : () -> tensor<f64>
    %clipped = mpc.clip_by_norm %dw, %norm {max_norm = 1.0} : (tensor<2xf32>, tensor<f64>) -> tensor<2xf32>
    // %clipped = [0.599999905, 0.799999833]
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$gradient, Mpc_F32Tensor:$norm, F32Attr:$max_norm);
  let results = (outs Mpc_F32Tensor:$output);
}

def Mpc_TensorStatisticsOp : Mpc_Op<"tensor_statistics", "Exempt", [Pure, Mpc_IsBesideNetwork]> {
  let summary = "Exponents and magnitude of a tensor: what diagnosis and the precision profile read.";
  let description = [{
    `exponents`: i32 [256], the number of elements by the biased exponent of their f32 value. Bin 0 holds zeros and f32
    subnormals, bin 127 values in [1, 2), bin 255 infinities and NaN. `zeros`: how many are exactly zero. `largest`: the
    largest finite magnitude, 0 if there is none.

    ```mlir
    %x = mpc.constant {value = dense<[0.0, -3.0, 2.0]> : tensor<3xf32>} : () -> tensor<3xf32>
    %exponents, %zeros, %largest = mpc.tensor_statistics %x
        : (tensor<3xf32>) -> (tensor<256xi32>, tensor<i32>, tensor<f32>)
    // %zeros = 1
    // %largest = 3.0
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$x);
  let results = (outs Mpc_I32Tensor:$exponents, Mpc_I32Tensor:$zeros, Mpc_F32Tensor:$largest);
}

def Mpc_GuardedUpdateOp : Op<Mpc_Dialect, "guarded_update", [
    SingleBlockImplicitTerminator<"YieldOp">, RecursiveMemoryEffects, NoRegionArguments, Mpc_EndsScale,
    Mpc_IsBesideNetwork]> {
  let summary = "New state where the condition holds, else the old state.";
  let description = [{
    Result i is the yielded value i if `condition`, else `old` i. The region holds operations that update state
    (optimizers, running statistics, counters) and what prepares their operands: unscale, clip_by_norm, casts and
    constants.

    ```mlir
    %new:2 = mpc.guarded_update %finite else(%w, %v) {
      %g = mpc.unscale %dw, %scale : (tensor<4xf16>, tensor<f32>) -> tensor<4xf32>
      %w1, %v1 = mpc.momentum %w, %v, %g, %rate
          : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
      mpc.yield %w1, %v1 : tensor<4xf32>, tensor<4xf32>
    } : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    ```
  }];
  let arguments = (ins Mpc_BoolTensor:$condition, Variadic<Mpc_Tensor>:$old);
  let results = (outs Variadic<Mpc_Tensor>:$updated);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$condition `else` `(` $old `)` $body attr-dict `:` "
                       "custom<HeldTypes>(type($condition), type($old), type($updated))";
  let hasVerifier = 1;
}

def Mpc_YieldOp : Op<Mpc_Dialect, "yield", [Pure, Terminator, ReturnLike, ParentOneOf<["FusionOp", "GuardedUpdateOp"]>]> {
  let summary = "The results of the enclosing region: the new state of a guarded update, what a fusion stores.";
  let description = [{
    One operand for each result of the enclosing operation.

    ```mlir
    %finite = mpc.constant {value = dense<true> : tensor<i1>} : () -> tensor<i1>
    %step = mpc.constant {value = dense<7> : tensor<i32>} : () -> tensor<i32>
    %next = mpc.guarded_update %finite else(%step) {
      %more = mpc.increment %step : tensor<i32>
      mpc.yield %more : tensor<i32>
    } : (tensor<i1>, tensor<i32>) -> tensor<i32>
    // %next = 8
    ```
  }];
  let arguments = (ins Variadic<Mpc_Tensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
}

def Mpc_UpdateLossScaleOp
    : Mpc_Op<"update_loss_scale", "Exempt",
             [Pure, Mpc_InPhase<"Scale">, Mpc_FollowsUpdate, Mpc_DecidesStep, Mpc_IsBesideNetwork]> {
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

    ```mlir
    %new_scale, %new_good, %new_bad, %new_skipped, %new_consecutive = mpc.update_loss_scale
        %first_bad, %scale, %good, %bad, %skipped, %consecutive, %growth, %backoff, %minimum, %maximum,
        %interval, %bad_limit, %dynamic, %skip
        : (tensor<i32>, tensor<f32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<f32>, tensor<f32>,
           tensor<f32>, tensor<f32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>)
        -> (tensor<f32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>)
    ```
  }];
  let arguments = (ins Mpc_I32Tensor:$first_bad, Mpc_F32Tensor:$scale, Mpc_I32Tensor:$good, Mpc_I32Tensor:$bad,
                       Mpc_I32Tensor:$skipped, Mpc_I32Tensor:$consecutive, Mpc_F32Tensor:$growth,
                       Mpc_F32Tensor:$backoff, Mpc_F32Tensor:$minimum, Mpc_F32Tensor:$maximum,
                       Mpc_I32Tensor:$interval, Mpc_I32Tensor:$bad_limit, Mpc_I32Tensor:$dynamic,
                       Mpc_I32Tensor:$skip);
  let results = (outs Mpc_F32Tensor:$new_scale, Mpc_I32Tensor:$new_good, Mpc_I32Tensor:$new_bad,
                      Mpc_I32Tensor:$new_skipped, Mpc_I32Tensor:$new_consecutive);
}

#endif
