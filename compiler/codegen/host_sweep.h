// The functions of one sweep of a region on the host.
#pragma once

#include "compiler/codegen/host_position.h"

namespace mpc::codegen {

/// Whether \p Sweep visits elements at all.
bool hasWork(const HostRegion &Region, unsigned Sweep);

/// Visits one tile: the phases of \p Sweep with their reductions of rows; partial values of the others go to the
/// workspace.
void emitSweep(HostRegion &Region, HostFunction &F, unsigned Sweep);

/// Combines the partial values of \p Sweep in the order of the tiles, finishes its reductions and stores what they
/// give: outputs, and in the workspace what later sweeps need.
void emitCombination(HostRegion &Region, HostFunction &F, unsigned Sweep);
/// Stores the outputs of columns and single ones of a region that reduces neither.
void emitSharedOutputs(HostRegion &Region, HostFunction &F);
/// In how many blocks: of columns.
int64_t combinationBlocks(const HostRegion &Region);

} // namespace mpc::codegen
