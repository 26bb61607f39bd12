// Places temporaries and workspaces in a Program's arena.
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

/// Gives \p places offsets in an arena and returns the arena's bytes. The workspace of each instruction of \p sequence
/// of \p program gets an offset while the instruction runs. For the step it makes flat updates of the groups that \p
/// FlatGroup puts instructions into. Their gradients lie in one buffer for each type. They lie in the order in which
/// their lives begin or in reverse, whichever gives the smaller arena. There are no flat updates where the arena would
/// grow by more than \p flatShare, PlanOptions::flat_share, allows.
std::size_t planArena(llvm::ArrayRef<ArenaPlace> places, std::size_t sequence, const runtime::GroupOf &flatGroup,
                      double flatShare, runtime::Program &program);

} // namespace mpc::compiler
