// Networks by name, made once and traced several times.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/report/precision_lock.h"
#include "models/registry.h"
#include "tools/mpc-opt/model_source.h"

namespace mpc::opt {

/// A network with an optimizer, Momentum(0.01, 0.9).
struct MadeNetwork {
  std::unique_ptr<models::Workload> workload;
  std::unique_ptr<nn::Optimizer> optimizer;
};

/// Errors: what was given and what is accepted.
absl::StatusOr<MadeNetwork> MakeNetwork(const std::string& model);

/// Traces such a network on the inputs of its models::Workload, as `request` says, whose `model` is not read. Errors:
/// what was given and what is accepted.
absl::StatusOr<ModelSource> TraceNetwork(const MadeNetwork& network, const ModelRequest& request);

/// The precision lock of the network as `request` describes it. Level auto computes with the rates that come with it,
/// and measures nothing. Errors: those of TraceNetwork and of compiler::LockPrecision.
absl::StatusOr<compiler::PrecisionLock> LockNetwork(const MadeNetwork& network, const ModelRequest& request);

}  // namespace mpc::opt
