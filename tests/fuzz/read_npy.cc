#include "frontend/graph/npy.h"
#include "tests/fuzz/readers.h"
#include "tests/fuzz/verdict.h"

namespace mpc::fuzz {

void ReadNpy(absl::Span<const std::uint8_t> input) {
  const absl::StatusOr<Tensor> tensor = internal::ParseNpy(input, kOrigin);
  if (!tensor.ok()) return RequireRefusal(tensor.status());
  Require(tensor->concrete(), "what was accepted is no tensor: " + tensor->status().ToString());
  Require(tensor->bytes().size() == tensor->spec().bytes(), "the tensor's bytes are not those of its type");
  RequireReadable(tensor->bytes());
}

}  // namespace mpc::fuzz
