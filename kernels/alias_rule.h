// Which results of a kernel may lie where its operands lie.
#pragma once

#include <cstddef>

namespace mpc {

/// Output `output` may occupy the storage of input `input` where both have the same spec.
struct AliasRule {
  std::size_t output = 0;
  std::size_t input = 0;
};

}  // namespace mpc
