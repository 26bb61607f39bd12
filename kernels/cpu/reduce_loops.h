// The loops of reductions by tasks. A task handles the results of one run of the inner axis. That is one result where
// the axis is reduced, and a block of columns where it is kept.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/parallel.h"
#include "kernels/reduce_plan.h"

namespace mpc::cpu {

/// Calls visit(offset, size) for the blocks of the reduced elements that begin at `base`, inner axis included.
template <typename Visit>
void ForEachReducedBlock(const ReducePlan& plan, std::int64_t base, const Visit& visit) {
  const std::int64_t rows = plan.reduced.count();
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t begin = base + plan.reduced.Offset(row);
    for (std::int64_t start = 0; start < plan.inner; start += kBlock) {
      visit(begin + start, std::min(kBlock, plan.inner - start));
    }
  }
}

/// Calls body(result, base, size) for each block of results that lie along the kept inner axis. The block has `size`
/// results from `result` on. Their first elements begin at `base`.
template <typename Body>
void ForEachColumnBlock(const ReducePlan& plan, const Body& body) {
  const std::int64_t blocks = (plan.inner + kBlock - 1) / kBlock;
  const std::int64_t outer = plan.kept.count();
  ParallelFor(outer * blocks, outer * plan.reduced.count() * plan.inner, [&](std::int64_t task) {
    const std::int64_t column = task % blocks * kBlock;
    body(task / blocks * plan.inner + column, plan.kept.Offset(task / blocks) + column,
         std::min(kBlock, plan.inner - column));
  });
}

/// Calls body(result, base) for each result where the inner axis is reduced.
template <typename Body>
void ForEachRow(const ReducePlan& plan, const Body& body) {
  const std::int64_t results = plan.kept.count();
  ParallelFor(results, results * plan.reduced.count() * plan.inner,
              [&](std::int64_t result) { body(result, plan.kept.Offset(result)); });
}

}  // namespace mpc::cpu
