#include "tools/mpc-opt/model_source.h"

#include <iostream>

#include "absl/strings/str_join.h"
#include "tools/mpc-opt/network_source.h"

namespace mpc::opt {

std::string ModelNames() { return absl::StrJoin(models::WorkloadNames(), ", "); }

absl::StatusOr<ModelSource> TraceModel(const ModelRequest& request) {
  absl::StatusOr<MadeNetwork> network = MakeNetwork(request.model);
  return network.ok() ? TraceNetwork(*network, request) : network.status();
}

absl::StatusOr<compiler::Module> ModuleAt(ModelSource source, const std::string& stage) {
  std::vector<std::string> remarks;
  absl::Status status = compiler::RunPasses(source.traced, source.options, stage, nullptr, &remarks);
  for (const std::string& remark : remarks) std::cerr << "remark: " << remark << "\n";
  if (!status.ok()) return status;
  return std::move(source.traced);
}

}  // namespace mpc::opt
