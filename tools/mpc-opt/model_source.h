// Models as IR, for mpc-opt. Free of MLIR headers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/driver/compiler.h"
#include "frontend/graph/amp_options.h"

namespace mpc::opt {

/// What the command line asks of a model.
struct ModelRequest {
  std::string model;        ///< one of models::WorkloadNames()
  bool train = false;       ///< the training step instead of the forward function
  std::int64_t batch = 32;  ///< samples a step, at least 1
  std::string device = "cpu";
  std::string arch;                    ///< to compile for where no such device is: "sm_90"
  std::optional<bool> fusion;          ///< left out: the device's default
  std::int64_t memory_budget = 0;      ///< bytes of arena, state and constants; 0: none
  std::int64_t head_chunks = 1;        ///< of rows, of a language model's head
  bool allow_conv_statistics = false;  ///< of f16 convolutions on CUDA
  bool tune = false;                   ///< choose kernels by timing them here
  bool allow_winograd = false;         ///< of f32 convolutions on the CPU
  std::string choice_cache;            ///< file of kernel choices, read and written; empty: none
  amp::Options amp;
};

struct ModelSource {
  compiler::Module traced;
  compiler::CompileOptions options;
};

/// Traces the model on the inputs of its models::Workload; the optimizer is Momentum(0.01, 0.9). Errors: what was given
/// and what is accepted.
absl::StatusOr<ModelSource> TraceModel(const ModelRequest& request);

/// The module after `stage`: traced, amp, grad, final or scheduled.
absl::StatusOr<compiler::Module> ModuleAt(ModelSource source, const std::string& stage);

}  // namespace mpc::opt
