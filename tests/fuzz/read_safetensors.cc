#include "frontend/state/safetensors.h"
#include "tests/fuzz/readers.h"
#include "tests/fuzz/verdict.h"

namespace mpc::fuzz {

void ReadSafetensors(absl::Span<const std::uint8_t> input) {
  const absl::StatusOr<Safetensors> content = ParseSafetensors(input, kOrigin);
  if (!content.ok()) return RequireRefusal(content.status());
  std::size_t bytes = 0;
  for (const auto& [name, tensor] : content->tensors) {
    Require(tensor.concrete(), "'" + name + "' is no tensor: " + tensor.status().ToString());
    Require(content->Find(name) == &tensor, "'" + name + "' is there twice");
    RequireReadable(tensor.bytes());
    bytes += tensor.bytes().size();
  }
  Require(bytes <= input.size(), "there are more bytes of tensors than the file has");
}

}  // namespace mpc::fuzz
