// The range of values that are there, for tests of ranges that are computed before them.
#pragma once

#include "compiler/dialect/ranges/range.h"
#include "kernels/reference/reference.h"

namespace mpc::test {

/// The tightest range of the values of `tensor`, which are finite.
ranges::Range ObservedRange(const reference::Tensor& tensor);

/// Its interval alone, as where only the smallest and the largest value are known.
ranges::Range ObservedInterval(const reference::Tensor& tensor);

}  // namespace mpc::test
