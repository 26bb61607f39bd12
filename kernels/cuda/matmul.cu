// matmul and batch_matmul: products of stored matrices, plain or transposed, of any floating types.
#include "kernels/cuda/registry.h"
#include "kernels/cuda/small_product.h"
#include "kernels/cuda/split_product.h"
#include "kernels/known_attributes.h"
#include "kernels/scalar/fused_activation.h"

namespace mpc::cuda {
namespace {

/// y[batch, row, column] = activation(sum + bias[column]), or of sum + bias[row, column], rounded once.
struct MatrixResult {
  Sink y;
  Source bias;      ///< null data: none
  bool whole_bias;  ///< an element for each of y
  Activation activation;
  std::int64_t rows, columns;

  __device__ void Store(std::int64_t batch, std::int64_t row, std::int64_t column, const float (&sums)[4],
                        int count) const {
    const std::int64_t position = (batch * rows + row) * columns + column;
    const std::int64_t first_bias = whole_bias ? position : column;
    float values[4];
    for (int i = 0; i < 4; ++i) {
      const bool biased = bias.data != nullptr && i < count;
      values[i] = scalar::Activate(activation, biased ? sums[i] + bias.Load(first_bias + i) : sums[i]);
    }
    StoreSome(y, position, count, columns % 4 == 0, values);
  }

  __device__ float Addend(std::int64_t batch, std::int64_t row, std::int64_t column) const {
    if (bias.data == nullptr) return 0.0f;
    return bias.Load(whole_bias ? (batch * rows + row) * columns + column : column);
  }
  __device__ void StoreOne(std::int64_t batch, std::int64_t row, std::int64_t column, float sum, float addend) const {
    y.Store((batch * rows + row) * columns + column,
            scalar::Activate(activation, bias.data == nullptr ? sum : sum + addend));
  }
};

/// The product of stacks of [rows, depth] and [depth, columns] matrices.
struct MatrixProduct {
  ProductPlan plan;
  bool small;  ///< by SmallProductKernel, without a workspace
  Matrix a, b;
  MatrixResult result;

  absl::Status operator()(const KernelOperands& operands, LaunchQueue& queue, bool has_bias) const {
    MatrixResult bound = result;
    bound.y.data = operands.outputs[0];
    bound.bias.data = has_bias ? operands.inputs[2] : nullptr;
    const Matrix left = a.With(operands.inputs[0]);
    const Matrix right = b.With(operands.inputs[1]);
    if (small) return EnqueueSmallProduct(queue, plan.shape, left, right, bound);
    return EnqueueProduct(queue, plan, left, right, bound, operands.workspace);
  }
  std::size_t workspace_bytes() const { return small ? 0 : plan.workspace_bytes(); }
};

MatrixProduct ProductOf(const KernelSpec& spec, const KernelContext& context) {
  const Shape& a = spec.inputs[0].shape;
  const Shape& y = spec.outputs[0].shape;
  const bool transpose_a = spec.attributes.GetBool("transpose_a");
  const bool transpose_b = spec.attributes.GetBool("transpose_b");
  const std::int64_t rows = y[y.size() - 2];
  const std::int64_t columns = y.back();
  const std::int64_t depth = a[a.size() - (transpose_a ? 2 : 1)];
  const std::int64_t batch = NumElements(Shape(y.begin(), y.end() - 2));
  const ProductPlan plan = PlanProduct(context.target, context.workspace_cap, batch, rows, columns, depth);
  return {plan,
          IsSmallProduct(context.target, plan.shape),
          Matrix::Create(spec.inputs[0].dtype, rows, depth, !transpose_a),
          Matrix::Create(spec.inputs[1].dtype, columns, depth, transpose_b),
          {{nullptr, spec.outputs[0].dtype}, {nullptr, DType::kF32}, false, Activation::kNone, rows, columns}};
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateMatmul(const KernelSpec& spec, const KernelContext& context) {
  MatrixProduct product = ProductOf(spec, context);
  const bool has_bias = spec.inputs.size() > 2;
  product.result.activation = spec.attributes.Get(attribute::kActivation);
  if (has_bias) {
    product.result.bias.dtype = spec.inputs[2].dtype;
    product.result.whole_bias = spec.inputs[2].shape.size() == 2;
  }
  return MakeKernel([product, has_bias](const KernelOperands& operands,
                                        LaunchQueue& queue) { return product(operands, queue, has_bias); },
                    product.workspace_bytes());
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateBatchMatmul(const KernelSpec& spec, const KernelContext& context) {
  const MatrixProduct product = ProductOf(spec, context);
  return MakeKernel(
      [product](const KernelOperands& operands, LaunchQueue& queue) { return product(operands, queue, false); },
      product.workspace_bytes());
}

}  // namespace

void RegisterMatmul(Registry& registry) {
  // What is added does not lie in the result's place: cuBLASLt gives other bits there (on an H100, in f16 and bf16).
  registry.Add("matmul", CreateMatmul);
  registry.Add("batch_matmul", CreateBatchMatmul);
}

}  // namespace mpc::cuda
