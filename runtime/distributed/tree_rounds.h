// Who exchanges which blocks with whom, so that sums over ranks are those of a balanced tree.
#pragma once

#include <vector>

namespace mpc::distributed {

/// Blocks [first, first + count) of a message, which has one block for each rank.
struct BlockRange {
  int first = 0;
  int count = 0;
};

/// One exchange with one other rank.
struct TreeRound {
  int peer = 0;
  bool is_upper = false;  ///< this rank is above its peer: what comes from the peer is the left operand of a sum
  BlockRange sent;
  BlockRange received;
};

/// Recursive halving over a power of two of ranks, with the nearest rank first. A round sends a half of the blocks that
/// the one before it has left, and adds what it receives to the other half. Behind the last round a rank has the sum
/// over all ranks of one block, whose number is its own with reversed bits.
std::vector<TreeRound> HalvingRounds(int rank, int size);

/// The rounds of HalvingRounds backwards: each sends all blocks that are complete and receives as many others.
std::vector<TreeRound> GatheringRounds(int rank, int size);

}  // namespace mpc::distributed
