// Where temporaries and workspaces lie in a Program's arena.
#pragma once

#include "runtime/flat_updates.h"
#include "runtime/program.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstddef>

namespace mpc::compiler {

/// Values that share storage, and the first and the last instruction of its life.
struct ArenaPlace {
  llvm::SmallVector<runtime::ValueId> values;
  std::size_t first, last;
};

/// Gives \p Places offsets in an arena, whose bytes it returns, and the workspace of each instruction of \p Sequence of
/// \p Program one while it runs. For the step it makes flat updates of the groups that \p FlatGroup puts instructions
/// into. Their gradients lie in one buffer a type, in the order in which their lives begin or the other way round,
/// whichever is smaller. Where the arena would be larger for it than PlanOptions::flat_share, which is \p FlatShare,
/// allows, there are none.
std::size_t planArena(llvm::ArrayRef<ArenaPlace> Places, std::size_t Sequence, const runtime::GroupOf &FlatGroup,
                      double FlatShare, runtime::Program &Program);

} // namespace mpc::compiler
