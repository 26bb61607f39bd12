#include "runtime/cuda/branch_plan.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <optional>
#include <utility>

namespace mpc::runtime {
namespace {

bool Overlap(const std::vector<MemoryRange>& a, const std::vector<MemoryRange>& b) {
  // Ranges of different allocations are compared too, which `<` leaves open.
  const std::less<> before;
  return std::ranges::any_of(a, [&](const MemoryRange& x) {
    return std::ranges::any_of(b, [&](const MemoryRange& y) {
      return before(std::max(x.begin, y.begin, before), std::min(x.end, y.end, before));
    });
  });
}

bool StayInOrder(const CallMemory& first, const CallMemory& second) {
  return first.alone || second.alone || Overlap(first.writes, second.reads) || Overlap(first.writes, second.writes) ||
         Overlap(first.reads, second.writes);
}

/// The calls that come before a call, whatever runs at once.
using Predecessors = std::vector<bool>;

void Add(Predecessors& predecessors, std::size_t call, const Predecessors& of_call) {
  for (std::size_t i = 0; i < of_call.size(); ++i) {
    if (of_call[i]) predecessors[i] = true;
  }
  predecessors[call] = true;
}

/// The last call of each branch that has one.
using LastCalls = std::vector<std::size_t>;

/// The branch of a call that needs `needed`, none of which comes before another. Best is one whose last call it needs:
/// the latest of these. Else one whose last call comes before it anyway, else a new one. Where all are taken the one
/// that is furthest behind waits.
std::size_t ChooseBranch(const LastCalls& last, const std::vector<std::size_t>& needed,
                         const Predecessors& predecessors, std::size_t branches) {
  std::optional<std::size_t> needs, follows, behind;
  for (std::size_t branch = 0; branch < last.size(); ++branch) {
    const std::size_t call = last[branch];
    if (std::ranges::find(needed, call) != needed.end() && (!needs || last[*needs] < call)) needs = branch;
    if (predecessors[call] && !follows) follows = branch;
    if (!behind || call < last[*behind]) behind = branch;
  }
  if (needs) return *needs;
  if (follows) return *follows;
  return last.size() < branches ? last.size() : *behind;
}

}  // namespace

std::size_t CallMemory::bytes() const {
  std::size_t sum = 0;
  for (const auto* ranges : {&reads, &writes}) {
    for (const MemoryRange& range : *ranges) sum += static_cast<std::size_t>(range.end - range.begin);
  }
  return sum;
}

std::vector<BranchPlace> PlanBranches(const std::vector<CallMemory>& calls, std::size_t branches) {
  assert(branches > 0);
  std::vector<BranchPlace> places(calls.size());
  std::vector<Predecessors> predecessors;
  LastCalls last;
  for (std::size_t call = 0; call < calls.size(); ++call) {
    Predecessors& before = predecessors.emplace_back(call);
    std::vector<std::size_t> needed;
    for (std::size_t earlier = call; earlier-- > 0;) {
      if (before[earlier] || !StayInOrder(calls[earlier], calls[call])) continue;
      needed.push_back(earlier);
      Add(before, earlier, predecessors[earlier]);
    }
    BranchPlace& place = places[call];
    place.branch = calls[call].bytes() > kLargeCallBytes ? 0 : ChooseBranch(last, needed, before, branches);
    Predecessors along_branch(call);
    if (place.branch == last.size()) {
      last.push_back(call);
    } else {
      const std::size_t previous = std::exchange(last[place.branch], call);
      Add(along_branch, previous, predecessors[previous]);
      Add(before, previous, predecessors[previous]);
    }
    std::ranges::copy_if(needed, std::back_inserter(place.awaits),
                         [&](std::size_t earlier) { return !along_branch[earlier]; });
  }
  return places;
}

}  // namespace mpc::runtime
