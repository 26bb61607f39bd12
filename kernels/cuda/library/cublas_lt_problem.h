// A matrix product as cuBLASLt knows it, and its algorithms as text.
//
// cuBLASLt sees column-major matrices, so it computes y^T [n, m] = op(b)^T op(a)^T: its first operand is b, its bias
// has the length of our rows.
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/kernel.h"

namespace mpc::cuda {

/// y [batch, m, n] = op(a) [batch, m, k] op(b) [batch, k, n] + bias [n] or [batch, m, n], summed in f32, rounded once.
struct Product {
  std::int64_t batch = 1, m = 0, k = 0, n = 0;
  bool transpose_a = false, transpose_b = false;
  bool has_bias = false;    ///< [n]
  bool whole_bias = false;  ///< the bias has the shape of y
  /// Elements between the beginnings of rows of a, b and y, as they are stored; 0: rows lie one behind another.
  std::int64_t a_row = 0, b_row = 0, y_row = 0;
  cudaDataType_t operand_type = CUDA_R_32F;
  cudaDataType_t result_type = CUDA_R_32F;  ///< type of the result and the bias
  bool tf32 = false;
};

/// "algo:<hexadecimal bytes>:id..:tile..": the same algorithm has the same text in every run of one library version.
std::string AlgorithmText(const cublasLtMatmulAlgo_t& algorithm);

/// Errors (FAILED_PRECONDITION): `text` does not begin so.
absl::StatusOr<cublasLtMatmulAlgo_t> ParseAlgorithm(const std::string& text);

/// Whether an algorithm with this reduction scheme adds partial sums in f32 and in a fixed order. It must neither use
/// atomics, whose order is chance, nor add in the result's type. An algorithm whose scheme cannot be read came from a
/// search that asked for such schemes alone, and keeps the contract.
bool KeepsContract(std::optional<std::uint32_t> reduction_scheme);

/// A cuBLASLt object with its destroy function.
template <typename Handle, cublasStatus_t (*kDestroy)(Handle)>
struct Owned {
  Handle value = nullptr;
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (value != nullptr) kDestroy(value);
  }
};

class CublasLtProblem {
 public:
  /// Builds the problem. It is called once, before anything else.
  absl::Status Build(const Product& product);

  /// The heuristic's answers, best first, at most `limit`: those that add partial sums in f32 and in a fixed order.
  absl::StatusOr<std::vector<cublasLtMatmulAlgo_t>> Algorithms(cublasLtHandle_t handle, std::size_t workspace,
                                                               int limit) const;

  /// The bytes of workspace that `algorithm` takes. Errors (FAILED_PRECONDITION): this device or library does not run
  /// it, or only with more than `most`.
  absl::StatusOr<std::size_t> WorkspaceOf(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm,
                                          std::size_t most) const;

  /// `operands`: a, b and the bias to y, with a workspace of PaddedWorkspace(workspace) bytes. A whole bias does not
  /// lie where y goes.
  absl::Status Run(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm, const KernelOperands& operands,
                   std::size_t workspace, cudaStream_t stream) const;

 private:
  Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> description_;
  Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy> a_, b_, y_;
  bool has_bias_ = false;
  bool whole_bias_ = false;
};

}  // namespace mpc::cuda
