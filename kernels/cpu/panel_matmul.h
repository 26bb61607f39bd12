// matmul by our own loops: of bf16 on tiles (AMX), and in f32.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/matmul_shape.h"

namespace mpc::cpu {

/// Whether both operands are bf16, neither is packed, and the processor has tiles.
bool MayMultiplyOnTiles(const KernelSpec& spec);

/// Whether a matmul that MayMultiplyOnTiles() is faster so than by the library (docs/cpu.md has what was measured).
bool IsFasterOnTiles(const MatmulShape& shape);

/// Bytes of a result that no cache holds. It is stored without being read first.
inline constexpr std::size_t kStreamedBytes = 32 << 20;

/// The kernel of a matmul that MayMultiplyOnTiles(). A result of `streamed_bytes` or more passes the caches, with the
/// same bits. Errors: those of MatmulShape::Create.
absl::StatusOr<std::unique_ptr<Kernel>> MakeTileMatmul(const KernelSpec& spec,
                                                       std::size_t streamed_bytes = kStreamedBytes);

/// Whether the operands are multiplied in f32, neither is packed, and MultipliesFloats() (row_products.h).
bool MayMultiplyInPanels(const KernelSpec& spec);

/// Whether a matmul that MayMultiplyInPanels() is faster so than by the library (docs/cpu.md has what was measured).
bool IsFasterInPanels(const MatmulShape& shape);

/// The kernel of a matmul that MayMultiplyInPanels(). Errors: those of MatmulShape::Create.
absl::StatusOr<std::unique_ptr<Kernel>> MakePanelMatmul(const KernelSpec& spec);

}  // namespace mpc::cpu
