#include "runtime/occupied_memory.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace mpc::runtime {

void AddressRanges::Add(const AddressRange& range) {
  assert(range.begin < range.end && "a range has at least one byte");
  const auto first = std::lower_bound(ranges_.begin(), ranges_.end(), range.begin,
                                      [](const AddressRange& a, std::size_t begin) { return a.end < begin; });
  if (first == ranges_.end() || range.end < first->begin) {
    ranges_.insert(first, range);
    return;
  }
  first->begin = std::min(first->begin, range.begin);
  first->end = std::max(first->end, range.end);
  auto next = first + 1;
  for (; next != ranges_.end() && next->begin <= first->end; ++next) first->end = std::max(first->end, next->end);
  ranges_.erase(first + 1, next);
}

OccupiedMemory::OccupiedMemory(std::size_t times) : nodes_(2 * std::bit_ceil(std::max<std::size_t>(times, 1))) {}

template <typename Nodes, typename Cover, typename Pass>
void OccupiedMemory::Visit(Nodes& nodes, std::size_t node, Times of_node, Times life, const Cover& cover,
                           const Pass& pass) {
  if (life.last < of_node.first || of_node.last < life.first) return;
  if (life.first <= of_node.first && of_node.last <= life.last) {
    cover(nodes[node]);
    return;
  }
  pass(nodes[node]);
  const std::size_t middle = of_node.first + (of_node.last - of_node.first) / 2;
  Visit(nodes, 2 * node, {of_node.first, middle}, life, cover, pass);
  Visit(nodes, 2 * node + 1, {middle + 1, of_node.last}, life, cover, pass);
}

void OccupiedMemory::Add(std::size_t first, std::size_t last, const AddressRange& range) {
  assert(first <= last && last <= All().last && "a life lies among the times");
  Visit(
      nodes_, 1, All(), {first, last},
      [&](Node& node) {
        node.here.Add(range);
        node.within.Add(range);
      },
      [&](Node& node) { node.within.Add(range); });
}

void OccupiedMemory::FindTaken(std::size_t first, std::size_t last, std::vector<AddressRange>& taken) const {
  assert(first <= last && last <= All().last && "a life lies among the times");
  taken.clear();
  const auto take = [&](const AddressRanges& ranges) {
    taken.insert(taken.end(), ranges.all().begin(), ranges.all().end());
  };
  Visit(
      nodes_, 1, All(), {first, last}, [&](const Node& node) { take(node.within); },
      [&](const Node& node) { take(node.here); });
  std::sort(taken.begin(), taken.end(), [](const AddressRange& a, const AddressRange& b) { return a.begin < b.begin; });
  std::size_t kept = 0;
  for (const AddressRange& range : taken) {
    if (kept > 0 && range.begin <= taken[kept - 1].end) {
      taken[kept - 1].end = std::max(taken[kept - 1].end, range.end);
    } else {
      taken[kept++] = range;
    }
  }
  taken.resize(kept);
}

}  // namespace mpc::runtime
