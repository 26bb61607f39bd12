#include "kernels/cpu/onednn_version.h"

#include <dnnl.h>

#include "absl/strings/str_cat.h"

namespace mpc::cpu {

std::string OnednnVersion() {
  const dnnl_version_t* version = dnnl_version();
  return absl::StrCat(version->major, ".", version->minor, ".", version->patch);
}

}  // namespace mpc::cpu
