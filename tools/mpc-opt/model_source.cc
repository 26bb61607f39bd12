#include "tools/mpc-opt/model_source.h"

#include <iostream>

#include "absl/strings/str_cat.h"
#include "models/registry.h"

namespace mpc::opt {
namespace {

absl::StatusOr<std::optional<DType>> LowType(const std::optional<std::string>& name) {
  if (!name.has_value()) return std::nullopt;
  const std::optional<DType> dtype = ParseDType(*name);
  if (!dtype.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("unknown dtype '", *name, "'; choose f16 or bf16"));
  }
  return dtype;
}

absl::StatusOr<std::optional<bool>> KeepNorms(const std::optional<std::string>& word) {
  if (!word.has_value()) return std::nullopt;
  if (*word == "true" || *word == "True") return true;
  if (*word == "false" || *word == "False") return false;
  return absl::InvalidArgumentError(
      absl::StrCat("unknown keep-batchnorm-fp32 '", *word, "'; choose true or false, or leave it out"));
}

absl::StatusOr<ModelOptions> ParseOptions(const ModelRequest& request) {
  if (request.batch < 1)
    return absl::InvalidArgumentError(absl::StrCat("batch must be at least 1, got ", request.batch));
  if (request.loss_scale.has_value() && !request.train) {
    return absl::InvalidArgumentError("loss-scale needs --train: a forward function has no loss");
  }
  absl::StatusOr<std::optional<DType>> dtype = LowType(request.dtype);
  if (!dtype.ok()) return dtype.status();
  absl::StatusOr<std::optional<bool>> keep = KeepNorms(request.keep_batchnorm_fp32);
  if (!keep.ok()) return keep.status();
  ModelOptions options;
  options.amp_level = request.amp_level;
  options.amp_dtype = *dtype;
  options.keep_batchnorm_fp32 = *keep;
  if (request.loss_scale.has_value()) {
    absl::StatusOr<LossScaleConfig> scale = amp::ParseLossScale(*request.loss_scale);
    if (!scale.ok()) return scale.status();
    options.loss_scale_manager = LossScaleChoice(*scale);
  }
  return options;
}

}  // namespace

absl::StatusOr<ModelSource> TraceModel(const ModelRequest& request) {
  absl::StatusOr<ModelOptions> options = ParseOptions(request);
  if (!options.ok()) return options.status();
  absl::StatusOr<std::unique_ptr<models::Classifier>> classifier = models::MakeClassifier(request.model);
  if (!classifier.ok()) return classifier.status();
  const TensorSpec images = {DType::kF32, {request.batch, 1, 32, 32}};
  const TensorSpec labels = {DType::kI32, {request.batch}};
  nn::SoftmaxCrossEntropyWithLogits loss({.sparse = true, .reduction = "mean"});
  nn::Momentum optimizer((*classifier)->network().TrainableParams(), {.learning_rate = 0.01, .momentum = 0.9});
  const Model model = request.train ? (*classifier)->MakeModel(loss, optimizer, *std::move(options))
                                    : (*classifier)->MakePredictor(*std::move(options));
  absl::StatusOr<compiler::Module> traced =
      request.train ? model.TraceTrainStep({images, labels}) : model.TracePredict({images});
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
