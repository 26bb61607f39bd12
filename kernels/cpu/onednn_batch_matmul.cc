// batch_matmul on oneDNN: the leading axes are one batch axis. Transposed operands are the same memory with swapped
// strides.
#include "kernels/cpu/onednn_api.h"
#include "kernels/cpu/onednn_common.h"
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

absl::StatusOr<std::unique_ptr<Kernel>> CreateBatchMatmul(const KernelSpec& spec) {
  const Shape& a_shape = spec.inputs[0].shape;
  const Shape& y_shape = spec.outputs[0].shape;
  const bool transpose_a = spec.attributes.GetBool("transpose_a");
  const bool transpose_b = spec.attributes.GetBool("transpose_b");
  const std::int64_t m = y_shape[y_shape.size() - 2];
  const std::int64_t n = y_shape.back();
  const std::int64_t k = a_shape[a_shape.size() - (transpose_a ? 2 : 1)];
  const std::int64_t batch = spec.outputs[0].num_elements() / (m * n);
  std::vector<Candidate> candidates;
  for (memory::data_type type : OperandTypes({spec.inputs[0].dtype, spec.inputs[1].dtype})) {
    candidates.push_back({type, memory::format_tag::abc});
    candidates.push_back({type, memory::format_tag::any});
  }
  return FirstFastCandidate(spec, candidates, [&](const Candidate& candidate) {
    const memory::data_type result_type = ResultType(candidate.type, spec.outputs[0].dtype, Activation::kNone);
    const memory::desc a = Matrices(batch, m, k, transpose_a, candidate.type);
    const memory::desc b = Matrices(batch, k, n, transpose_b, candidate.type);
    const memory::desc y = Matrices(batch, m, n, false, result_type);
    const auto wanted = [&](const memory::desc& stored) {
      return candidate.layout == memory::format_tag::any
                 ? memory::desc(ExtentsOf(stored), DataTypeOf(stored), memory::format_tag::any)
                 : stored;
    };
    const auto description =
        Describe<dnnl::matmul>(OnednnEngine(), StrictAttributes(), wanted(a), wanted(b), wanted(y));
    Attempt attempt = AttemptOf<dnnl::matmul>(description);
    attempt.staged.inputs = {{DNNL_ARG_SRC, spec.inputs[0].dtype, a, description.src_desc()},
                             {DNNL_ARG_WEIGHTS, spec.inputs[1].dtype, b, description.weights_desc()}};
    attempt.staged.output = {DNNL_ARG_DST, spec.outputs[0].dtype, y, description.dst_desc()};
    return attempt;
  });
}

}  // namespace

void RegisterBatchMatmul(Registry& registry) { registry.Add("batch_matmul", CreateBatchMatmul); }

}  // namespace mpc::cpu
