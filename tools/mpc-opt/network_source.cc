#include "tools/mpc-opt/network_source.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/driver/lock_precision.h"

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
  options.choice_cache_is_given = true;
  if (absl::Status status = tools::CheckDeviceFlags(options); !status.ok()) return status;
  return SetContext(tools::ContextOf(options, 0));
}

/// The lock of the step on `request.batch` samples and on twice as many.
absl::StatusOr<compiler::PrecisionLock> LockOnBatch(const MadeNetwork& network, const ModelRequest& request) {
  absl::StatusOr<ModelSource> first = TraceNetwork(network, request);
  if (!first.ok()) return first.status();
  ModelRequest doubled = request;
  doubled.batch *= 2;
  absl::StatusOr<ModelSource> second = TraceNetwork(network, doubled);
  if (!second.ok()) return second.status();
  return compiler::LockPrecision(first->network, {std::move(first->traced), request.batch},
                                 {std::move(second->traced), doubled.batch}, first->options);
}

}  // namespace

absl::StatusOr<MadeNetwork> MakeNetwork(const std::string& model) {
  MadeNetwork made;
  absl::StatusOr<std::unique_ptr<models::Workload>> workload = models::MakeWorkload(model);
  if (!workload.ok()) return workload.status();
  made.workload = *std::move(workload);
  made.optimizer = std::make_unique<nn::Momentum>(made.workload->network().TrainableParams(),
                                                  nn::MomentumOptions{.learning_rate = 0.01, .momentum = 0.9});
  return made;
}

absl::StatusOr<ModelSource> TraceNetwork(const MadeNetwork& network, const ModelRequest& request) {
  if (absl::Status status = Check(request); !status.ok()) return status;
  if (absl::Status status = UseDevice(request); !status.ok()) return status;
  models::Workload& workload = *network.workload;
  ModelOptions options{.amp = request.amp};
  const Model model = request.train ? workload.MakeModel(*network.optimizer, std::move(options))
                                    : workload.MakePredictor(std::move(options));
  absl::StatusOr<compiler::Module> traced = request.train ? model.TraceTrainStep(workload.TrainInputs(request.batch))
                                                          : model.TracePredict(workload.PredictInputs(request.batch));
  if (!traced.ok()) return traced.status();
  return ModelSource{workload.network().TypeName(), *std::move(traced), model.compile_options(request.train)};
}

absl::StatusOr<compiler::PrecisionLock> LockNetwork(const MadeNetwork& network, const ModelRequest& request) {
  absl::StatusOr<compiler::PrecisionLock> lock = LockOnBatch(network, request);
  if (lock.ok() || request.batch != 1) return lock;
  // A sum over one sample is no operation. On more samples the step has all of its operations.
  ModelRequest larger = request;
  larger.batch = 2;
  absl::StatusOr<compiler::PrecisionLock> of_more = LockOnBatch(network, larger);
  return of_more.ok() ? of_more : lock;
}

}  // namespace mpc::opt
