"""A step whose loss is one chain of operations, all of one call with Recompute(): python3 recomputed_chain.py COUNT
OPERATION,... (in turn)."""
import sys

count, operations = int(sys.argv[1]), sys.argv[2].split(",")
x = "tensor<4x4xf32>"
print(f"""func.func @train_step(%x: {x} {{mpc.state = #mpc.state<input, "x">}},
                      %w: {x} {{mpc.state = #mpc.state<parameter, "w">}})
    -> (tensor<f32> {{mpc.state = #mpc.state<output, "loss">}}, {x} {{mpc.state = #mpc.state<output, "g">}})
    attributes {{mpc.step}} {{
  %seed = mpc.constant {{value = dense<1.0> : tensor<f32>}} : () -> tensor<f32>
  %l, %g = mpc.value_and_grad @f(%x, %w) seed(%seed) {{wrt = array<i64: 1>}} : ({x}, {x}, tensor<f32>) -> (tensor<f32>, {x})
  return %l, %g : tensor<f32>, {x}
}}
func.func private @f(%x: {x}, %w: {x}) -> tensor<f32> {{
  %v0 = mpc.mul %x, %w : {x}""")
for i in range(count):
    operation = operations[i % len(operations)]
    others = ", %w" if operation == "matmul" else ""
    types = ", ".join([x] * (1 + bool(others)))
    print(f'  %v{i + 1} = mpc.{operation} %v{i}{others} {{mpc.recompute = 1}} in "net" : ({types}) -> {x}')
print(f"""  %loss = mpc.reduce_sum %v{count} {{axes = [0, 1]}} : ({x}) -> tensor<f32>
  return %loss : tensor<f32>
}}""")
