// matmul and batch_matmul on cuBLASLt. Its heuristic needs a device. Without one the kernel is only planned, with the
// workspace that it will be given. The algorithm is then chosen where the kernel will run.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/library/cublas_lt_blocks.h"
#include "kernels/cuda/library/cublas_lt_problem.h"
#include "kernels/cuda/library/workspace.h"
#include "kernels/cuda/registry.h"
#include "kernels/known_attributes.h"

namespace mpc::cuda {
namespace {

cudaDataType_t CudaType(DType dtype) {
  if (dtype == DType::kF16) return CUDA_R_16F;
  return dtype == DType::kBF16 ? CUDA_R_16BF : CUDA_R_32F;
}

/// Errors: UNIMPLEMENTED for what the project's own kernel takes.
absl::StatusOr<Product> ProductOf(const KernelSpec& spec, const KernelContext& context) {
  const TensorSpec& a = spec.inputs[0];
  const TensorSpec& b = spec.inputs[1];
  const TensorSpec& y = spec.outputs[0];
  if (a.shape.size() < 2 || b.shape.size() < 2 || y.shape.size() < 2) return UnsupportedTypes(spec);
  // Both operands have one type. The result has that type, or is the f32 sums themselves. The bias has the result's
  // type.
  if (a.dtype != b.dtype || (y.dtype != a.dtype && y.dtype != DType::kF32)) return UnsupportedTypes(spec);
  Product product;
  if (spec.inputs.size() > 2) {
    if (spec.inputs[2].dtype != y.dtype) return UnsupportedTypes(spec);
    product.whole_bias = spec.inputs[2].shape.size() > 1;
    product.has_bias = !product.whole_bias;
  }
  // relu is a kernel of its own behind the product: it commutes with rounding, and cuBLASLt does not promise to keep
  // NaN. Other activations would have to see the sum before it is rounded; of its gelu neither form nor error is
  // stated.
  const Activation activation = spec.attributes.Get(attribute::kActivation);
  if (activation != Activation::kRelu && activation != Activation::kNone) return UnsupportedTypes(spec);
  product.transpose_a = spec.attributes.GetBool("transpose_a");
  product.transpose_b = spec.attributes.GetBool("transpose_b");
  product.m = y.shape[y.shape.size() - 2];
  product.n = y.shape.back();
  product.k = a.shape[a.shape.size() - (product.transpose_a ? 2 : 1)];
  if (y.num_elements() < 1 || product.k < 1) return UnsupportedTypes(spec);
  product.batch = y.num_elements() / (product.m * product.n);
  if (product.batch > std::numeric_limits<std::int32_t>::max()) return UnsupportedTypes(spec);
  product.operand_type = CudaType(a.dtype);
  product.result_type = CudaType(y.dtype);
  product.tf32 = context.allow_tf32 && a.dtype == DType::kF32;
  return product;
}

/// Room for the partial sums of eight splits of k, between 1 and 32 MiB.
std::size_t AlgorithmWorkspace(const Product& product, const KernelContext& context) {
  constexpr std::size_t kLeast = std::size_t{1} << 20;
  constexpr std::size_t kMost = std::size_t{32} << 20;
  constexpr std::size_t kSplits = 8;
  const auto sums = static_cast<std::size_t>(product.batch * product.m * product.n) * sizeof(float);
  const std::size_t cap = context.workspace_cap - std::min(context.workspace_cap, kWorkspaceAlignment);
  return std::min(std::clamp(kSplits * sums, kLeast, kMost), cap);
}

class MatmulKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelSpec& spec, const KernelContext& context) {
    absl::StatusOr<Product> product = ProductOf(spec, context);
    if (!product.ok()) return product.status();
    auto kernel = std::unique_ptr<MatmulKernel>(new MatmulKernel);
    kernel->workspace_ = AlgorithmWorkspace(*product, context);
    kernel->handle_ = static_cast<cublasLtHandle_t>(context.handles.cublas_lt);
    kernel->choice_ = context.choice;
    if (spec.attributes.Get(attribute::kActivation) == Activation::kRelu) {
      KernelContext own = context;
      own.choice.clear();
      absl::StatusOr<std::unique_ptr<Kernel>> relu =
          CreateKernel({"relu", {spec.outputs[0]}, {spec.outputs[0]}, {}, {}}, own);
      if (!relu.ok()) return relu.status();
      kernel->relu_ = *std::move(relu);
    }
    if (absl::Status status = kernel->ChooseAlgorithm(*product); !status.ok()) return status;
    return kernel;
  }

  std::size_t workspace_bytes() const override { return PaddedWorkspace(workspace_); }
  std::string choice() const override { return choice_; }

  absl::Status Enqueue(const KernelOperands& operands, LaunchQueue& queue) override {
    if (handle_ == nullptr) {
      return absl::FailedPreconditionError("a cuBLASLt product that was planned without a device cannot run");
    }
    if (absl::Status status =
            problem_.Run(handle_, algorithm_, operands, workspace_, static_cast<cudaStream_t>(queue.stream()));
        !status.ok() || relu_ == nullptr) {
      return status;
    }
    const void* const y = operands.outputs[0];
    return relu_->Enqueue({&y, operands.outputs, nullptr}, queue);
  }

 private:
  MatmulKernel() = default;

