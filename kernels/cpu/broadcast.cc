#include "kernels/cpu/broadcast.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace mpc::cpu {

absl::StatusOr<BroadcastMap> BroadcastMap::Create(const Shape& operand, const Shape& result) {
  const auto mismatch = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("shape ", ShapeToString(operand), " does not broadcast to ", ShapeToString(result)));
  };
  if (operand.size() > result.size()) return mismatch();
  const std::size_t missing = result.size() - operand.size();
  const Shape operand_strides = RowMajorStrides(operand);
  BroadcastMap map;
  for (std::size_t axis = 0; axis < result.size(); ++axis) {
    const std::int64_t extent = result[axis];
    const std::int64_t own = axis < missing ? 1 : operand[axis - missing];
    if (own != extent && own != 1) return mismatch();
    if (extent == 1) continue;
    const std::int64_t stride = own == 1 ? 0 : operand_strides[axis - missing];
    if (map.rank_ > 0 && map.strides_[map.rank_ - 1] == stride * extent) {
      map.extents_[map.rank_ - 1] *= extent;
      map.strides_[map.rank_ - 1] = stride;
      continue;
    }
    if (map.rank_ == kMaxRank) {
      return absl::InvalidArgumentError(absl::StrCat("broadcasting to ", ShapeToString(result), " has too many axes"));
    }
    map.extents_[map.rank_] = extent;
    map.strides_[map.rank_] = stride;
    ++map.rank_;
  }
  return map;
}

}  // namespace mpc::cpu
