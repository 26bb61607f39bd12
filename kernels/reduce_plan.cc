#include "kernels/reduce_plan.h"

#include <array>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace mpc {

absl::StatusOr<ReducePlan> PlanReduce(const KernelSpec& spec, std::size_t position) {
  const Shape& shape = spec.inputs[position].shape;
  const std::vector<std::int64_t> axes = spec.attributes.GetInts("axes");
  if (shape.size() > AxisList::kMaxRank) {
    return absl::UnimplementedError(absl::StrCat("mpc.", spec.name, " of more than ", AxisList::kMaxRank, " axes"));
  }
  std::vector<bool> is_reduced(shape.size(), axes.empty());
  for (std::int64_t axis : axes) {
    if (axis < 0 || axis >= static_cast<std::int64_t>(shape.size())) {
      return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " of a tensor of shape ", ShapeToString(shape)));
    }
    is_reduced[static_cast<std::size_t>(axis)] = true;
  }
  ReducePlan plan;
  plan.in = spec.inputs[position].dtype;
  plan.out = spec.outputs[0].dtype;
  // Merges from the innermost axis outwards. The last entry is the one that is being merged into.
  std::vector<std::array<std::int64_t, 3>> merged;  // extent, stride, reduced
  std::int64_t stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    const std::int64_t extent = shape[axis];
    if (extent == 1) continue;
    if (!merged.empty() && merged.back()[2] == std::int64_t{is_reduced[axis]}) {
      merged.back()[0] *= extent;
    } else {
      merged.push_back({extent, stride, std::int64_t{is_reduced[axis]}});
    }
    stride *= extent;
  }
  std::int64_t reduced_count = 1;
  for (std::size_t i = merged.size(); i-- > 0;) {
    const auto& [extent, axis_stride, reduced] = merged[i];
    if (reduced != 0) reduced_count *= extent;
    if (i == 0) {
      plan.inner = extent;
      plan.inner_reduced = reduced != 0;
    } else {
      (reduced != 0 ? plan.reduced : plan.kept).Push(extent, axis_stride);
    }
  }
  plan.divisor = static_cast<float>(reduced_count);
  return plan;
}

}  // namespace mpc
