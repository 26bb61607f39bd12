#include "frontend/state/checkpoint_environment.h"

#include "absl/strings/str_cat.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/onednn_version.h"
#include "runtime/cpu/cpu_features.h"
#include "runtime/version.h"

namespace mpc::internal {

std::map<std::string, std::string> DescribeEnvironment(const std::string& device) {
  std::string processor;
  for (const char* feature : {"avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512_bf16"}) {
    if (runtime::HasCpuFeature(feature)) absl::StrAppend(&processor, processor.empty() ? "" : " ", feature);
  }
  return {{"mpc", MPC_VERSION},
          {"onednn", cpu::OnednnVersion()},
          {"device", device},
          {"processor", processor},
          {"threads", absl::StrCat(cpu::NumThreads())}};
}

}  // namespace mpc::internal
