// Which results of two Programs are the same ones.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace mpc::tools {

/// Pairs of positions of equal texts, both growing: a longest common subsequence. Equal lists give every position.
/// Time: that of the pairs of equal texts, times a logarithm (J. W. Hunt and T. G. Szymanski, A fast algorithm for
/// computing longest common subsequences, Communications of the ACM 20, 1977).
std::vector<std::pair<std::size_t, std::size_t>> PairInOrder(const std::vector<std::string>& first,
                                                             const std::vector<std::string>& second);

}  // namespace mpc::tools
