#include "compiler/report/cast_statistics.h"

#include <algorithm>
#include <tuple>

namespace mpc::compiler {

const char *CastKindName(CastKind kind) {
  switch (kind) {
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

void CastStatistics::add(const CastRecord &cast) {
  const auto key = std::tie(cast.kind, cast.from, cast.to);
  auto at = std::lower_bound(castGroups.begin(), castGroups.end(), key, [](const CastGroup &group, const auto &wanted) {
    return std::tie(group.kind, group.from, group.to) < wanted;
  });
  if (at == castGroups.end() || std::tie(at->kind, at->from, at->to) != key)
    at = castGroups.insert(at, {cast.kind, cast.from, cast.to, 0, 0, {}});
  ++at->count;
  at->bytes += cast.bytes;
  at->where.push_back(cast.where);
  ++castCount;
  castBytes += cast.bytes;
}

} // namespace mpc::compiler
