#include "kernels/cpu/lane_vectors.h"

#include "kernels/cpu/onednn_common.h"

namespace mpc::cpu {

bool HasAvx512() {
  static const bool has = __builtin_cpu_supports("avx512f") != 0 && UsesInstructionsOf(dnnl::cpu_isa::avx512_core);
  return has;
}

bool HasAvx2() {
  static const bool has = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  return has;
}

}  // namespace mpc::cpu
