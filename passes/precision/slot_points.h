// What low slots round, as places in the outputs of a step. Free of MLIR headers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mpc {

/// Something that a low slot rounds: a value where the slot reads or writes it, and the cotangent there.
struct SlotPoint {
  std::int64_t place = 0; ///< the point's number among those of the step
  bool roundsValue = true;
  bool roundsCotangent = true;
};

/// What one slot rounds where it alone is low.
struct SlotProbe {
  std::string slot;
  std::vector<SlotPoint> points;
};

/// What a step returns for slots.
struct SlotProbes {
  std::vector<SlotProbe> slots;
  std::int64_t points = 0; ///< the step has two more outputs for each: "value.0", "cotangent.0", "value.1", ...
};

} // namespace mpc
