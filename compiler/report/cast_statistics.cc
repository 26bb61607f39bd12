#include "compiler/report/cast_statistics.h"

#include <algorithm>
#include <tuple>

namespace mpc::compiler {

const char *CastKindName(CastKind Kind) {
  switch (Kind) {
  case CastKind::kWeight:
    return "weight";
  case CastKind::kInput:
    return "input";
  case CastKind::kActivation:
    return "activation";
  case CastKind::kGradient:
    return "gradient";
  case CastKind::kLoss:
    return "loss";
  case CastKind::kWidening:
    return "widening";
  case CastKind::kUser:
    return "user";
  case CastKind::kOther:
    return "other";
  }
  return "unknown";
}

void CastStatistics::add(const CastRecord &Cast) {
  const auto Key = std::tie(Cast.kind, Cast.from, Cast.to);
  auto At = std::lower_bound(groups_.begin(), groups_.end(), Key, [](const CastGroup &Group, const auto &Wanted) {
    return std::tie(Group.kind, Group.from, Group.to) < Wanted;
  });
  if (At == groups_.end() || std::tie(At->kind, At->from, At->to) != Key)
    At = groups_.insert(At, {Cast.kind, Cast.from, Cast.to, 0, 0, {}});
  ++At->count;
  At->bytes += Cast.bytes;
  At->where.push_back(Cast.where);
  ++count_;
  bytes_ += Cast.bytes;
}

} // namespace mpc::compiler
