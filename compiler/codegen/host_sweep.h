// The functions of one sweep of a region on the host.
#pragma once

#include "compiler/codegen/host_position.h"

namespace mpc::codegen {

/// Whether \p Sweep visits elements at all.
bool hasWork(const HostRegion &Region, unsigned Sweep);

/// Visits one tile in the phases of \p Sweep and reduces its rows. Partial values of the other reductions go to the
/// workspace.
void emitSweep(HostRegion &Region, HostFunction &F, unsigned Sweep);

/// Combines the partial values of \p Sweep in the order of the tiles and finishes its reductions. Stores the outputs
/// that they give, and in the workspace what later sweeps need.
void emitCombination(HostRegion &Region, HostFunction &F, unsigned Sweep);
/// Stores the outputs of extent PerColumn and Single of a region that reduces neither.
void emitSharedOutputs(HostRegion &Region, HostFunction &F);
/// The number of blocks of columns that a combination runs in.
int64_t combinationBlocks(const HostRegion &Region);

} // namespace mpc::codegen
