// Passes that decide what is kept for the backward pass, and in which order operations run.
#ifndef MPC_MEMORY_PASSES_TD
#define MPC_MEMORY_PASSES_TD

include "passes/pass_base.td"

def SinkReluPass : MpcPass<"mpc-sink-relu", "::mlir::func::FuncOp"> {
  let summary = "Moves relu behind max pooling and dropout, so that less is saved for it";
  let description = [{
    The largest of several values and relu commute. So for 2x2 windows pooling first leaves a quarter of the elements to
    relu, its derivative and what is saved for it. Values and gradients are the same bits, since relu gives +0 for all
    that is not above zero. Where no element of a window is above zero, another one may win, but its derivative is zero.

    Dropout gives +0 or multiplies by at least 1. So it keeps signs, and relu commutes with it, bit by bit, backward
    too. The product after dropout keeps its operand anyway, which is then relu's result. Dropout's result is not kept.

    relu moves where the other operation alone reads it, reshapes and transposes between them aside, and where neither
    rounds to another type. It runs before autodiff.

    ```mlir
    // before
    %r = mpc.relu %x : tensor<2x3x4x4xf32>
    %y, %i = mpc.max_pool2d %r {...} : (tensor<2x3x4x4xf32>) -> (tensor<2x3x2x2xf32>, tensor<2x3x2x2xi8>)
    // after
    %p, %i = mpc.max_pool2d %x {...} : (tensor<2x3x4x4xf32>) -> (tensor<2x3x2x2xf32>, tensor<2x3x2x2xi8>)
    %y = mpc.relu %p : tensor<2x3x2x2xf32>
    ```
  }];
}

