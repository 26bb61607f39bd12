// The functions of one sweep of a region on the host.
#pragma once

#include "compiler/codegen/host_position.h"

namespace mpc::codegen {

/// Whether \p sweep visits elements at all.
bool hasWork(const HostFusion &region, unsigned sweep);

/// Visits one tile in the phases of \p sweep and reduces its rows. Partial values of the other reductions go to the
/// workspace.
void emitSweep(HostFusion &region, HostFunction &f, unsigned sweep);

/// Combines the partial values of \p sweep in the order of the tiles and finishes its reductions. Stores the outputs
/// that they give, and in the workspace what later sweeps need.
void emitCombination(HostFusion &region, HostFunction &f, unsigned sweep);
/// Stores the outputs of extent PerColumn and Single. The region must reduce neither along columns nor everything.
void emitSharedOutputs(HostFusion &region, HostFunction &f);
/// The number of blocks of columns that a combination runs in.
int64_t combinationBlocks(const HostFusion &region);

} // namespace mpc::codegen
