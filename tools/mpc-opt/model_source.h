// Models as IR, for mpc-opt. Free of MLIR headers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/compiler.h"

namespace mpc::opt {

/// What the command line asks of a model.
struct ModelRequest {
  std::string model;                               ///< "lenet5", "mlp", "bnnet"
  bool train = false;                              ///< the training step instead of the forward function
  std::int64_t batch = 32;                         ///< samples a step, at least 1
  std::string amp_level = "O0";                    ///< O0, O2, O3
  std::optional<std::string> dtype;                ///< f16, bf16; left out: f16
  std::optional<std::string> loss_scale;           ///< dynamic, none or a number; left out: the level's default
  std::optional<std::string> keep_batchnorm_fp32;  ///< true, false; left out: the level's default
};

struct ModelSource {
  compiler::Module traced;
  compiler::CompileOptions options;
};

/// Traces the model: images are f32 [batch, 1, 32, 32], labels i32 [batch]; the loss is the mean cross-entropy of
/// sparse labels, the optimizer Momentum(0.01, 0.9). Errors: what was given and what is accepted.
absl::StatusOr<ModelSource> TraceModel(const ModelRequest& request);

/// The module after `stage`: traced, amp, grad or final.
absl::StatusOr<compiler::Module> ModuleAt(ModelSource source, const std::string& stage);

}  // namespace mpc::opt