def ChunkHeadPass : MpcPass<"mpc-chunk-head", "::mlir::func::FuncOp"> {
  let summary = "Computes a language model's head, its loss and their gradients in chunks of rows";
  let description = [{
    Runs after autodiff and before fusion. The head is a product whose result is the logits [N, V]. Only
    `softmax_cross_entropy` and its gradient read the logits, maybe through casts. Only the two gradient products (and a
    bias's sum) read the gradient of the logits. With `chunks` = K above 1, rows are cut into K parts of sizes that
    differ by one at most, the larger ones first. Each part slices its rows of the hidden values and the labels. It
    computes its logits, its losses, its part of the gradient and its rows of the hidden values' gradient. It adds its
    part of the weight's gradient. So N / K rows of logits live at a time. `mpc.head_chunks` on the function holds the
    number of parts and the bytes of the logits. A function that has it is left as it is.

    * Logits, their gradient and the hidden values' gradient are the numbers that they were: each row is computed
      from the same operands with the same roundings. The divisor of a mean is the whole batch's.
    * The loss of a mean or a sum adds the rows' losses, joined again.
    * The parts of the weight's and the bias's gradient are f32 and added in f32 in the order of the rows, those of
      the weight by the product itself, whose bias is what it is added to; the sum is rounded once to the gradient's
      type. Compared with one product, the order of summation differs; no rounding to a low type is added. A gradient
      [V, X] is summed as [X, V], for which the logits' gradient is read as it lies, and transposed once.

    The head stays whole, and a remark says why, in three cases. Something else reads the logits; the loss decides what
    its own gradient is multiplied by; or there are fewer than K rows. `mpc.chain` on the addition of a bias's gradient
    keeps it apart from others: one region that adds all parts would compute all chunks.

    ```mlir
    // before
    %z = mpc.matmul %h, %w {transpose_b = true} : (tensor<8x4xf32>, tensor<16x4xf32>) -> tensor<8x16xf32>
    %loss, %lse = mpc.softmax_cross_entropy %z, %labels : ...
    %dz = mpc.softmax_cross_entropy_grad %seed, %z, %labels, %lse backward : ...
    %dh = mpc.matmul %dz, %w backward : ...
    %dw = mpc.matmul %dz, %h {transpose_a = true} backward : ...
    // after, chunks = 2: the share of a row, then for each half
    %eighth = mpc.div %seed, %eight backward : tensor<f32>
    %h0 = mpc.slice %h {sizes = [4, 4], starts = [0, 0]} : (tensor<8x4xf32>) -> tensor<4x4xf32>
    %l0 = mpc.slice %labels {sizes = [4], starts = [0]} : (tensor<8xi32>) -> tensor<4xi32>
    %z0 = mpc.matmul %h0, %w {transpose_b = true} : (tensor<4x4xf32>, tensor<16x4xf32>) -> tensor<4x16xf32>
    %loss0, %lse0 = mpc.softmax_cross_entropy %z0, %l0 {reduction = none} : ...
    %dz0 = mpc.softmax_cross_entropy_grad %eighth, %z0, %l0, %lse0 {reduction = sum} backward : ...
    %dh0 = mpc.matmul %dz0, %w backward : ...
    %dw0 = mpc.matmul %h0, %dz0 {transpose_a = true} backward : ... -> tensor<4x16xf32>
    // and in the second half and behind it
    %sum = mpc.matmul %h1, %dz1, %dw0 {transpose_a = true} backward : ...
    %dh = mpc.concat %dh0, %dh1 : ...
    %dw = mpc.transpose %sum {permutation = [1, 0]} : (tensor<4x16xf32>) -> tensor<16x4xf32>
    ```
  }];
  let options = [
    Option<"chunks", "chunks", "int64_t", "1", "Parts that the head's rows are cut into, at most 4096; 1 leaves it whole">];
}

def PadClassesPass : MpcPass<"mpc-pad-classes", "::mlir::func::FuncOp"> {
  let summary = "Pads the classes of a head to what the libraries of the target multiply fast";
  let description = [{
    Runs after autodiff and low copies, and before the head is cut into chunks. cuBLASLt's fast kernels take extents of
    f16 and bf16 that are multiples of 8. A vocabulary of 50,257 has products that are not. The pass takes the head that
    mpc-chunk-head describes, with sparse labels and a product of a low type. On other targets it does nothing.

    * The weight and a bias get zeros behind their classes, once a step.
    * `classes` of the loss and its gradient says how many of the logits' columns count. What lies behind them may be
      anything: it is never read as a number, since infinity times zero is NaN.
    * The gradient of the logits is zero behind the classes. So both gradient products read it as it lies. The product
      with the weight adds zero times zero.
    * The gradients of weight and bias lose the rows that belong to no class.

    Values are the numbers that they were: a sum takes in further zeros only. Kernels may add rows of another length in
    another order.

    A head is padded where moving its logits for three unaligned products costs more than padding. Padding moves the
    weight and its gradient once, and adds launches. `everywhere` pads every head that it can. `mpc.padded` on a product
    or a sum has both numbers of classes. A loss that has `classes` is left as it is. A remark says what was padded, or
    what else reads the logits or their gradient, so that nothing was.

    ```mlir
    // before
    %z = mpc.matmul %h, %w {transpose_b = true} : (tensor<8x4xbf16>, tensor<5x4xbf16>) -> tensor<8x5xbf16>
    %loss, %lse = mpc.softmax_cross_entropy %z, %labels : ...
    %dz = mpc.softmax_cross_entropy_grad %seed, %z, %labels, %lse backward : ...
    %dw = mpc.matmul %dz, %h {transpose_a = true} backward : ... -> tensor<5x4xbf16>
    // after, everywhere = true
    %p = mpc.pad %w {high = [3, 0], low = [0, 0]} : (tensor<5x4xbf16>) -> tensor<8x4xbf16>
    %z = mpc.matmul %h, %p {mpc.padded = array<i64: 5, 8>, transpose_b = true} : ... -> tensor<8x8xbf16>
    %loss, %lse = mpc.softmax_cross_entropy %z, %labels {classes = 5} : ...
    %dz = mpc.softmax_cross_entropy_grad %seed, %z, %labels, %lse {classes = 5} backward : ...
    %d = mpc.matmul %dz, %h {mpc.padded = array<i64: 5, 8>, transpose_a = true} backward : ... -> tensor<8x4xbf16>
    %dw = mpc.slice %d {sizes = [5, 4], starts = [0, 0]} backward : (tensor<8x4xbf16>) -> tensor<5x4xbf16>
    ```
  }];
  let options = [
    Option<"everywhere", "everywhere", "bool", "false", "Pads every head that it can, whether or not that pays">];
}

def RenormalizePass : MpcPass<"mpc-renormalize", "::mlir::func::FuncOp"> {
  let summary = "Computes a normalised image again where relu's derivative would read it";
  let description = [{
    relu's derivative asks whether relu's result is above zero. Behind `mpc.batch_norm_train` the derivative of the norm
    follows it, in the same generated kernel, and reads x and the statistics anyway. So the image is computed again
    there, by `mpc.batch_norm_apply`: an element costs four operations, and its two or four bytes are not read. Where
    nothing else in the backward pass reads relu's result, it is not kept either.

    Each element has the same bits. Generated code may add the norm's sums in another order than before. Other
    activations' derivatives read the image as before. The norm may also be `mpc.batch_norm_apply` itself, whose
    statistics a convolution made. It runs after layout and before `mpc-relu-mask`. Pipelines without fusion leave it
    out.

    ```mlir
    // before
    %n, %mean, %variance, %inv_std = mpc.batch_norm_train %x, %gamma, %beta : ...
    %y = mpc.relu %n : tensor<2x3x4x4xf16>
    %dn = mpc.relu_grad %dy, %y backward : tensor<2x3x4x4xf16>
    %dx, %dgamma, %dbeta = mpc.batch_norm_train_grad %dn, %x, %gamma, %mean, %inv_std backward : ...
    // after
    %n, %mean, %variance, %inv_std = mpc.batch_norm_train %x, %gamma, %beta : ...
    %y = mpc.relu %n : tensor<2x3x4x4xf16>
    %again = mpc.batch_norm_apply %x, %gamma, %beta, %mean, %inv_std backward : ...
    %dn = mpc.relu_grad %dy, %again backward : tensor<2x3x4x4xf16>
    %dx, %dgamma, %dbeta = mpc.batch_norm_train_grad %dn, %x, %gamma, %mean, %inv_std backward : ...
    ```
  }];
}

def ReluMaskPass : MpcPass<"mpc-relu-mask", "::mlir::func::FuncOp"> {
  let summary = "Keeps a byte an element for relu's derivative where its result is not kept anyway";
  let description = [{
    `mpc.relu_grad` asks whether relu's result, or that of a convolution or product that ends in relu, is above zero.
    Where nothing else in the backward pass reads the result, behind reshapes or not, one byte an element is kept
    instead. The result is compared with zero where it is made, and the derivative selects by the comparison. relu
    before a mean over the image or before an addition is such a case. relu before a convolution or a product is not:
    their own derivative reads the result. Where relu's operand is kept for something else and has the result's type,
    the derivative reads it instead.

    Values and gradients are the same bits: where the result is NaN or a zero of either sign the derivative is zero, as
    before. It runs after layout, so that the mask lies as the result does, and before fusion, which takes both
    operations in. Pipelines without fusion leave it out.

    ```mlir
    // before: 2 bytes an element are kept
    %y = mpc.relu %x : tensor<2x4x4x3xf16>
    %m = mpc.reduce_mean %y {axes = [1, 2]} : (tensor<2x4x4x3xf16>) -> tensor<2x3xf16>
    %dx = mpc.relu_grad %dy, %y backward : ...
    // after: 1 byte
    %y = mpc.relu %x : tensor<2x4x4x3xf16>
    %k = mpc.greater %y, %zero : (tensor<2x4x4x3xf16>, tensor<f32>) -> tensor<2x4x4x3xi1>
    %m = mpc.reduce_mean %y {axes = [1, 2]} : (tensor<2x4x4x3xf16>) -> tensor<2x3xf16>
    %dx = mpc.where %k, %dy, %zero backward : ...
    ```
  }];
}

def RecomputePass : MpcPass<"mpc-recompute", "::mlir::func::FuncOp"> {
  let summary = "Computes forward values again in the backward pass instead of keeping them";
  let description = [{
    The tracer marks what a Cell with `Recompute()` calls with `mpc.recompute`. Marked operations get copies with
    `mpc.recomputed`, before the first operation of the backward pass that reads them. So does what the copies read
    inside the same call. What a call takes from outside and what it hands on stays where it is. Casts and transposes
    that passes have put after a marked operation follow it. A copy draws the random numbers of its original, whose
    counter is an operand. Updates of state are never copied: they go on reading the forward pass. Neither are operations
    with effects. Where an update writes over what an operation reads, and the reader comes later, its result is kept.

    It runs after fusion and copies whole regions. A copy sums in the order of its original and gives the same bits. The
    same operations in another region or in kernels of their own need not. A region belongs to a call where all of its
    operations do; what a region across the border of a Cell computes is kept.

    `candidates` gives up further values without being asked to, as `--memory-budget` needs. First come values of
    operations without matrix work that can be computed from values that are kept, the least work for each byte first.
    Then come whole Cells. `mpc.recompute_candidates` on the function says how many of both there are. A function that
    has it is left as it is.

    ```mlir
    // before: %y is kept from the forward to the backward pass
    %y = mpc.gelu %x {mpc.recompute = 1} : tensor<4x8xf32>
    %z = mpc.matmul %y, %w {mpc.recompute = 1} : ...
    %dw = mpc.matmul %y, %dz {transpose_a = true} backward : ...
    // after
    %y = mpc.gelu %x {mpc.recompute = 1} : tensor<4x8xf32>
    %z = mpc.matmul %y, %w {mpc.recompute = 1} : ...
    %y2 = mpc.gelu %x {mpc.recomputed} backward : tensor<4x8xf32>
    %dw = mpc.matmul %y2, %dz {transpose_a = true} backward : ...
    ```
  }];
  let options = [
    Option<"candidates", "candidates", "int64_t", "0", "How many values and Cells to give up without being asked to">];
}

def SchedulePass : MpcPass<"mpc-schedule", "::mlir::ModuleOp"> {
  let summary = "Moves operations where that lowers the largest sum of live bytes";
  let description = [{
    Runs after fusion, which has settled what runs as one. Operations move as long as that lowers the peak. The
    operation at the peak moves after later ones that do not read its results, if its workspace or its results are in
    the way. An operation that frees more than it makes moves before the peak. One that makes more than it frees moves
    after it. No operation passes one that it reads from or that reads from it, and none passes an update of state. So
    old values are read before they are overwritten, as before. Operations with effects stay where they are. Values and
    random numbers do not depend on the order, so the bits are the same.

    Live bytes are those of temporaries and inputs, workspaces of the target's kernels, and weights that a kernel wants
    packed. State that the function only reads is packed once, outside the arena, and is not counted. What an
    `mpc.all_reduce_start` reads lives until its `mpc.all_reduce_wait`. A kernel of the target
    that may write over a dying operand does so. `mpc.repeat` needs as workspace the memory of the function that it
    calls, which is ordered before its caller. Where the arena that lowering plans for the new order is not smaller, the
    old one stays. It stops where no move lowers the peak, so that running the pass again changes nothing. It stops,
    too, after work that grows with the number of operations.

    ```mlir
    // before: %a and %b are live together with the large %l
    %a = mpc.cast %x : (tensor<64xf16>) -> tensor<64xf32>
    %l = mpc.broadcast_to %s {shape = [64, 64]} : (tensor<64xf32>) -> tensor<64x64xf32>
    %r = mpc.reduce_sum %l {axes = [0]} : (tensor<64x64xf32>) -> tensor<64xf32>
    %y = mpc.add %a, %r : ...
    // after: %a is made where it is read
    ```
  }];
}

#endif
