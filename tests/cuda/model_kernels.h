// The kernels that the models of models/registry.h need.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/kernel_spec.h"

namespace mpc::testing {

struct ModelStep {
  std::string model;  ///< of models::WorkloadNames()
  std::int64_t batch = 1;
  bool train = true;         ///< false: prediction
  std::string level;         ///< "O0", "O2"
  std::optional<DType> low;  ///< of O2: f16, bf16
  bool conv_statistics = false;
};

/// Every kernel of the compiled step once, in the order of first use. Compiled for CUDA by a device that only takes
/// notes.
absl::StatusOr<std::vector<KernelSpec>> KernelsOf(const ModelStep& step);

}  // namespace mpc::testing
