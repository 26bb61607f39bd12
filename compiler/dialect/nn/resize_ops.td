// Images resized.
#ifndef MPC_RESIZE_OPS_TD
#define MPC_RESIZE_OPS_TD

include "compiler/dialect/mpc_base.td"

def Mpc_ResizeOp : Mpc_DifferentiableOp<"resize", "Infer", [Mpc_Image]> {
  let summary = "An image of another height and width.";
  let description = [{
    `size` is the height and width of y. Pixel i of an axis lies at position p of x, with s = input / output:

    | coordinates | p | as |
    |---|---|---|
    | asymmetric | i * s | PyTorch's mode nearest, ONNX's asymmetric |
    | half_pixel | (i + 1/2) * s - 1/2 | align_corners = False of bilinear, PyTorch's nearest-exact |
    | align_corners | i * (input - 1) / (output - 1), 0 for one pixel | align_corners = True |

    `nearest` takes the pixel floor(p) of asymmetric and floor(p + 1/2) of the others. `bilinear` holds p to x and adds
    the pixels around p in proportion to how near they are, rows before columns. A pixel of weight 0 adds nothing, also
    where it is infinite. Positions are exact; sums are computed in f32 and rounded once. No extent exceeds 2^30.

    ```mlir
    %x = mpc.constant {value = dense<[[[[0.0, 4.0]]]]> : tensor<1x1x1x2xf32>} : () -> tensor<1x1x1x2xf32>
    %y = mpc.resize %x {size = [1, 4], interpolation = bilinear, coordinates = half_pixel}
        : (tensor<1x1x1x2xf32>) -> tensor<1x1x1x4xf32>
    // %y = [[[[0.0, 1.0, 3.0, 4.0]]]]
    ```
  }];
  let imageOperands = [0];
  let imageResults = [0];
  let gradientOp = "ResizeGradOp";
  let gradientReads = "getX().getType().getShape(), getInterpolation(), getCoordinates(), getDataFormat()";
  let arguments = (ins Mpc_FloatTensor:$x, DenseI64ArrayAttr:$size, Mpc_Interpolation:$interpolation,
                       Mpc_Coordinates:$coordinates, Mpc_DataFormat:$data_format);
  let results = (outs Mpc_FloatTensor:$y);
}

def Mpc_ResizeGradOp : Mpc_DifferentiableGradientOp<"resize_grad", [Mpc_Image]> {
  let summary = "Derivative of resize.";
  let description = [{
    A pixel of dx is the sum of the pixels of dy that read it, each times its weight, added in f32 and rounded once.
    `input_shape` is the shape of dx.

    ```mlir
    %dy = mpc.constant {value = dense<[[[[1.0, 2.0, 4.0, 8.0]]]]> : tensor<1x1x1x4xf32>} : () -> tensor<1x1x1x4xf32>
    %dx = mpc.resize_grad %dy {input_shape = [1, 1, 1, 2]} : (tensor<1x1x1x4xf32>) -> tensor<1x1x1x2xf32>
    // %dx = [[[[3.0, 12.0]]]]
    ```
  }];
  let imageOperands = [0];
  let imageResults = [0];
  let arguments = (ins Mpc_FloatTensor:$dy, DenseI64ArrayAttr:$input_shape, Mpc_Interpolation:$interpolation,
                       Mpc_Coordinates:$coordinates, Mpc_DataFormat:$data_format);
  let results = (outs Mpc_FloatTensor:$dx);
}

#endif
