#include "tools/mpc-bisect/result_pairs.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace mpc::tools {

std::vector<std::pair<std::size_t, std::size_t>> PairInOrder(const std::vector<std::string>& first,
                                                             const std::vector<std::string>& second) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  std::size_t begin = 0;
  while (begin < std::min(first.size(), second.size()) && first[begin] == second[begin]) {
    pairs.emplace_back(begin, begin);
    ++begin;
  }
  std::map<std::string_view, std::vector<std::size_t>> places;  // of each text in `second`, falling
  for (std::size_t j = second.size(); j > begin; --j) places[second[j - 1]].push_back(j - 1);

  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  struct Link {
    std::size_t i, j, before;  // `before`: the link in front of it
  };
  std::vector<Link> links;
  std::vector<std::size_t> ends;  // ends[n]: the link that ends n + 1 pairs at the least position of `second`
  for (std::size_t i = begin; i < first.size(); ++i) {
    const auto found = places.find(first[i]);
    if (found == places.end()) continue;
    // Falling places keep one text of `first` from being paired twice.
    for (const std::size_t j : found->second) {
      const auto end = std::lower_bound(
          ends.begin(), ends.end(), j, [&links](std::size_t link, std::size_t place) { return links[link].j < place; });
      const std::size_t before = end == ends.begin() ? kNone : *(end - 1);
      links.push_back({i, j, before});
      if (end == ends.end()) {
        ends.push_back(links.size() - 1);
      } else {
        *end = links.size() - 1;
      }
    }
  }
  const std::size_t prefix = pairs.size();
  for (std::size_t link = ends.empty() ? kNone : ends.back(); link != kNone; link = links[link].before) {
    pairs.emplace_back(links[link].i, links[link].j);
  }
  std::reverse(pairs.begin() + static_cast<std::ptrdiff_t>(prefix), pairs.end());
  return pairs;
}

}  // namespace mpc::tools
