// Weights in the layout that a library packs them into. An instruction "pack_weight" in front of the operation that
// reads them does so. The IR knows nothing of it. Lowering asks a device for the packing that its kernel would
// otherwise do inside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/attributes.h"
#include "kernels/kernel_spec.h"
#include "kernels/tensor_spec.h"

namespace mpc {

/// The operand that is packed, for a convolution, its gradient by the input, and a product.
inline constexpr std::size_t kWeightOperand = 1;

/// The mnemonic of the instruction.
inline constexpr char kPackWeight[] = "pack_weight";

/// How a kernel wants its weight.
struct WeightPacking {
  TensorSpec packed;   ///< what the instruction writes: [elements, padding included] of the type that is multiplied
  std::string layout;  ///< the library's name, "AcdB16b64a2b"
  std::string choice;  ///< the implementation that takes it so
  std::vector<std::int64_t> extents, strides;  ///< the weight as it is stored, in the library's order of dimensions
};

/// Attributes of the instruction: "layout", "extents", "strides".
Attributes PackingAttributes(const WeightPacking& packing);

/// Makes the attributes of an operation say that its weight, `weight` in the IR, comes packed.
void MarkPacked(const WeightPacking& packing, const TensorSpec& weight, Attributes& attributes);

/// Reads the attributes that MarkPacked wrote. Sets the spec's weight to that of the IR, sets KernelSpec::weight_layout
/// and weight_choice, and removes the attributes. Any spec without them is left as it is. Errors (INVALID_ARGUMENT):
/// attributes that name no weight.
absl::Status ReadPacked(KernelSpec& spec);

/// Removes the attributes that MarkPacked wrote.
void UnmarkPacked(Attributes& attributes);

}  // namespace mpc
