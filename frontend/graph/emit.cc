#include "frontend/graph/emit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "frontend/graph/eager.h"
#include "frontend/graph/tensor_node.h"
#include "frontend/graph/trace.h"

namespace mpc::internal {

std::vector<Tensor> EmitAll(std::string_view op, const std::vector<Tensor>& operands, const Attributes& attributes,
                            std::optional<DType> result_dtype) {
  if (Trace* trace = Trace::Current()) return trace->Emit(op, operands, attributes, result_dtype);
  return RunOperation(op, operands, attributes, result_dtype);
}

Tensor Emit(std::string_view op, const std::vector<Tensor>& operands, const Attributes& attributes) {
  return EmitAll(op, operands, attributes)[0];
}

Tensor FailWith(const std::string& message, const Shape& shape) {
  if (Trace* trace = Trace::Current()) {
    trace->Fail(message);
    return trace->Poison(shape);
  }
  return MakeInvalid(absl::InvalidArgumentError(message));
}

bool BroadcastsTo(const Shape& from, const Shape& to) {
  const auto fits = [](std::int64_t extent, std::int64_t wanted) { return extent == 1 || extent == wanted; };
  return from.size() <= to.size() && std::equal(from.rbegin(), from.rend(), to.rbegin(), fits);
}

bool IsFiniteInF32(double value) { return std::isfinite(static_cast<float>(value)); }

std::string EpsilonError(std::string_view name, double epsilon) {
  const bool vanishes = epsilon > 0 && static_cast<float>(epsilon) == 0;
  if (epsilon >= 0 && epsilon <= std::numeric_limits<float>::max() && !vanishes) return "";
  return absl::StrCat(std::string(name), " takes an epsilon that is at least 0 and finite in f32, got ", epsilon,
                      vanishes ? ", in whose place f32 holds 0" : "");
}

}  // namespace mpc::internal
