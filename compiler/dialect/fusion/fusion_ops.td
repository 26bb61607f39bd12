// Regions that become one generated kernel.
#ifndef MPC_FUSION_OPS_TD
#define MPC_FUSION_OPS_TD

include "compiler/dialect/mpc_base.td"

def Mpc_FusionOp : Op<Mpc_Dialect, "fusion", [
    IsolatedFromAbove, Pure, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "Operations that are computed together, by one generated kernel.";
  let description = [{
    The body computes the results from the operands, which its block arguments stand for. It holds the same operations
    that would stand outside: every one keeps its storage types and so its rounding. Only what is yielded is stored; the
    rest stays in registers.

    The body holds operations of `FusibleOpInterface` that share one iteration space of rows and columns (see
    `compiler/dialect/fusion_plan.h`), and views that keep it. It yields what its operations compute, never an operand.
    f64 is for the reference alone. The verifier asks for the region's plan, so that every region has code.
    `mpc-fusion` forms regions.

    ```mlir
    %y, %r = mpc.fusion(%x, %bias) {
    ^bb0(%a: tensor<32x84xf32>, %b: tensor<84xf32>):
      %s = mpc.add %a, %b : (tensor<32x84xf32>, tensor<84xf32>) -> tensor<32x84xf32>
      %t = mpc.relu %s : tensor<32x84xf32>
      mpc.yield %t, %s : tensor<32x84xf32>, tensor<32x84xf32>
    } : (tensor<32x84xf32>, tensor<84xf32>) -> (tensor<32x84xf32>, tensor<32x84xf32>)
    ```
  }];
  let arguments = (ins Variadic<Mpc_Tensor>:$inputs);
  let results = (outs Variadic<Mpc_Tensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`(` $inputs `)` $body attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

#endif
