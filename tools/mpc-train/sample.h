// Text written by a language model of bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "mpc/train.h"

namespace mpc::tools {

struct SampleOptions {
  std::string prompt = "\n";  ///< at least one byte
  std::int64_t bytes = 256;   ///< to be written
  std::int64_t context = 64;  ///< bytes that the network reads, the last ones
  /// Logits are divided by it before the softmax: below 1 likely bytes come more often. 0: the likeliest byte, the
  /// first of equals.
  double temperature = 0.8;
  std::uint64_t seed = 1;  ///< equal seeds give equal text
};

/// The prompt and what `model` writes behind it, byte by byte. `model` maps i32 [1, context] to logits [context, 256].
/// Errors: those of Model::Predict; logits that are not finite.
absl::StatusOr<std::string> SampleText(Model& model, const SampleOptions& options);

/// `text` for terminals and JSON: control characters but tab and line break, and bytes that are no UTF-8, become \xNN.
std::string Printable(std::string_view text);

}  // namespace mpc::tools
