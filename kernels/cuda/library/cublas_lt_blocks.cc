#include "kernels/cuda/library/cublas_lt_blocks.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/cuda/library/workspace.h"
#include "kernels/cuda/padded_copy.h"

namespace mpc::cuda {
namespace {

constexpr char kPrefix[] = "blocks:";
constexpr std::int64_t kElementBytes = 2;
constexpr std::int64_t kAlignedElements = 8;  ///< elements of 16 bytes
constexpr std::int64_t kPaddedElements = 64;  ///< elements of a cache line: rows of copies begin at whole ones
constexpr std::int64_t kRowsOfBlocks = 64;    ///< what the rows of a block are a multiple of
constexpr std::int64_t kFewestRows = 256;     ///< rows of a block that keeps the device busy
constexpr std::size_t kAlgorithmWorkspace = std::size_t{32} << 20;

std::int64_t RoundUp(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

std::size_t Aligned(std::int64_t elements) {
  return static_cast<std::size_t>(RoundUp(elements * kElementBytes, kWorkspaceAlignment));
}

bool IsAligned(std::int64_t elements) { return elements % kAlignedElements == 0; }

std::int64_t RowOfA(const Product& product) { return product.transpose_a ? product.m : product.k; }
std::int64_t RowOfB(const Product& product) { return product.transpose_b ? product.k : product.n; }

/// What `rows` rows of y read of a, as it lies in `product` and as it lies in the copy.
StridedMatrix BlockOfA(const Product& product, std::int64_t rows) {
  if (product.transpose_a) return {product.k, rows, product.m};
  return {rows, product.k, product.k};
}
StridedMatrix CopiedBlockOfA(const Product& product, const ProductBlocks& blocks, std::int64_t rows) {
  if (product.transpose_a) return {blocks.k, rows, blocks.a_row};
  return {rows, blocks.k, blocks.a_row};
}

/// Whether the copy of y holds sums that still need their bias.
bool AddsBias(const Product& product, const ProductBlocks& blocks) { return product.has_bias && blocks.copies_y; }

/// The product of one block, of `rows` rows.
Product BlockOf(const Product& product, const ProductBlocks& blocks, std::int64_t rows) {
  Product block = product;
  block.m = rows;
  block.k = blocks.k;
  block.n = blocks.n;
  block.a_row = blocks.a_row;
  block.b_row = blocks.b_row;
  block.y_row = blocks.y_row;
  // The bias is added to f32 sums as they are copied: cuBLASLt may round before it adds.
  if (AddsBias(product, blocks)) {
    block.has_bias = false;
    block.result_type = CUDA_R_32F;
  }
  return block;
}

std::int64_t LastRows(const Product& product, const ProductBlocks& blocks) { return product.m % blocks.rows; }

std::string TextOf(const ProductBlocks& blocks, const std::string& whole, const std::string& last) {
  return absl::StrCat(kPrefix, blocks.rows, ":", whole, last.empty() ? "" : "+", last);
}

absl::StatusOr<cublasLtMatmulAlgo_t> BestAlgorithm(const CublasLtProblem& problem, cublasLtHandle_t handle) {
  absl::StatusOr<std::vector<cublasLtMatmulAlgo_t>> found = problem.Algorithms(handle, kAlgorithmWorkspace, 8);
  if (!found.ok()) return found.status();
  if (found->empty()) return absl::UnimplementedError("cuBLASLt has no algorithm for a block of this product");
  return found->front();
}

/// What is copied, and how large b's copy is.
ProductBlocks CopiesOf(const Product& product) {
  ProductBlocks copies;
  copies.k = RoundUp(product.k, kAlignedElements);
  copies.n = RoundUp(product.n, kAlignedElements);
  copies.copies_a = !IsAligned(product.k) || !IsAligned(RowOfA(product));
  copies.copies_b = !IsAligned(product.k) || !IsAligned(product.n);
  copies.copies_y = !IsAligned(product.n);
  copies.b_row = copies.copies_b ? RoundUp(RowOfB(product), kPaddedElements) : RowOfB(product);
  if (copies.copies_b) copies.b_bytes = Aligned(copies.b_row * (product.transpose_b ? copies.n : copies.k));
  return copies;
}

/// A copied element moves 4 bytes. It saves about 3/4 of the time of its multiplications at 150 TFLOP/s. With this many
/// of them that is twice what the copy takes at 2.5 TB/s.
bool GainsFromCopies(const Product& product, const ProductBlocks& copies) {
  constexpr double kLeastProducts = 512;
  const auto m = static_cast<double>(product.m), k = static_cast<double>(product.k), n = static_cast<double>(product.n);
  const double copied = (copies.copies_a ? m * k : 0) + (copies.copies_b ? k * n : 0) + (copies.copies_y ? m * n : 0);
  return m * k * n >= kLeastProducts * copied;
}

/// `copies` in blocks of `rows` rows.
ProductBlocks WithRows(const Product& product, const ProductBlocks& copies, std::int64_t rows) {
  ProductBlocks blocks = copies;
  blocks.rows = rows;
  blocks.a_row = RowOfA(product);
  if (copies.copies_a) {
    blocks.a_row = RoundUp(product.transpose_a ? rows : copies.k, kPaddedElements);
    blocks.a_bytes = Aligned(blocks.a_row * (product.transpose_a ? copies.k : rows));
  }
  blocks.y_row = copies.copies_y ? RoundUp(copies.n, kPaddedElements) : product.n;
  // f32 sums are twice as large.
  if (copies.copies_y) blocks.y_bytes = (product.has_bias ? 2 : 1) * Aligned(blocks.y_row * rows);
  return blocks;
}

}  // namespace

std::optional<ProductBlocks> BlocksOf(const Product& product, std::size_t workspace_cap) {
  const bool low = product.operand_type != CUDA_R_32F && product.result_type == product.operand_type;
  if (!low || product.batch != 1 || product.whole_bias) return std::nullopt;
  const ProductBlocks copies = CopiesOf(product);
  if ((!copies.copies_a && !copies.copies_b) || (product.has_bias && !copies.copies_y)) return std::nullopt;
  if (!GainsFromCopies(product, copies) || copies.b_bytes > workspace_cap) return std::nullopt;
  const ProductBlocks unit = WithRows(product, copies, kRowsOfBlocks);
  const std::size_t unit_bytes = unit.a_bytes + unit.y_bytes;
  const std::int64_t most =
      unit_bytes == 0 ? product.m : static_cast<std::int64_t>(workspace_cap / unit_bytes) * kRowsOfBlocks;
  if (most < std::min(kFewestRows, product.m)) return std::nullopt;
  const std::int64_t count = (product.m + most - 1) / most;
  return WithRows(product, copies, std::min(product.m, RoundUp((product.m + count - 1) / count, kRowsOfBlocks)));
}

bool IsBlockedChoice(const std::string& choice) { return absl::StartsWith(choice, kPrefix); }

absl::StatusOr<std::unique_ptr<Kernel>> BlockedProduct::Create(const Product& product, const ProductBlocks& blocks,
                                                               cublasLtHandle_t handle, const std::string& choice) {
  auto kernel = std::unique_ptr<BlockedProduct>(new BlockedProduct(product, blocks));
  if (absl::Status status = kernel->Choose(handle, choice); !status.ok()) return status;
  return kernel;
}

absl::Status BlockedProduct::Choose(cublasLtHandle_t handle, const std::string& choice) {
  handle_ = handle;
  choice_ = choice;
  const std::int64_t last_rows = LastRows(product_, blocks_);
  std::vector<cublasLtMatmulAlgo_t> chosen;
  if (!choice.empty()) {
    const std::string prefix = absl::StrCat(kPrefix, blocks_.rows, ":");
    const std::vector<std::string> texts = absl::StrSplit(absl::StripPrefix(choice, prefix), '+');
    if (!absl::StartsWith(choice, prefix) || texts.size() != (last_rows == 0 ? 1u : 2u)) {
      return absl::FailedPreconditionError(absl::StrCat("the chosen product in blocks is written \"", prefix,
                                                        "algo:...", last_rows == 0 ? "" : "+algo:...", "\", got \"",
                                                        choice, "\""));
    }
    for (const std::string& text : texts) {
      absl::StatusOr<cublasLtMatmulAlgo_t> algorithm = ParseAlgorithm(text);
      if (!algorithm.ok()) return algorithm.status();
      chosen.push_back(*algorithm);
    }
  }
  if (handle == nullptr) return absl::OkStatus();
  std::vector<std::string> texts;
  for (auto [problem, algorithm, rows] :
       {std::tuple(&whole_, &whole_algorithm_, blocks_.rows), std::tuple(&last_, &last_algorithm_, last_rows)}) {
    if (rows == 0) continue;
    if (absl::Status status = problem->Build(BlockOf(product_, blocks_, rows)); !status.ok()) return status;
    if (choice.empty()) {
      absl::StatusOr<cublasLtMatmulAlgo_t> best = BestAlgorithm(*problem, handle);
      if (!best.ok()) return best.status();
      *algorithm = *best;
    } else {
      *algorithm = chosen[texts.size()];
      const absl::Status status = problem->WorkspaceOf(handle, *algorithm, kAlgorithmWorkspace).status();
      if (!status.ok()) return status;
    }
    texts.push_back(AlgorithmText(*algorithm));
  }
  texts.resize(2);
  choice_ = TextOf(blocks_, texts[0], texts[1]);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> BlockedProduct::Candidates(const Product& product, const ProductBlocks& blocks,
                                                                    cublasLtHandle_t handle, int limit) {
  CublasLtProblem whole, last;
  if (absl::Status status = whole.Build(BlockOf(product, blocks, blocks.rows)); !status.ok()) return status;
  absl::StatusOr<std::vector<cublasLtMatmulAlgo_t>> algorithms = whole.Algorithms(handle, kAlgorithmWorkspace, limit);
  if (!algorithms.ok()) return algorithms.status();
  std::string of_last;
  if (const std::int64_t rows = LastRows(product, blocks); rows > 0) {
    if (absl::Status status = last.Build(BlockOf(product, blocks, rows)); !status.ok()) return status;
    absl::StatusOr<cublasLtMatmulAlgo_t> best = BestAlgorithm(last, handle);
    if (!best.ok()) return best.status();
    of_last = AlgorithmText(*best);
  }
  std::vector<std::string> choices;
  for (const cublasLtMatmulAlgo_t& algorithm : *algorithms) {
    choices.push_back(TextOf(blocks, AlgorithmText(algorithm), of_last));
  }
  return choices;
}

std::size_t BlockedProduct::workspace_bytes() const {
  return PaddedWorkspace(blocks_.a_bytes + blocks_.b_bytes + blocks_.y_bytes + kAlgorithmWorkspace);
}

absl::Status BlockedProduct::Enqueue(const KernelOperands& operands, LaunchQueue& queue) {
  if (handle_ == nullptr) {
    return absl::FailedPreconditionError("a cuBLASLt product that was planned without a device cannot run");
  }
  auto* const b_copy = static_cast<std::byte*>(AlignedWorkspace(operands.workspace));
  std::byte* const scratch = b_copy + blocks_.b_bytes;
  const void* b = operands.inputs[1];
  if (blocks_.copies_b) {
    const StridedMatrix from{product_.transpose_b ? product_.n : product_.k, RowOfB(product_), RowOfB(product_)};
    const StridedMatrix to{product_.transpose_b ? blocks_.n : blocks_.k, product_.transpose_b ? blocks_.k : blocks_.n,
                           blocks_.b_row};
    if (absl::Status status = EnqueuePaddedCopy(b, from, b_copy, to, queue); !status.ok()) return status;
    b = b_copy;
  }
  for (std::int64_t first = 0; first < product_.m; first += blocks_.rows) {
    const std::int64_t rows = std::min(blocks_.rows, product_.m - first);
    if (absl::Status status = EnqueueBlock(operands, b, first, rows, scratch, queue); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status BlockedProduct::EnqueueBlock(const KernelOperands& operands, const void* b, std::int64_t first,
                                          std::int64_t rows, std::byte* a_copy, LaunchQueue& queue) const {
  std::byte* const y_copy = a_copy + blocks_.a_bytes;
  const void* a = static_cast<const std::byte*>(operands.inputs[0]) +
                  first * (product_.transpose_a ? 1 : product_.k) * kElementBytes;
  void* const result = static_cast<std::byte*>(operands.outputs[0]) + first * product_.n * kElementBytes;
  if (blocks_.copies_a) {
    if (absl::Status status =
            EnqueuePaddedCopy(a, BlockOfA(product_, rows), a_copy, CopiedBlockOfA(product_, blocks_, rows), queue);
        !status.ok()) {
      return status;
    }
    a = a_copy;
  }
  void* const y = blocks_.copies_y ? y_copy : result;
  const void* const bias = product_.has_bias ? operands.inputs[2] : nullptr;
  const void* const inputs[] = {a, b, bias};
  const bool whole = rows == blocks_.rows;
  if (absl::Status status =
          (whole ? whole_ : last_)
              .Run(handle_, whole ? whole_algorithm_ : last_algorithm_, {inputs, &y, y_copy + blocks_.y_bytes},
                   kAlgorithmWorkspace, static_cast<cudaStream_t>(queue.stream()));
      !status.ok() || !blocks_.copies_y) {
    return status;
  }
  if (AddsBias(product_, blocks_)) {
    const DType dtype = product_.result_type == CUDA_R_16F ? DType::kF16 : DType::kBF16;
    return EnqueueRoundedSum(reinterpret_cast<const float*>(y_copy), blocks_.y_row, {bias, dtype}, {result, dtype},
                             rows, product_.n, queue);
  }
  return EnqueuePaddedCopy(y_copy, {rows, product_.n, blocks_.y_row}, result, {rows, product_.n, product_.n}, queue);
}

}  // namespace mpc::cuda
