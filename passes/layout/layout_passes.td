// The layout of images and of attention's heads.
#ifndef MPC_LAYOUT_PASSES_TD
#define MPC_LAYOUT_PASSES_TD

include "passes/pass_base.td"

def LayoutPass : MpcPass<"mpc-layout", "::mlir::func::FuncOp"> {
  let summary = "Makes images channels-last, with explicit transposes that cancel or sink";
  let description = [{
    Convolution, pooling and batch normalisation on rank-4 operands get `data_format = "NHWC"`. Transposes appear at the
    borders, move through element-wise operations and cancel. Weights keep their canonical layout.

    A function stays as it is where its image operations are pooling and convolutions, none of whose kernels gains from
    channels-last images. On a GPU these are small convolutions of few channels, as in LeNet-5.
  }];
}

def PadChannelsPass : MpcPass<"mpc-pad-channels", "::mlir::func::FuncOp"> {
  let summary = "Pads images of few channels for the kernels of libraries";
  let description = [{
    Tensor cores read channels in groups, on CUDA of 8. A convolution of an image with fewer channels, such as colours,
    gets its image and its weight padded with zeros. So does the gradient of its weight, which is cut again. Zeros change
    no sum. The convolution must be f16 or bf16, channels-last and of one group. Its results are whole groups, and it has
    2^28 multiply-adds at least. Elsewhere the copies would take longer than they save.

    ```mlir
    // before
    %y = mpc.conv2d %x, %w {data_format = NHWC} : (tensor<64x224x224x3xf16>, tensor<64x3x7x7xf16>) -> ...
    // after, for CUDA
    %0 = mpc.pad %x {low = [0, 0, 0, 0], high = [0, 0, 0, 5]} : ...
    %1 = mpc.pad %w {low = [0, 0, 0, 0], high = [0, 5, 0, 0]} : ...
    %y = mpc.conv2d %0, %1 {data_format = NHWC} : (tensor<64x224x224x8xf16>, tensor<64x8x7x7xf16>) -> ...
    ```
  }];
  let options = [
    Option<"everywhere", "everywhere", "bool", "false", "Pads every convolution that it can, whether or not that pays">];
}

def PackAttentionPass : MpcPass<"mpc-pack-attention", "::mlir::func::FuncOp"> {
  let summary = "Lets attention read queries, keys and values where one product has left them";
  let description = [{
    Self-attention reads its heads from one product [B, T, 3 * H * D], which slices, reshapes and transposes take apart.
    Others put its result together for the next product. `mpc.packed_attention` reads and writes where products do. So
    no head is copied, in the forward pass or in the backward pass. Its gradient gets the stored y, which is alive in
    any case: it is the operand of the next product, whose weight gradient reads it.

    Query, key, value and y have one type. An attention and all its gradients are packed, or none is. That is so where
    something else reads the gradient of a head, or where heads lie in another order. The pass runs after autodiff and
    before layout, for targets that read heads so: on the CPU it does nothing. mpc's own kernels give the
    same bits in either form. A library's gradient takes delta from the stored y.

    ```mlir
    // before
    %p = mpc.reshape %x {shape = [2, 4, 3, 2, 8]} : (tensor<8x48xf16>) -> tensor<2x4x3x2x8xf16>
    %h = mpc.transpose %p {permutation = [2, 0, 3, 1, 4]} : (tensor<2x4x3x2x8xf16>) -> tensor<3x2x2x4x8xf16>
    %s:3 = mpc.split %h {sizes = [1, 1, 1]} : (tensor<3x2x2x4x8xf16>)
        -> (tensor<1x2x2x4x8xf16>, tensor<1x2x2x4x8xf16>, tensor<1x2x2x4x8xf16>)
    %q = mpc.reshape %s#0 {shape = [2, 2, 4, 8]} : (tensor<1x2x2x4x8xf16>) -> tensor<2x2x4x8xf16>
    %k = mpc.reshape %s#1 {shape = [2, 2, 4, 8]} : (tensor<1x2x2x4x8xf16>) -> tensor<2x2x4x8xf16>
    %v = mpc.reshape %s#2 {shape = [2, 2, 4, 8]} : (tensor<1x2x2x4x8xf16>) -> tensor<2x2x4x8xf16>
    %y, %l = mpc.attention %q, %k, %v {scale = 0.125} : ...
    %t = mpc.transpose %y {permutation = [0, 2, 1, 3]} : (tensor<2x2x4x8xf16>) -> tensor<2x4x2x8xf16>
    %z = mpc.reshape %t {shape = [8, 16]} : (tensor<2x4x2x8xf16>) -> tensor<8x16xf16>
    // after
    %qkv = mpc.reshape %x {shape = [2, 4, 48]} : (tensor<8x48xf16>) -> tensor<2x4x48xf16>
    %y, %l = mpc.packed_attention %qkv {heads = 2, scale = 0.125}
        : (tensor<2x4x48xf16>) -> (tensor<2x4x16xf16>, tensor<2x2x4xf32>)
    %z = mpc.reshape %y {shape = [8, 16]} : (tensor<2x4x16xf16>) -> tensor<8x16xf16>
    ```
  }];
}

#endif
