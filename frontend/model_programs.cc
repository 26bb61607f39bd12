// Which Programs a Model compiles, and with which options.
#include <iostream>

#include "absl/strings/str_cat.h"
#include "frontend/model_impl.h"

namespace mpc {

using internal::CompiledStep;
using internal::StepOptions;

StepOptions Model::Impl::CommonOptions(const char* name) const {
  StepOptions common;
  common.name = name;
  common.networks = networks;
  common.rng = rng;
  common.compile.level = precision.level;
  common.compile.dtype = std::string(DTypeName(precision.dtype));
  if (precision.keep_batchnorm_fp32.has_value()) {
    common.compile.keep_batchnorm_fp32 = *precision.keep_batchnorm_fp32 ? "true" : "false";
  }
  common.compile.device = device();
  return common;
}

StepOptions Model::Impl::TrainOptions(const std::vector<std::string>& columns) const {
  StepOptions train = CommonOptions("train_step");
  train.training = true;
  train.input_names = columns;
  train.output_names = {"loss"};
  train.compile.loss_scale = std::string(scale_config.mode_name());
  train.compile.skip = scale_config.skip;
  train.compile.unscale = scale_config.unscale;
  if (scaler != nullptr) train.scaler = scaler->state();
  if (user_step != nullptr) {
    // A step of the user's own brings its own wrap, if any.
    StepOptions own = train;
    step.cell()->ConfigureStep(own);
    if (own.compile.loss_scale != "none") {
      train.compile.loss_scale = own.compile.loss_scale;
      train.compile.skip = own.compile.skip;
      train.compile.unscale = own.compile.unscale;
      train.scaler = own.scaler;
    }
  }
  return train;
}

absl::StatusOr<CompiledStep*> Model::Impl::Program(nn::Cell* root, const internal::TensorFunction& function,
                                                   const std::vector<Tensor>& inputs, const StepOptions& step_options) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined() || !inputs[i].status().ok() || !inputs[i].concrete()) {
      return inputs[i].defined() && !inputs[i].status().ok()
                 ? inputs[i].status()
                 : absl::InvalidArgumentError(absl::StrCat("input ", i, " is not a concrete tensor"));
    }
  }
  std::unique_ptr<CompiledStep>& slot = programs[internal::StepKey(root, inputs, step_options)];
  if (slot == nullptr) {
    absl::StatusOr<std::unique_ptr<CompiledStep>> fresh =
        internal::CompileStep(root, function, internal::SpecsOf(inputs), step_options);
    if (!fresh.ok()) return fresh.status();
    slot = *std::move(fresh);
    compiled.push_back(&slot->compiled());
    for (const std::string& remark : slot->compiled().remarks) std::cerr << "remark: " << remark << "\n";
  }
  return slot.get();
}

internal::TensorFunction Model::Impl::EvalFunction() const {
  return [this](const std::vector<Tensor>& columns) {
    const std::vector<Tensor> data(columns.begin(), columns.end() - 1);
    const std::vector<Tensor> predictions = network.Flat(data);
    std::vector<Tensor> for_loss = predictions;
    for_loss.push_back(columns.back());
    return std::vector<Tensor>{loss.Flat(for_loss).at(0), predictions.front()};
  };
}

}  // namespace mpc
