#include "kernels/cpu/broadcast.h"

namespace mpc::cpu {

absl::StatusOr<BroadcastMap> BroadcastMap::Create(const Shape& operand, const Shape& result) {
  absl::StatusOr<StridedView> view = BroadcastView(operand, result);
  if (!view.ok()) return view.status();
  BroadcastMap map;
  map.rank_ = view->rank;
  map.extents_ = view->extents;
  map.strides_ = view->strides;
  return map;
}

}  // namespace mpc::cpu
