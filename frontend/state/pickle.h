// Recognises pickles, which mpc does not read. Not part of the public API.
#pragma once

#include <cstdint>
#include <string>

#include "absl/types/span.h"

namespace mpc::internal {

/// Whether a file begins as those of torch.save do: as a zip archive, or as a bare pickle.
bool IsPickle(absl::Span<const std::uint8_t> content);

/// Says that the file at `path` is a pickle, and the two lines of Python that make safetensors of it.
std::string PickleAdvice(const std::string& path);

}  // namespace mpc::internal
