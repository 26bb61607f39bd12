#include "kernels/cuda/library/cublas_lt_problem.h"

#include <charconv>
#include <initializer_list>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/cuda/library/workspace.h"

namespace mpc::cuda {
namespace {

/// The alignment of every tensor of a Program, in bytes.
constexpr std::uint32_t kAlignment = 64;

absl::Status Check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const std::string message = absl::StrCat(call, ": ", cublasLtGetStatusName(status));
  return status == CUBLAS_STATUS_NOT_SUPPORTED ? absl::UnimplementedError(message) : absl::InternalError(message);
}

template <typename T>
absl::Status Set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  return Check(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof(value)),
               "cublasLtMatmulDescSetAttribute");
}

template <typename T>
absl::Status Set(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, const T& value) {
  return Check(cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof(value)),
               "cublasLtMatrixLayoutSetAttribute");
}

template <typename T>
absl::Status Set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
                 const T& value) {
  return Check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)),
               "cublasLtMatmulPreferenceSetAttribute");
}

absl::Status FirstError(std::initializer_list<absl::Status> statuses) {
  for (const absl::Status& status : statuses) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

/// `stored`: elements from column to column, 0 where columns lie one behind another.
absl::Status MakeLayout(cublasLtMatrixLayout_t& layout, cudaDataType_t type, std::int64_t rows, std::int64_t columns,
                        std::int64_t batch, std::int64_t stored = 0) {
  if (absl::Status status =
          Check(cublasLtMatrixLayoutCreate(&layout, type, static_cast<std::uint64_t>(rows),
                                           static_cast<std::uint64_t>(columns), stored == 0 ? rows : stored),
                "cublasLtMatrixLayoutCreate");
      !status.ok() || batch == 1) {
    return status;
  }
  const std::int64_t stride = rows * columns;
  return FirstError({Set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(batch)),
                     Set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride)});
}

std::optional<std::uint32_t> Config(const cublasLtMatmulAlgo_t& algorithm,
                                    cublasLtMatmulAlgoConfigAttributes_t attribute) {
  std::uint32_t value = 0;
  std::size_t written = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof(value), &written);
  if (status != CUBLAS_STATUS_SUCCESS) return std::nullopt;
  return value;
}

bool AddsInOrder(const cublasLtMatmulAlgo_t& algorithm) {
  return KeepsContract(Config(algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME));
}

constexpr char kPrefix[] = "algo:";
constexpr std::size_t kPrefixSize = sizeof(kPrefix) - 1;
constexpr std::size_t kDigits = 16;  // of a word

}  // namespace

bool KeepsContract(std::optional<std::uint32_t> reduction_scheme) {
  return !reduction_scheme.has_value() || *reduction_scheme == CUBLASLT_REDUCTION_SCHEME_NONE ||
         *reduction_scheme == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
}

std::string AlgorithmText(const cublasLtMatmulAlgo_t& algorithm) {
  std::string text = kPrefix;
  for (std::uint64_t word : algorithm.data) absl::StrAppendFormat(&text, "%016x", word);
  // These fields are for people. cuBLASLt reads the bytes.
  absl::StrAppend(&text, ":id", Config(algorithm, CUBLASLT_ALGO_CONFIG_ID).value_or(0), ":tile",
                  Config(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID).value_or(0), ":stages",
                  Config(algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID).value_or(0), ":splits",
                  Config(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM).value_or(0));
  return text;
}

absl::StatusOr<cublasLtMatmulAlgo_t> ParseAlgorithm(const std::string& text) {
  cublasLtMatmulAlgo_t algorithm{};
  const std::size_t words = std::size(algorithm.data);
  const absl::Status refused =
      absl::FailedPreconditionError(absl::StrCat("the chosen cuBLASLt algorithm is written \"", kPrefix, "<",
                                                 words * kDigits, " hexadecimal digits>:...\", got \"", text, "\""));
  if (text.rfind(kPrefix, 0) != 0 || text.size() < kPrefixSize + words * kDigits) return refused;
  const char* digits = text.data() + kPrefixSize;
  for (std::size_t word = 0; word < words; ++word, digits += kDigits) {
    const auto [end, error] = std::from_chars(digits, digits + kDigits, algorithm.data[word], 16);
    if (error != std::errc() || end != digits + kDigits) return refused;
  }
  return algorithm;
}

