// The processors that loops of this process find, wherever OpenMP has bound the thread that asks.
#pragma once

#include <vector>

namespace mpc::cpu {

/// Whether OpenMP binds threads (OMP_PROC_BIND, OMP_PLACES). It has then bound the first one of the process at its
/// start, and the affinity of that thread is one place.
bool OpenMpBindsThreads();

/// The processors that threads of loops may run on, in order: those of all of OpenMP's places where it binds threads,
/// else AllowedProcessors().
std::vector<int> LoopProcessors();

/// The number of threads that find processors at the same time: LoopProcessors() within the quota, at least 1.
int UsableLoopProcessors();

}  // namespace mpc::cpu
