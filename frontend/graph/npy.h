// NumPy's .npy format (NEP 1): magic, version, header length, a Python dict as text, then the elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "frontend/graph/tensor.h"

namespace mpc::internal {

/// What the header of a file declares. Its elements follow from byte `elements_begin` on, in the order of the rows, or
/// with the first axis fastest (`fortran_order`).
struct NpyLayout {
  TensorSpec spec;
  bool fortran_order = false;
  std::size_t elements_begin = 0;
};

/// The layout of a file that holds exactly the elements that its header declares. Errors are LoadNpy's.
absl::StatusOr<NpyLayout> ParseNpyLayout(absl::Span<const std::uint8_t> content, const std::string& origin);

/// Reads version 1 and 2: little-endian f2, f4, f8, i4, i8, u1, b1 in C order. The file must hold exactly the elements
/// that its header declares. Errors (INVALID_ARGUMENT) name `path`, what was found and what is accepted.
absl::StatusOr<Tensor> LoadNpy(const std::string& path);

/// As LoadNpy from memory; `origin` names the source in errors.
absl::StatusOr<Tensor> ParseNpy(absl::Span<const std::uint8_t> content, const std::string& origin);

/// Writes a concrete tensor as NumPy does (version 1, elements aligned to 64 bytes), atomically.
/// Errors (INVALID_ARGUMENT): bf16 and f8, which NumPy has no types for.
absl::Status SaveNpy(const Tensor& tensor, const std::string& path);

}  // namespace mpc::internal
