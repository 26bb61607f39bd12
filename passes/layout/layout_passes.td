// The layout of images.
#ifndef MPC_LAYOUT_PASSES_TD
#define MPC_LAYOUT_PASSES_TD

include "passes/pass_base.td"

def LayoutPass : MpcPass<"mpc-layout", "::mlir::func::FuncOp"> {
  let summary = "Makes images channels-last, with explicit transposes that cancel or sink";
  let description = [{
    Convolution, pooling and batch normalisation on rank-4 operands get `data_format = "NHWC"`. Transposes appear at the
    borders, move through element-wise operations and cancel. Weights keep their canonical layout.
  }];
}

def PadChannelsPass : MpcPass<"mpc-pad-channels", "::mlir::func::FuncOp"> {
  let summary = "Pads images of few channels for the kernels of libraries";
  let description = [{
    Tensor cores read channels in groups, on CUDA of 8. A convolution of an image with fewer channels, such as that of
    colours, gets its image and its weight padded with zeros, and so does the gradient of its weight, which is cut again.
    Zeros change no sum. It must be f16 or bf16, channels-last, without groups, with as many results as whole groups, and
    of 2^28 multiply-adds at least. Elsewhere the copies would take longer than they save.

    ```mlir
    // before
    %y = mpc.conv2d %x, %w {data_format = NHWC} : (tensor<64x224x224x3xf16>, tensor<64x3x7x7xf16>) -> ...
    // after, for CUDA
    %0 = mpc.pad %x {low = [0, 0, 0, 0], high = [0, 0, 0, 5]} : ...
    %1 = mpc.pad %w {low = [0, 0, 0, 0], high = [0, 5, 0, 0]} : ...
    %y = mpc.conv2d %0, %1 {data_format = NHWC} : (tensor<64x224x224x8xf16>, tensor<64x8x7x7xf16>) -> ...
    ```
  }];
}

#endif