  absl::Status ChooseAlgorithm(const Product& product) {
    if (!choice_.empty()) {
      absl::StatusOr<cublasLtMatmulAlgo_t> algorithm = ParseAlgorithm(choice_);
      if (!algorithm.ok()) return algorithm.status();
      algorithm_ = *algorithm;
    }
    if (handle_ == nullptr) return absl::OkStatus();
    if (absl::Status status = problem_.Build(product); !status.ok()) return status;
    if (choice_.empty()) {
      absl::StatusOr<std::vector<cublasLtMatmulAlgo_t>> algorithms =
          problem_.Algorithms(handle_, workspace_, /*limit=*/8);
      if (!algorithms.ok()) return algorithms.status();
      if (algorithms->empty()) return absl::UnimplementedError("cuBLASLt has no algorithm for this product");
      algorithm_ = algorithms->front();
      choice_ = AlgorithmText(algorithm_);
    }
    // Most algorithms take none, and products that share none may run at once.
    const absl::StatusOr<std::size_t> needed = problem_.WorkspaceOf(handle_, algorithm_, workspace_);
    if (needed.ok()) workspace_ = *needed;
    return needed.status();
  }

  CublasLtProblem problem_;
  cublasLtHandle_t handle_ = nullptr;  ///< null where it is only planned
  cublasLtMatmulAlgo_t algorithm_{};
  std::string choice_;            ///< empty where it is left to the device that will run it
  std::size_t workspace_ = 0;     ///< where it is only planned, the most that it may take
  std::unique_ptr<Kernel> relu_;  ///< null: none
};

/// On an H100 some of cuBLASLt's kernels round the product before they add the bias. They are that of a single element
/// and some of those for rows that are not aligned.
bool RoundsBeforeTheBias(const Product& product) {
  constexpr std::int64_t kAlignedElements = 8;
  return product.has_bias && product.result_type != CUDA_R_32F && (product.m == 1 || product.n % kAlignedElements != 0);
}

/// Whether mpc's own product is one launch of a few blocks where cuBLASLt's would be followed by relu's. Both launches
/// take about as long.
bool SavesReluLaunch(const KernelSpec& spec, const Product& product, const KernelContext& context) {
  constexpr std::int64_t kMostDepth = 512;
  constexpr std::int64_t kTile = 16;  // of SmallProductKernel
  const std::int64_t tiles = product.batch * ((product.m + kTile - 1) / kTile) * ((product.n + kTile - 1) / kTile);
  return spec.attributes.Get(attribute::kActivation) == Activation::kRelu && product.k <= kMostDepth &&
         tiles <= context.target.multiprocessors;
}

/// How the product is divided, if it is: a relu would need a pass of its own over each block.
std::optional<ProductBlocks> BlocksOf(const KernelSpec& spec, const Product& product, const KernelContext& context) {
  if (spec.attributes.Get(attribute::kActivation) == Activation::kRelu) return std::nullopt;
  return BlocksOf(product, context.workspace_cap);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateProduct(const KernelSpec& spec, const KernelContext& context) {
  absl::StatusOr<Product> product = ProductOf(spec, context);
  if (!product.ok()) return product.status();
  if (context.choice.empty() && SavesReluLaunch(spec, *product, context)) {
    return absl::UnimplementedError("the project's own small product applies relu in the same launch");
  }
  const std::optional<ProductBlocks> blocks = BlocksOf(spec, *product, context);
  const bool asked = IsBlockedChoice(context.choice);
  if (asked && !blocks) {
    return absl::FailedPreconditionError(
        absl::StrCat("mpc.", spec.name, " is not divided into blocks: ", context.choice));
  }
  if (!blocks || (!asked && !context.choice.empty())) {
    if (!RoundsBeforeTheBias(*product)) return MatmulKernel::Create(spec, context);
    if (context.choice.empty()) return UnsupportedTypes(spec);
    return absl::FailedPreconditionError(absl::StrCat("an algorithm of cuBLASLt may round mpc.", spec.name,
                                                      " before it adds this bias: ", context.choice));
  }
  return BlockedProduct::Create(*product, *blocks, static_cast<cublasLtHandle_t>(context.handles.cublas_lt),
                                context.choice);
}

absl::StatusOr<std::vector<std::string>> MatmulCandidates(const KernelSpec& spec, const KernelContext& context) {
  constexpr int kCandidates = 16;
  absl::StatusOr<Product> product = ProductOf(spec, context);
  if (!product.ok()) return product.status();
  std::vector<std::string> choices;
  if (context.handles.cublas_lt == nullptr) return choices;
  const auto handle = static_cast<cublasLtHandle_t>(context.handles.cublas_lt);
  if (const std::optional<ProductBlocks> blocks = BlocksOf(spec, *product, context)) {
    return BlockedProduct::Candidates(*product, *blocks, handle, kCandidates / 2);
  }
  if (RoundsBeforeTheBias(*product)) return UnsupportedTypes(spec);
  CublasLtProblem problem;
  if (absl::Status status = problem.Build(*product); !status.ok()) return status;
  absl::StatusOr<std::vector<cublasLtMatmulAlgo_t>> algorithms =
      problem.Algorithms(handle, AlgorithmWorkspace(*product, context), kCandidates);
  if (!algorithms.ok()) return algorithms.status();
  for (const cublasLtMatmulAlgo_t& algorithm : *algorithms) choices.push_back(AlgorithmText(algorithm));
  return choices;
}

}  // namespace

void RegisterCublasLt(Registry& registry) {
  registry.AddLibrary("matmul", CreateProduct, MatmulCandidates);
  registry.AddLibrary("batch_matmul", CreateProduct, MatmulCandidates);
}

}  // namespace mpc::cuda