absl::Status CublasLtProblem::Build(const Product& product) {
  has_bias_ = product.has_bias;
  whole_bias_ = product.whole_bias;
  const auto compute = product.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  const cublasOperation_t first = product.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t second = product.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  if (absl::Status status =
          Check(cublasLtMatmulDescCreate(&description_.value, compute, CUDA_R_32F), "cublasLtMatmulDescCreate");
      !status.ok()) {
    return status;
  }
  if (absl::Status status =
          FirstError({Set(description_.value, CUBLASLT_MATMUL_DESC_TRANSA, first),
                      Set(description_.value, CUBLASLT_MATMUL_DESC_TRANSB, second),
                      // Row-major [k, n] is column-major [n, k] with leading dimension n.
                      MakeLayout(b_.value, product.operand_type, product.transpose_b ? product.k : product.n,
                                 product.transpose_b ? product.n : product.k, product.batch, product.b_row),
                      MakeLayout(a_.value, product.operand_type, product.transpose_a ? product.m : product.k,
                                 product.transpose_a ? product.k : product.m, product.batch, product.a_row),
                      MakeLayout(y_.value, product.result_type, product.n, product.m, product.batch, product.y_row)});
      !status.ok() || !has_bias_) {
    return status;
  }
  // The heuristic looks at the epilogue and at the bias's alignment: any address that is aligned as tensors are.
  const void* const aligned = reinterpret_cast<const void*>(std::uintptr_t{kAlignment});
  return FirstError({Set(description_.value, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS),
                     Set(description_.value, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, product.result_type),
                     Set(description_.value, CUBLASLT_MATMUL_DESC_BIAS_POINTER, aligned)});
}

absl::StatusOr<std::vector<cublasLtMatmulAlgo_t>> CublasLtProblem::Algorithms(cublasLtHandle_t handle,
                                                                              std::size_t workspace, int limit) const {
  Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> preference;
  if (absl::Status status = Check(cublasLtMatmulPreferenceCreate(&preference.value), "cublasLtMatmulPreferenceCreate");
      !status.ok()) {
    return status;
  }
  const std::uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  if (absl::Status status = FirstError({Set(preference.value, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace),
                                        Set(preference.value, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes),
                                        Set(preference.value, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, kAlignment),
                                        Set(preference.value, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, kAlignment),
                                        Set(preference.value, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, kAlignment),
                                        Set(preference.value, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, kAlignment)});
      !status.ok()) {
    return status;
  }
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<std::size_t>(limit));
  int found = 0;
  if (absl::Status status =
          Check(cublasLtMatmulAlgoGetHeuristic(handle, description_.value, b_.value, a_.value, y_.value, y_.value,
                                               preference.value, limit, results.data(), &found),
                "cublasLtMatmulAlgoGetHeuristic");
      !status.ok()) {
    return status;
  }
  results.resize(static_cast<std::size_t>(found));
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (const cublasLtMatmulHeuristicResult_t& result : results) {
    if (result.state == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= workspace && AddsInOrder(result.algo)) {
      algorithms.push_back(result.algo);
    }
  }
  return algorithms;
}

absl::StatusOr<std::size_t> CublasLtProblem::WorkspaceOf(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm,
                                                         std::size_t most) const {
  cublasLtMatmulHeuristicResult_t result{};
  const cublasStatus_t status =
      cublasLtMatmulAlgoCheck(handle, description_.value, b_.value, a_.value, y_.value, y_.value, &algorithm, &result);
  if (status == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= most && AddsInOrder(algorithm)) {
    return result.workspaceSize;
  }
  return absl::FailedPreconditionError(absl::StrCat("the chosen cuBLASLt algorithm cannot be used here (",
                                                    cublasLtGetStatusName(status), ", ", result.workspaceSize, " of ",
                                                    most, " bytes of workspace): ", AlgorithmText(algorithm)));
}

absl::Status CublasLtProblem::Run(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm,
                                  const KernelOperands& operands, std::size_t workspace, cudaStream_t stream) const {
  if (has_bias_) {
    const void* const bias = operands.inputs[2];
    if (absl::Status status = Set(description_.value, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias); !status.ok()) {
      return status;
    }
  }
  const float one = 1.0f, zero = 0.0f;
  const void* const addend = whole_bias_ ? operands.inputs[2] : operands.outputs[0];
  return Check(cublasLtMatmul(handle, description_.value, &one, operands.inputs[1], b_.value, operands.inputs[0],
                              a_.value, whole_bias_ ? &one : &zero, addend, y_.value, operands.outputs[0], y_.value,
                              &algorithm, AlignedWorkspace(operands.workspace), workspace, stream),
               "cublasLtMatmul");
}

}  // namespace mpc::cuda
