#include "tools/mpc-bench/bench_model.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "models/dcgan.h"
#include "models/registry.h"
#include "tools/support/synthetic_data.h"

namespace mpc::tools {
namespace {

constexpr char kDcgan[] = "dcgan";

class WorkloadModel : public BenchModel {
 public:
  WorkloadModel(const BenchOptions& options, std::unique_ptr<models::Workload> workload)
      : workload_(std::move(workload)),
        optimizer_(MakeOptimizer(options.model, workload_->network().TrainableParams())),
        model_(workload_->MakeModel(*optimizer_, {.amp = PrecisionOf(options)})),
        columns_(workload_->TrainInputs(options.batch)) {}
  Model& model() override { return model_; }
  nn::Cell& network() override { return workload_->network(); }
  std::vector<TensorSpec> columns() const override { return columns_; }
  std::int64_t classes() const override { return workload_->classes(); }

 private:
  static std::unique_ptr<nn::Optimizer> MakeOptimizer(const std::string& model, std::vector<Parameter> parameters) {
    if (models::TokenSizesOf(model).has_value()) {
      return std::make_unique<nn::AdamW>(std::move(parameters),
                                         nn::AdamWOptions{.learning_rate = 3e-4, .weight_decay = 0.1});
    }
    return std::make_unique<nn::Momentum>(std::move(parameters),
                                          nn::MomentumOptions{.learning_rate = 0.01, .momentum = 0.9});
  }

  std::unique_ptr<models::Workload> workload_;
  std::unique_ptr<nn::Optimizer> optimizer_;
  Model model_;
  std::vector<TensorSpec> columns_;
};

/// Both networks of the DCGAN, three losses.
class DcganModel : public BenchModel {
 public:
  explicit DcganModel(const BenchOptions& options) : batch_(options.batch) {
    amp::Options precision = PrecisionOf(options);
    precision.num_losses = 3;
    status_ = amp::Initialize({generator_, discriminator_}, {optimizer_g_, optimizer_d_}, precision);
    model_ = std::make_unique<Model>(step_);
  }
  const absl::Status& status() const { return status_; }
  Model& model() override { return *model_; }
  nn::Cell& network() override { return step_; }
  std::vector<TensorSpec> columns() const override {
    return {{DType::kF32, {batch_, sizes_.num_channels, sizes_.image_size, sizes_.image_size}},
            {DType::kF32, {batch_, sizes_.latent_size}}};
  }
  std::int64_t classes() const override { return 1; }

 private:
  std::int64_t batch_;
  models::DcganOptions sizes_;
  models::DcganGenerator generator_{sizes_};
  models::DcganDiscriminator discriminator_{sizes_};
  nn::Adam optimizer_g_{generator_.TrainableParams(), {.learning_rate = 2e-4, .beta1 = 0.5}};
  nn::Adam optimizer_d_{discriminator_.TrainableParams(), {.learning_rate = 2e-4, .beta1 = 0.5}};
  models::DcganStep step_{generator_, discriminator_, optimizer_g_, optimizer_d_};
  std::unique_ptr<Model> model_;
  absl::Status status_;
};

}  // namespace

amp::Options PrecisionOf(const BenchOptions& options) {
  amp::Options precision = {.level = options.amp_level, .dtype = options.low_type(), .verbosity = 0};
  if (!options.loss_scale.empty()) precision.loss_scale = options.loss_scale;
  return precision;
}

absl::Status CheckBenchModel(const BenchOptions& options) {
  if (options.model == kDcgan && options.sizes == models::WorkloadSizes()) return absl::OkStatus();
  return models::CheckWorkload(options.model, options.sizes, FlagText);
}

absl::StatusOr<std::unique_ptr<BenchModel>> MakeBenchModel(const BenchOptions& options) {
  if (absl::Status status = CheckBenchModel(options); !status.ok()) return status;
  if (options.model == kDcgan) {
    auto dcgan = std::make_unique<DcganModel>(options);
    if (!dcgan->status().ok()) return dcgan->status();
    if (!dcgan->model().status().ok()) return dcgan->model().status();
    return dcgan;
  }
  absl::StatusOr<std::unique_ptr<models::Workload>> workload = models::MakeWorkload(options.model, options.sizes);
  if (!workload.ok()) return workload.status();
  auto model = std::make_unique<WorkloadModel>(options, *std::move(workload));
  if (!model->model().status().ok()) return model->model().status();
  return model;
}

absl::StatusOr<std::unique_ptr<BenchModel>> PrepareBenchModel(const BenchOptions& options) {
  SetSeed(1);
  if (absl::Status status = SetContext(ContextOf(options, options.threads)); !status.ok()) return status;
  return MakeBenchModel(options);
}

absl::StatusOr<std::vector<data::Row>> BatchesOf(const BenchModel& bench) {
  return MakeSyntheticBatches({.columns = bench.columns(), .names = {}, .classes = bench.classes()});
}

}  // namespace mpc::tools
