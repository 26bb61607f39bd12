#include "runtime/occupied_memory.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace mpc::runtime {
namespace {

struct Life {
  std::size_t first, last;
  AddressRange range;
};

/// The addresses that some life takes at a time of `first` to `last`, looked for address by address.
std::vector<AddressRange> TakenByAny(const std::vector<Life>& lives, std::size_t first, std::size_t last) {
  std::vector<bool> taken;
  for (const Life& life : lives) {
    if (life.last < first || last < life.first) continue;
    if (taken.size() < life.range.end) taken.resize(life.range.end);
    for (std::size_t at = life.range.begin; at < life.range.end; ++at) taken[at] = true;
  }
  std::vector<AddressRange> ranges;
  for (std::size_t at = 0; at < taken.size(); ++at) {
    if (!taken[at]) continue;
    if (at == 0 || !taken[at - 1]) ranges.push_back({at, at});
    ranges.back().end = at + 1;
  }
  return ranges;
}

TEST(OccupiedMemory, FindsTheAddressesOfAllLivesThatMeet) {
  std::mt19937 random(1);
  for (const std::size_t times : {1, 2, 7, 64, 100}) {
    OccupiedMemory memory(times);
    std::vector<Life> lives;
    for (int i = 0; i < 60; ++i) {
      const std::size_t first = random() % times, begin = random() % 200;
      lives.push_back({first, first + random() % (times - first), {begin, begin + 1 + random() % 20}});
      memory.Add(lives.back().first, lives.back().last, lives.back().range);
      const std::size_t from = random() % times, to = from + random() % (times - from);
      std::vector<AddressRange> taken = {{1, 2}};
      memory.FindTaken(from, to, taken);
      EXPECT_EQ(taken, TakenByAny(lives, from, to)) << times << " times, " << i << ", " << from << " to " << to;
    }
  }
}

TEST(OccupiedMemory, HasOneRangeForLivesThatLieSideBySide) {
  // The values of a forward pass: each is read again in the backward pass, the last one first.
  constexpr std::size_t kValues = 2000;
  OccupiedMemory memory(2 * kValues);
  for (std::size_t i = 0; i < kValues; ++i) memory.Add(i, 2 * kValues - 1 - i, {64 * i, 64 * (i + 1)});
  std::vector<AddressRange> taken;
  for (std::size_t i = 0; i < kValues; ++i) {
    memory.FindTaken(i, i, taken);
    ASSERT_EQ(taken.size(), 1u);
    EXPECT_EQ(taken[0], (AddressRange{0, 64 * (i + 1)})) << i;
  }
}

TEST(AddressRanges, MergesWhatTouchesAndKeepsTheRestApart) {
  AddressRanges ranges;
  for (const AddressRange& range : {AddressRange{10, 20}, {40, 50}, {21, 30}, {60, 70}}) ranges.Add(range);
  EXPECT_EQ(ranges.all().size(), 4u);
  ranges.Add({20, 21});
  EXPECT_EQ(ranges.all(), (std::vector<AddressRange>{{10, 30}, {40, 50}, {60, 70}}));
  ranges.Add({12, 15});
  EXPECT_EQ(ranges.all().size(), 3u);
  ranges.Add({30, 65});
  EXPECT_EQ(ranges.all(), (std::vector<AddressRange>{{10, 70}}));
}

}  // namespace
}  // namespace mpc::runtime
