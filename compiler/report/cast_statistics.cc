#include "compiler/report/cast_statistics.h"

#include <algorithm>
#include <tuple>

namespace mpc::compiler {

const char *CastKindName(CastKind kind) {
  switch (kind) {
  case CastKind::Weight:
    return "weight";
  case CastKind::Input:
    return "input";
  case CastKind::Activation:
    return "activation";
  case CastKind::Gradient:
    return "gradient";
  case CastKind::Loss:
    return "loss";
  case CastKind::Widening:
    return "widening";
  case CastKind::User:
    return "user";
  case CastKind::Other:
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
