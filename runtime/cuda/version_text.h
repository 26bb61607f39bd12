// Versions of CUDA and its libraries as text.
#pragma once

#include <concepts>
#include <string>

#include "absl/strings/str_cat.h"

namespace mpc::runtime {

/// "13.0" of 13000, as CUDA counts.
inline std::string CudaVersionText(int version) { return absl::StrCat(version / 1000, ".", version % 1000 / 10); }

/// "2.14.0" of 21400, as cuBLASLt, cuDNN and NCCL count.
template <std::integral Version>
std::string LibraryVersionText(Version version) {
  return absl::StrCat(version / 10000, ".", version % 10000 / 100, ".", version % 100);
}

}  // namespace mpc::runtime
