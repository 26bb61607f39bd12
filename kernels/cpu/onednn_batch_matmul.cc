// batch_matmul on oneDNN: the leading axes are one batch axis, which is cut into parts. Few matrices are cut into rows.
// Transposed operands are the same memory with swapped strides.
#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/cpu/onednn_api.h"
#include "kernels/cpu/onednn_common.h"
#include "kernels/cpu/product_parts.h"
#include "kernels/cpu/registry.h"

namespace mpc::cpu {
namespace {

using dnnl::memory;

// A stack of [rows, columns] matrices, each stored transposed or not.
memory::desc Matrices(std::int64_t batch, std::int64_t rows, std::int64_t columns, bool transposed,
                      memory::data_type type) {
  const memory::dims strides = {rows * columns, transposed ? 1 : columns, transposed ? rows : 1};
  return {{batch, rows, columns}, type, strides};
}

/// y[batch, m, n] = op(a) op(b), and the part of it that a primitive computes.
struct BatchShape {
  std::int64_t batch, m, k, n;
  bool transpose_a, transpose_b;

  std::int64_t multiply_adds() const { return batch * m * k * n; }
};

BatchShape ShapeOf(const KernelSpec& spec) {
  const Shape& a = spec.inputs[0].shape;
  const Shape& y = spec.outputs[0].shape;
  BatchShape shape{};
  shape.transpose_a = spec.attributes.GetBool("transpose_a");
  shape.transpose_b = spec.attributes.GetBool("transpose_b");
  shape.m = y[y.size() - 2];
  shape.n = y.back();
  shape.k = a[a.size() - (shape.transpose_a ? 2 : 1)];
  shape.batch = spec.outputs[0].num_elements() / (shape.m * shape.n);
  return shape;
}

/// Multiply-adds of a part at least.
constexpr std::int64_t kPartWork = std::int64_t{1} << 20;

std::int64_t PartsOfWork(const BatchShape& shape) {
  return std::min(shape.multiply_adds() / kPartWork, StagedOperation::kMostParts);
}

/// The matrices of each part.
std::int64_t MatricesOfPart(const BatchShape& shape) {
  const std::int64_t parts = std::min(PartsOfWork(shape), shape.batch);
  return parts < 2 ? shape.batch : PartsOf(shape.batch, parts);
}

/// The rows of a and y in each part of a matrix; all of them where matrices are as many as parts. Rows of a transposed
/// a do not lie together.
std::int64_t RowsOfPart(const BatchShape& shape) {
  constexpr std::int64_t kLeastRows = 64;
  if (shape.batch == 0 || shape.transpose_a) return shape.m;
  const std::int64_t parts = std::min(PartsOfWork(shape) / shape.batch, shape.m / kLeastRows);
  return parts < 2 ? shape.m : PartsOf(shape.m, parts);
}

Attempt MatricesAttempt(const KernelSpec& spec, const BatchShape& shape, const Candidate& candidate) {
  const memory::data_type result_type = ResultType(candidate.type, spec.outputs[0].dtype, Activation::kNone);
  const memory::desc a = Matrices(shape.batch, shape.m, shape.k, shape.transpose_a, candidate.type);
  const memory::desc b = Matrices(shape.batch, shape.k, shape.n, shape.transpose_b, candidate.type);
  const memory::desc y = Matrices(shape.batch, shape.m, shape.n, false, result_type);
  const auto wanted = [&](const memory::desc& stored) {
    return candidate.layout == memory::format_tag::any
               ? memory::desc(ExtentsOf(stored), DataTypeOf(stored), memory::format_tag::any)
               : stored;
  };
  const auto description = Describe<dnnl::matmul>(OnednnEngine(), StrictAttributes(), wanted(a), wanted(b), wanted(y));
  Attempt attempt = AttemptOf<dnnl::matmul>(description);
  attempt.staged().inputs = {{DNNL_ARG_SRC, spec.inputs[0].dtype, a, description.src_desc()},
                             {DNNL_ARG_WEIGHTS, spec.inputs[1].dtype, b, description.weights_desc()}};
  attempt.staged().output = {DNNL_ARG_DST, spec.outputs[0].dtype, y, description.dst_desc()};
  return attempt;
}

/// Parts of each matrix's rows, the last of which may have fewer.
Attempt RowsInParts(const KernelSpec& spec, const BatchShape& shape, std::int64_t rows, const Candidate& candidate) {
  Attempt attempt;
  for (std::int64_t row = 0; row < shape.m; row += rows) {
    BatchShape part = shape;
    part.batch = 1;
    part.m = std::min(rows, shape.m - row);
    if (row == 0 || part.m < rows) {
      attempt.Add(MatricesAttempt(spec, part, candidate));
    }
    for (std::int64_t matrix = 0; matrix < shape.batch; ++matrix) {
      const auto offset = [](const TensorSpec& tensor, std::int64_t elements) {
        return static_cast<std::size_t>(elements) * ElementSize(tensor.dtype);
      };
      attempt.operation.parts.push_back({attempt.operation.primitives.size() - 1,
                                         {offset(spec.inputs[0], (matrix * shape.m + row) * shape.k),
                                          offset(spec.inputs[1], matrix * shape.k * shape.n)},
                                         offset(spec.outputs[0], (matrix * shape.m + row) * shape.n)});
    }
  }
  return attempt;
}

/// Parts of neighbouring matrices, the last of which may have fewer.
Attempt BatchInParts(const KernelSpec& spec, const BatchShape& shape, const Candidate& candidate) {
  const std::int64_t rows = RowsOfPart(shape);
  if (rows < shape.m) return RowsInParts(spec, shape, rows, candidate);
  BatchShape part = shape;
  part.batch = MatricesOfPart(shape);
  Attempt attempt = MatricesAttempt(spec, part, candidate);
  attempt.operation.parts.clear();
  for (std::int64_t matrix = 0; matrix < shape.batch; matrix += part.batch) {
    const auto offset = [matrix](const TensorSpec& tensor, std::int64_t elements) {
      return static_cast<std::size_t>(matrix * elements) * ElementSize(tensor.dtype);
    };
    if (shape.batch - matrix < part.batch) {
      BatchShape rest = shape;
      rest.batch = shape.batch - matrix;
      attempt.Add(MatricesAttempt(spec, rest, candidate));
    }
    attempt.operation.parts.push_back(
        {attempt.operation.primitives.size() - 1,
         {offset(spec.inputs[0], shape.m * shape.k), offset(spec.inputs[1], shape.k * shape.n)},
         offset(spec.outputs[0], shape.m * shape.n)});
  }
  return attempt;
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateBatchMatmul(const KernelSpec& spec) {
  const BatchShape shape = ShapeOf(spec);
  std::vector<Candidate> candidates;
  for (memory::data_type type : OperandTypes({spec.inputs[0].dtype, spec.inputs[1].dtype})) {
    candidates.push_back({type, memory::format_tag::abc});
    candidates.push_back({type, memory::format_tag::any});
  }
  return KernelOf(FirstFastCandidate(spec, candidates,
                                     [&](const Candidate& candidate) { return BatchInParts(spec, shape, candidate); }));
}

}  // namespace

void RegisterBatchMatmul(Registry& registry) { registry.Add("batch_matmul", CreateBatchMatmul); }

}  // namespace mpc::cpu
