#include "tools/mpc-train/summary.h"

#include <limits>
#include <string>

#include "kernels/cpu/kernel.h"
#include "tools/mpc-train/optimizer.h"
#include "tools/mpc-train/sample.h"
#include "tools/mpc-train/timing_tree.h"

namespace mpc::tools {
namespace {

std::string LossScaleName(const LossScaleConfig& config) {
  if (config.mode != LossScaleConfig::Mode::kStatic) return std::string(config.mode_name());
  std::string number = std::to_string(config.init);
  number.erase(number.find_last_not_of('0') + 1);
  if (number.back() == '.') number.pop_back();
  return number;
}

void AddTextOptions(const TrainOptions& options, Json& json) {
  json["text_file"] = options.text_path;
  json["tokens"] = options.tokens;
  json["layers"] = options.layers;
  json["width"] = options.width;
  json["heads"] = options.heads;
  json["final_lr"] = FinalRate(options);
  if (options.optimizer == "torch-adamw") json["beta2"] = kTextBeta2;
  json["temperature"] = options.temperature;
  json["prompt"] = Printable(options.prompt);
}

void AddPictureOptions(const TrainOptions& options, Json& json) {
  json["mean"] = options.mean;
  json["std"] = options.std;
  json["augment"] = options.augment;
  json["skip_damaged"] = options.skip_damaged;
  json["workers"] = options.workers;
}

Json OptionsJson(const TrainOptions& options, const Model& model) {
  const amp::Precision& precision = model.precision();
  Json json;
  json["model"] = options.model;
  json["amp_level"] = precision.level;
  json["dtype"] = precision.level == "O0" ? "f32" : std::string(DTypeName(precision.dtype));
  json["keep_batchnorm_fp32"] = precision.keep_batchnorm_fp32.value_or(true);
  json["master_weights"] = precision.master_weights;
  json["cast_model_outputs"] = std::string(DTypeName(precision.cast_model_outputs.value_or(DType::kF32)));
  json["loss_scale"] = LossScaleName(model.loss_scale_config());
  json["data"] = options.data;
  json["data_dir"] = options.data_directory;
  json["epochs"] = options.epochs;
  json["batch_size"] = options.batch_size;
  json["shift"] = options.shift;
  json["optimizer"] = options.optimizer;
  json["lr"] = options.learning_rate;
  json["lr_schedule"] = options.schedule;
  json["momentum"] = options.momentum;
  json["weight_decay"] = options.weight_decay;
  json["seed"] = options.seed;
  json["threads"] = cpu::NumThreads();
  json["device"] = options.device;
  json["clip_norm"] = options.clip_norm;
  json["clip_value"] = options.clip_value;
  json["accumulation"] = options.accumulation;
  json["warmup_steps"] = options.warmup_steps;
  if (options.dropout.has_value()) json["dropout"] = *options.dropout;
  if (options.data == kSynthetic || options.data == kText) json["steps"] = options.steps;
  if (options.data == kText) AddTextOptions(options, json);
  if (options.data == kPictures) AddPictureOptions(options, json);
  if (options.device != "cpu") {
    json["graph"] = options.graph.value_or(true);
    json["steps_per_launch"] = options.steps_per_launch;
    json["allow_tf32"] = options.allow_tf32;
    json["allow_conv_statistics"] = options.allow_conv_statistics;
    json["tune"] = options.tune;
  }
  return json;
}

}  // namespace

Json MakeSummary(const TrainOptions& options, const Training& training) {
  const Model& model = training.model();
  Json summary;
  // Synthetic data have no test.
  const bool tests = training.test_rows() > 0;
  const double none = std::numeric_limits<double>::quiet_NaN();
  summary["test_accuracy"] = tests ? training.test().accuracy : none;
  summary["test_loss"] = tests ? training.test().loss : none;
  summary["train_loss"] = Json::array();
  summary["epochs"] = Json::array();
  for (const EpochResult& epoch : training.epochs()) {
    summary["train_loss"].push_back(epoch.train_loss);
    summary["epochs"].push_back({{"train_loss", epoch.train_loss},
                                 {"test_loss", tests ? epoch.test.loss : none},
                                 {"test_accuracy", tests ? epoch.test.accuracy : none},
                                 {"steps", epoch.steps},
                                 {"seconds", epoch.seconds}});
  }
  if (options.data == kText) {
    summary["validations"] = Json::array();
    for (const Validation& validation : training.validations()) {
      summary["validations"].push_back(
          {{"step", validation.step}, {"train_loss", validation.train_loss}, {"loss", validation.loss}});
    }
    summary["sample"] = Printable(training.sample());
  }
  if (options.data == kPictures) {
    summary["left_out"] = {{"train", training.left_out().train}, {"test", training.left_out().test}};
  }
  summary["steps"] = training.steps();
  summary["steps_per_second"] = training.steps() > 0 ? static_cast<double>(training.steps()) / training.seconds()
                                                     : std::numeric_limits<double>::quiet_NaN();
  summary["skipped_steps"] = model.skipped_steps();
  summary["loss_scale"] = model.loss_scale();
  summary["compile_seconds"]["total"] = TotalSeconds(model.compiled());
  for (const auto& [phase, seconds] : SecondsByPhase(model.compiled())) summary["compile_seconds"][phase] = seconds;
  summary["programs"] = model.compiled().size();
  summary["peak_bytes"] = model.peak_bytes();
  summary["options"] = OptionsJson(options, model);
  return summary;
}

}  // namespace mpc::tools
