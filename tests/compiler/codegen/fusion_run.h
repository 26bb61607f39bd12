// Operands of a region in guarded memory, filled as its case says, and how results are compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/dialect/dialect.h"
#include "kernels/reference/reference.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "tests/compiler/codegen/fusion_cases.h"

namespace mpc::test {

/// The module of \p region and its fusion.
struct ParsedFusion {
  explicit ParsedFusion(const FusionCase& region);
  mlir::OwningOpRef<mlir::ModuleOp> module;
  FusionOp fusion;
};

/// Memory between guards, aligned as operands are; unwritten bytes are NaN in every type.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(std::size_t bytes);
  void* data() { return storage_.data() + offset_; }
  std::size_t bytes() const { return bytes_; }
  bool GuardsAreWhole() const;

 private:
  std::vector<std::uint8_t> storage_;
  std::size_t offset_ = 0;
  std::size_t bytes_;
};

/// The operands of one run: inputs, then results.
class FusionOperands {
 public:
  FusionOperands(const FusionCase& region, FusionOp fusion);

  void* const* pointers() const { return pointers_.data(); }
  /// Lays result `output` over input `input`.
  void Share(std::size_t output, std::size_t input);
  std::vector<reference::Tensor> Results() const;
  /// Nothing was written before or behind an operand, and no input that no result shares.
  void ExpectNothingElseWritten() const;

 private:
  std::vector<TensorSpec> specs_;
  std::size_t inputs_;
  std::vector<GuardedBuffer> buffers_;
  std::vector<std::vector<std::uint8_t>> contents_;  ///< of the inputs
  std::vector<bool> shared_;
  std::vector<void*> pointers_;
};

/// NaN equal each other; else every bit.
void ExpectEqualBits(const std::vector<reference::Tensor>& ours, const std::vector<reference::Tensor>& theirs);
/// Within what the case allows; equal bits where it allows nothing.
void ExpectWithinBounds(const FusionCase& region, const std::vector<reference::Tensor>& ours,
                        const std::vector<reference::Tensor>& theirs);

}  // namespace mpc::test
