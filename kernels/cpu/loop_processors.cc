#include "kernels/cpu/loop_processors.h"

#include <omp.h>

#include <cstddef>
#include <set>

#include "kernels/usable_processors.h"

namespace mpc::cpu {

bool OpenMpBindsThreads() { return omp_get_proc_bind() != omp_proc_bind_false; }

std::vector<int> LoopProcessors() {
  if (!OpenMpBindsThreads()) return AllowedProcessors();
  std::set<int> processors;
  for (int place = 0; place < omp_get_num_places(); ++place) {
    std::vector<int> ids(static_cast<std::size_t>(omp_get_place_num_procs(place)));
    omp_get_place_proc_ids(place, ids.data());
    processors.insert(ids.begin(), ids.end());
  }
  return processors.empty() ? AllowedProcessors() : std::vector<int>(processors.begin(), processors.end());
}

int UsableLoopProcessors() {
  const std::vector<int> processors = LoopProcessors();
  return processors.empty() ? UsableProcessors() : WithinQuota(static_cast<int>(processors.size()));
}

}  // namespace mpc::cpu
