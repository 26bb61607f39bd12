// Arithmetic of integers.
#ifndef MPC_INTEGER_OPS_TD
#define MPC_INTEGER_OPS_TD

include "compiler/dialect/mpc_base.td"

// It has no floating values, so levels decide nothing and there is no derivative.
class Mpc_IntegerOp<string mnemonic> : Mpc_Op<mnemonic, "Exempt", [Pure, Mpc_Elementwise, Mpc_IsElementwise]>;

class Mpc_IntegerBinaryOp<string mnemonic, string formula, string meaning> : Mpc_IntegerOp<mnemonic> {
  let summary = "Element-wise " # formula # " of integers, with broadcasting.";
  let description = [{
    }] # meaning # [{
    Operands and result have one type, i32 or i64, and results wrap: they are taken modulo 2^32 or 2^64. There is no
    derivative.

    ```mlir}] # example # [{  ```
  }];
  let arguments = (ins Mpc_IndexTensor:$a, Mpc_IndexTensor:$b);
  let results = (outs Mpc_IndexTensor:$y);
}

class Mpc_IntegerUnaryOp<string mnemonic, string formula> : Mpc_IntegerOp<mnemonic> {
  let summary = "Element-wise " # formula # " of integers.";
  let description = [{
    The least number of the type, i32 or i64, stays as it is: results wrap. There is no derivative.

    ```mlir}] # example # [{  ```
  }];
  let alike = 1;
  let arguments = (ins Mpc_IndexTensor:$x);
  let results = (outs Mpc_IndexTensor:$y);
}

def Mpc_IntAddOp : Mpc_IntegerBinaryOp<"int_add", "a + b", "y is the sum."> {
  let example = [{
    %a = mpc.constant {value = dense<[1, -2, 2147483647]> : tensor<3xi32>} : () -> tensor<3xi32>
    %b = mpc.constant {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %y = mpc.int_add %a, %b : (tensor<3xi32>, tensor<i32>) -> tensor<3xi32>
    // %y = [2, -1, -2147483648]
  }];
}
def Mpc_IntSubOp : Mpc_IntegerBinaryOp<"int_sub", "a - b", "y is the difference."> {
  let example = [{
    %a = mpc.constant {value = dense<[1, -2, 7]> : tensor<3xi32>} : () -> tensor<3xi32>
    %b = mpc.constant {value = dense<3> : tensor<i32>} : () -> tensor<i32>
    %y = mpc.int_sub %a, %b : (tensor<3xi32>, tensor<i32>) -> tensor<3xi32>
    // %y = [-2, -5, 4]
  }];
}
def Mpc_IntMulOp : Mpc_IntegerBinaryOp<"int_mul", "a * b", "y is the product."> {
  let example = [{
    %a = mpc.constant {value = dense<[1, -2, 7]> : tensor<3xi64>} : () -> tensor<3xi64>
    %b = mpc.constant {value = dense<3> : tensor<i64>} : () -> tensor<i64>
    %y = mpc.int_mul %a, %b : (tensor<3xi64>, tensor<i64>) -> tensor<3xi64>
    // %y = [3, -6, 21]
  }];
}
def Mpc_IntFloorDivOp
    : Mpc_IntegerBinaryOp<"int_floor_div", "a / b",
                          "y is the quotient, rounded towards minus infinity. It is 0 where b is 0."> {
  let example = [{
    %a = mpc.constant {value = dense<[7, -7, 7, 5]> : tensor<4xi32>} : () -> tensor<4xi32>
    %b = mpc.constant {value = dense<[2, 2, -2, 0]> : tensor<4xi32>} : () -> tensor<4xi32>
    %y = mpc.int_floor_div %a, %b : tensor<4xi32>
    // %y = [3, -4, -4, 0]
  }];
}
def Mpc_IntModOp
    : Mpc_IntegerBinaryOp<"int_mod", "a mod b",
                          "y is a - int_floor_div(a, b) * b, which has the sign of b. It is a where b is 0."> {
  let example = [{
    %a = mpc.constant {value = dense<[7, -7, 7, 5]> : tensor<4xi32>} : () -> tensor<4xi32>
    %b = mpc.constant {value = dense<[2, 2, -2, 0]> : tensor<4xi32>} : () -> tensor<4xi32>
    %y = mpc.int_mod %a, %b : tensor<4xi32>
    // %y = [1, 1, -1, 5]
  }];
}
def Mpc_IntMaximumOp : Mpc_IntegerBinaryOp<"int_maximum", "max(a, b)", "y is the larger number."> {
  let example = [{
    %a = mpc.constant {value = dense<[1, -2, 7]> : tensor<3xi32>} : () -> tensor<3xi32>
    %b = mpc.constant {value = dense<3> : tensor<i32>} : () -> tensor<i32>
    %y = mpc.int_maximum %a, %b : (tensor<3xi32>, tensor<i32>) -> tensor<3xi32>
    // %y = [3, 3, 7]
  }];
}
def Mpc_IntMinimumOp : Mpc_IntegerBinaryOp<"int_minimum", "min(a, b)", "y is the smaller number."> {
  let example = [{
    %a = mpc.constant {value = dense<[1, -2, 7]> : tensor<3xi32>} : () -> tensor<3xi32>
    %b = mpc.constant {value = dense<3> : tensor<i32>} : () -> tensor<i32>
    %y = mpc.int_minimum %a, %b : (tensor<3xi32>, tensor<i32>) -> tensor<3xi32>
    // %y = [1, -2, 3]
  }];
}
def Mpc_IntNegOp : Mpc_IntegerUnaryOp<"int_neg", "-x"> {
  let example = [{
    %x = mpc.constant {value = dense<[1, -2]> : tensor<2xi64>} : () -> tensor<2xi64>
    %y = mpc.int_neg %x : tensor<2xi64>
    // %y = [-1, 2]
  }];
}
def Mpc_IntAbsOp : Mpc_IntegerUnaryOp<"int_abs", "|x|"> {
  let example = [{
    %x = mpc.constant {value = dense<[1, -2, -2147483648]> : tensor<3xi32>} : () -> tensor<3xi32>
    %y = mpc.int_abs %x : tensor<3xi32>
    // %y = [1, 2, -2147483648]
  }];
}

#endif
