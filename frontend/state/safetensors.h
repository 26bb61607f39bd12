// The safetensors format (huggingface/safetensors): header length in 8 little-endian bytes, a JSON header, raw tensors.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "frontend/graph/tensor.h"

namespace mpc {

/// The content of one file. Names are unique, tensors are concrete. The dtypes are F32, F16, BF16, F64, F8_E4M3,
/// F8_E5M2, I8, I32, I64 and BOOL.
struct Safetensors {
  std::vector<std::pair<std::string, Tensor>> tensors;
  std::map<std::string, std::string> metadata;

  /// The tensor called `name`, or null.
  const Tensor* Find(std::string_view name) const;
};

/// Writes the bytes that the Python library writes. Tensors are ordered by element type (widest first), then by name.
/// The header is padded with spaces to 8 bytes and has no `__metadata__` if there is none. The file is written beside
/// `path`, synced and renamed. Errors (INVALID_ARGUMENT): a repeated or reserved name, a name that is not UTF-8, a
/// tensor without elements in memory.
absl::Status SaveSafetensors(const std::string& path, const Safetensors& content);

/// Reads a whole file and checks all of it before anything is returned. Errors (INVALID_ARGUMENT) name the file, the
/// entry, what was found and what was expected. Errors of the file: it is shorter or longer than its header says, or
/// its JSON is broken. Errors of an entry: a repeated name, an unknown dtype, or a size that differs from the shape's.
/// Errors of offsets: they overlap, leave a gap or point outside. Of a pickle the error says how to convert it.
absl::StatusOr<Safetensors> LoadSafetensors(const std::string& path);

/// As LoadSafetensors from memory; `origin` names the source in errors.
absl::StatusOr<Safetensors> ParseSafetensors(absl::Span<const std::uint8_t> content, const std::string& origin);

}  // namespace mpc
