"""A function that is one chain of operations: python3 chain.py COUNT OPERATION,... (in turn)."""
import sys

count, operations = int(sys.argv[1]), sys.argv[2].split(",")
print("func.func @chain(%v0: tensor<4x4xf32>) -> tensor<4x4xf32> {")
for i in range(count):
    operation = operations[i % len(operations)]
    others = ", %v0" if operation == "matmul" else ""
    types = ", ".join(["tensor<4x4xf32>"] * (1 + bool(others)))
    print(f"  %v{i + 1} = mpc.{operation} %v{i}{others} : ({types}) -> tensor<4x4xf32>")
print(f"  return %v{count} : tensor<4x4xf32>\n}}")
