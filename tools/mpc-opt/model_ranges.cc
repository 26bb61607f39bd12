#include "tools/mpc-opt/model_ranges.h"

#include "frontend/state/checkpoint.h"
#include "frontend/train/known_range.h"
#include "tools/mpc-opt/network_source.h"

namespace mpc::opt {

absl::StatusOr<std::map<std::string, compiler::KnownRange>> RangesOfWeights(const std::string& model,
                                                                            const std::string& weights) {
  absl::StatusOr<MadeNetwork> network = MakeNetwork(model);
  if (!network.ok()) return network.status();
  nn::Cell& cell = network->workload->network();
  if (absl::Status status = LoadParamIntoNet(cell, weights).status(); !status.ok()) return status;
  return internal::KnownState(cell);
}

}  // namespace mpc::opt
