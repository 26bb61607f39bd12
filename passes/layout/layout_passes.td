// The layout of images.
#ifndef MPC_LAYOUT_PASSES_TD
#define MPC_LAYOUT_PASSES_TD

include "passes/pass_base.td"

def LayoutPass : MpcPass<"mpc-layout", "::mlir::func::FuncOp"> {
  let summary = "Makes images channels-last, with explicit transposes that cancel or sink";
  let description = [{
    Convolution, pooling and batch normalisation on rank-4 operands get `data_format = "NHWC"`. Transposes appear at the
    borders, move through element-wise operations and cancel. Weights keep their canonical layout.

    A function stays as it is where no kernel of its convolutions gains from channels-last images. On a GPU these are
    small ones of few channels, as in LeNet-5.
  }];
}

#endif
