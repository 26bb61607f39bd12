// Models as IR, for mpc-opt. Free of MLIR headers.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/driver/compiler.h"
#include "frontend/graph/amp_options.h"
#include "tools/support/device_flags.h"

namespace mpc::opt {

/// "bert, bert-tiny, bnnet": every model, for the help.
std::string ModelNames();

/// What the command line asks of a model.
struct ModelRequest {
  std::string model;            ///< one of models::WorkloadNames()
  bool train = false;           ///< the training step instead of the forward function
  std::int64_t batch = 32;      ///< samples a step, at least 1
  tools::DeviceOptions device;  ///< `choice_cache` that is not given: none
  amp::Options amp;
};

struct ModelSource {
  std::string network;  ///< type of the network's Cell: "LeNet5"
  compiler::Module traced;
  compiler::CompileOptions options;
};

/// Traces the model on the inputs of its models::Workload; the optimizer is Momentum(0.01, 0.9). Errors: what was given
/// and what is accepted.
absl::StatusOr<ModelSource> TraceModel(const ModelRequest& request);

/// The module after `stage`: traced, amp, grad, final or scheduled.
absl::StatusOr<compiler::Module> ModuleAt(ModelSource source, const std::string& stage);

}  // namespace mpc::opt
