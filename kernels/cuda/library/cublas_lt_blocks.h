// Products whose rows are not aligned, in blocks of rows that are.
//
// Tensor cores read and write rows that begin at multiples of 16 bytes. Where rows of f16 or bf16 have another length,
// cuBLASLt takes kernels that are several times slower. Logits of 50,257 classes, and both derivatives of their
// product, ran at 96 to 146 TFLOP/s on an H100. So operands are copied, with zeros behind their rows: b whole, a and y
// in blocks of rows that fit the workspace. It is not enough that rows begin at such multiples: cuBLASLt asks for
// extents that are multiples of 8 too.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/library/cublas_lt_problem.h"

namespace mpc::cuda {

/// How a product is divided.
struct ProductBlocks {
  std::int64_t rows = 0;      ///< rows of y in a block; the last block has what is left
  std::int64_t k = 0, n = 0;  ///< extents with the zeros
  bool copies_a = false, copies_b = false, copies_y = false;
  std::int64_t a_row = 0, b_row = 0, y_row = 0;       ///< as in Product, of the copies or of what is not copied
  std::size_t a_bytes = 0, b_bytes = 0, y_bytes = 0;  ///< bytes of the copies
};

/// Nothing where rows are aligned, where the copies would cost more than they gain, and for products that are added to
/// a matrix. The copies of a and y take at most `workspace_cap` bytes, that of b no more. Depends on shapes and the cap
/// alone.
std::optional<ProductBlocks> BlocksOf(const Product& product, std::size_t workspace_cap);

/// Whether `choice` is one of BlockedProduct.
bool IsBlockedChoice(const std::string& choice);

class BlockedProduct : public Kernel {
 public:
  /// `handle`: null where the product is only planned. `choice`: empty, or what choice() was. Errors:
  /// FAILED_PRECONDITION for a choice that is not written so or that the device refuses; UNIMPLEMENTED where cuBLASLt
  /// has no algorithm.
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const Product& product, const ProductBlocks& blocks,
                                                        cublasLtHandle_t handle, const std::string& choice);

  /// Choices for tuning: at most `limit` algorithms of whole blocks.
  static absl::StatusOr<std::vector<std::string>> Candidates(const Product& product, const ProductBlocks& blocks,
                                                             cublasLtHandle_t handle, int limit);

  std::size_t workspace_bytes() const override;
  /// "blocks:2560:algo:...+algo:...": rows, the algorithm of whole blocks, that of the last one where it is smaller.
  std::string choice() const override { return choice_; }
  absl::Status Enqueue(const KernelOperands& operands, LaunchQueue& queue) override;

 private:
  BlockedProduct(const Product& product, const ProductBlocks& blocks) : product_(product), blocks_(blocks) {}
  absl::Status Choose(cublasLtHandle_t handle, const std::string& choice);
  /// `b`: as the product reads it. `a_copy`: where the copies of a and y and the algorithm's workspace begin.
  absl::Status EnqueueBlock(const KernelOperands& operands, const void* b, std::int64_t first, std::int64_t rows,
                            std::byte* a_copy, LaunchQueue& queue) const;

  Product product_;
  ProductBlocks blocks_;
  cublasLtHandle_t handle_ = nullptr;
  CublasLtProblem whole_, last_;
  cublasLtMatmulAlgo_t whole_algorithm_{}, last_algorithm_{};
  std::string choice_;
};

}  // namespace mpc::cuda
