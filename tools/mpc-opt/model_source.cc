#include "tools/mpc-opt/model_source.h"

#include <iostream>

#include "absl/strings/str_cat.h"
#include "models/registry.h"

namespace mpc::opt {
namespace {

absl::Status Check(const ModelRequest& request) {
  if (request.batch < 1) {
    return absl::InvalidArgumentError(absl::StrCat("batch must be at least 1, got ", request.batch));
  }
  if (request.amp.loss_scale.given() && !request.train) {
    return absl::InvalidArgumentError("loss-scale needs --train: a forward function has no loss");
  }
  return absl::OkStatus();
}

/// Makes the device of `request` the one that Models compile for. Nothing is measured or remembered that
/// it does not ask for: equal command lines print equal texts.
absl::Status UseDevice(const ModelRequest& request) {
  tools::DeviceOptions options = request.device;
  if (!options.choice_cache.has_value()) options.choice_cache = "";
  if (absl::Status status = tools::CheckDeviceFlags(options); !status.ok()) return status;
  return SetContext(tools::ContextOf(options, 0));
}

}  // namespace

absl::StatusOr<ModelSource> TraceModel(const ModelRequest& request) {
  if (absl::Status status = Check(request); !status.ok()) return status;
  if (absl::Status status = UseDevice(request); !status.ok()) return status;
  absl::StatusOr<std::unique_ptr<models::Workload>> workload = models::MakeWorkload(request.model);
  if (!workload.ok()) return workload.status();
  nn::Momentum optimizer((*workload)->network().TrainableParams(), {.learning_rate = 0.01, .momentum = 0.9});
  ModelOptions options{.amp = request.amp};
  const Model model = request.train ? (*workload)->MakeModel(optimizer, std::move(options))
                                    : (*workload)->MakePredictor(std::move(options));
  absl::StatusOr<compiler::Module> traced = request.train
                                                ? model.TraceTrainStep((*workload)->TrainInputs(request.batch))
                                                : model.TracePredict((*workload)->PredictInputs(request.batch));
  if (!traced.ok()) return traced.status();
  return ModelSource{*std::move(traced), model.compile_options(request.train)};
}

absl::StatusOr<compiler::Module> ModuleAt(ModelSource source, const std::string& stage) {
  std::vector<std::string> remarks;
  absl::Status status = compiler::RunPasses(source.traced, source.options, stage, nullptr, &remarks);
  for (const std::string& remark : remarks) std::cerr << "remark: " << remark << "\n";
  if (!status.ok()) return status;
  return std::move(source.traced);
}

}  // namespace mpc::opt
