// The kernels that the models of models/registry.h need.
#pragma once

#include <cstdint>
#include <map>
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

/// Steps of all models at the batch sizes that they are meant for: training and prediction at every level, and with
/// statistics in convolutions.
std::vector<ModelStep> StepsOfAllModels();

struct ModelKernel {
  KernelSpec spec;
  ModelStep step;  ///< the first that has it
};

/// The convolutions and attentions of `steps`, each once, by cuda::ChoiceKey. A step that does not compile fails the
/// test.
std::map<std::string, ModelKernel> CudnnOperationsOf(const std::vector<ModelStep>& steps);

}  // namespace mpc::testing
