#include "runtime/distributed/tree_rounds.h"

namespace mpc::distributed {

std::vector<TreeRound> HalvingRounds(int rank, int size) {
  std::vector<TreeRound> rounds;
  int first = 0;
  for (int distance = 1, count = size / 2; distance < size; distance *= 2, count /= 2) {
    const bool is_upper = (rank & distance) != 0;
    const int sent = is_upper ? first : first + count;
    if (is_upper) first += count;
    rounds.push_back({rank ^ distance, is_upper, {sent, count}, {first, count}});
  }
  return rounds;
}

std::vector<TreeRound> GatheringRounds(int rank, int size) {
  const std::vector<TreeRound> halving = HalvingRounds(rank, size);
  std::vector<TreeRound> rounds;
  // What a round of halving has kept is complete by now, and its peer has completed what it was sent.
  for (auto round = halving.rbegin(); round != halving.rend(); ++round) {
    rounds.push_back({round->peer, round->is_upper, round->received, round->sent});
  }
  return rounds;
}

}  // namespace mpc::distributed
