#include "kernels/strided_view.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace mpc {
namespace {

// Adds an axis inside those of `view`. False if there are too many.
bool AddAxis(std::int64_t extent, std::int64_t stride, StridedView& view) {
  view.count *= extent;
  if (extent == 1) return true;
  const int last = view.rank - 1;
  if (last >= 0 && view.strides[last] == stride * extent) {
    view.extents[last] *= extent;
    view.strides[last] = stride;
    return true;
  }
  if (view.rank == StridedView::kMaxRank) return false;
  view.extents[view.rank] = extent;
  view.strides[view.rank] = stride;
  ++view.rank;
  return true;
}

}  // namespace

absl::StatusOr<StridedView> BroadcastView(const Shape& operand, const Shape& result) {
  const auto mismatch = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("shape ", ShapeToString(operand), " does not broadcast to ", ShapeToString(result)));
  };
  if (operand.size() > result.size()) return mismatch();
  const std::size_t missing = result.size() - operand.size();
  const Shape operand_strides = RowMajorStrides(operand);
  StridedView view;
  for (std::size_t axis = 0; axis < result.size(); ++axis) {
    const std::int64_t own = axis < missing ? 1 : operand[axis - missing];
    if (own != result[axis] && own != 1) return mismatch();
    if (!AddAxis(result[axis], own == 1 ? 0 : operand_strides[axis - missing], view)) {
      return absl::InvalidArgumentError(absl::StrCat("broadcasting to ", ShapeToString(result), " has too many axes"));
    }
  }
  return view;
}

absl::StatusOr<StridedView> TransposeView(const Shape& operand, const std::vector<std::int64_t>& permutation) {
  if (permutation.size() != operand.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a permutation of ", permutation.size(), " axes for shape ", ShapeToString(operand)));
  }
  const Shape strides = RowMajorStrides(operand);
  StridedView view;
  for (std::int64_t axis : permutation) {
    if (!AddAxis(operand[axis], strides[axis], view)) {
      return absl::UnimplementedError(absl::StrCat("transpose of ", ShapeToString(operand), " has too many axes"));
    }
  }
  return view;
}

}  // namespace mpc
