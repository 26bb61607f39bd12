// What a Tensor handle points to. Not part of the public API.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "frontend/graph/tensor.h"
#include "runtime/aligned_buffer.h"

namespace mpc::internal {

/// Concrete: `graph` is null and `data` holds the elements. Symbolic: `graph` identifies the trace and `value` is the
/// opaque pointer of its mlir::Value, null if poisoned.
struct TensorNode {
  TensorSpec spec;
  absl::Status status;
  runtime::AlignedBuffer data;
  const void* graph = nullptr;
  void* value = nullptr;
  std::string origin;     ///< the file whose bytes `data` holds, for messages; mostly empty
  std::size_t depth = 0;  ///< depth of the traced function that the value belongs to; 1 is the outermost
};

/// Whether two tensors are one value of a traced graph, or handles of one tensor. Undefined tensors are not.
bool SameValue(const Tensor& a, const Tensor& b);

/// OK if `spec` describes a tensor that can exist. Errors (INVALID_ARGUMENT): a negative extent, more bytes than an
/// address can count.
absl::Status CheckSpec(const TensorSpec& spec);

/// A concrete tensor that takes over `data`, which holds exactly spec.bytes() bytes, row-major, bool as 0 or 1.
/// `origin` is the file whose bytes these are.
Tensor MakeConcrete(TensorSpec spec, runtime::AlignedBuffer data, std::string origin = {});

/// A concrete tensor without elements that carries an error in `status()`.
Tensor MakeInvalid(absl::Status status);

}  // namespace mpc::internal
