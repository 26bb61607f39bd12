#include "tools/mpc-bench/measure.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <random>

#include "absl/strings/str_cat.h"
#include "models/registry.h"
#include "runtime/executable.h"

namespace mpc::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kBatches = 8;
constexpr std::int64_t kClasses = 10;
constexpr std::int64_t kImageSize = 32;

struct Batch {
  Tensor images;
  Tensor labels;
};

std::vector<Batch> MakeBatches(std::int64_t rows) {
  std::mt19937 engine(1);
  std::normal_distribution<float> pixel;
  std::vector<Batch> batches;
  for (std::int64_t i = 0; i < kBatches; ++i) {
    std::vector<float> images(static_cast<std::size_t>(rows * kImageSize * kImageSize));
    for (float& value : images) value = pixel(engine);
    std::vector<std::int32_t> labels(static_cast<std::size_t>(rows));
    for (std::int32_t& label : labels) label = static_cast<std::int32_t>(engine() % kClasses);
    batches.push_back({Tensor::From(images, {rows, 1, kImageSize, kImageSize}), Tensor::From(labels, {rows})});
  }
  return batches;
}

}  // namespace

absl::StatusOr<RunResult> MeasureSteps(const BenchOptions& options) {
  SetSeed(1);
  if (absl::Status status = SetContext({.num_threads = static_cast<int>(options.threads)}); !status.ok()) return status;
  absl::StatusOr<std::unique_ptr<models::Classifier>> classifier = models::MakeClassifier(options.model);
  if (!classifier.ok()) return classifier.status();
  nn::SoftmaxCrossEntropyWithLogits loss({.sparse = true, .reduction = "mean"});
  nn::Momentum optimizer((*classifier)->network().TrainableParams(), {.learning_rate = 0.01, .momentum = 0.9});
  Model model =
      (*classifier)->MakeModel(loss, optimizer, {.amp_level = options.amp_level, .amp_dtype = options.low_type()});
  if (!model.status().ok()) return model.status();
  const std::vector<Batch> batches = MakeBatches(options.batch);
  const absl::StatusOr<runtime::Executable*> step = model.LoadTrainStep({batches[0].images, batches[0].labels});
  if (!step.ok()) return step.status();

  RunResult result;
  result.version = absl::StrCat("mpc ", MPC_VERSION);
  result.step_seconds.reserve(static_cast<std::size_t>(options.steps));
  for (std::int64_t i = 0; i < options.warmup + options.steps; ++i) {
    const Batch& batch = batches[static_cast<std::size_t>(i % kBatches)];
    const absl::Span<const std::uint8_t> inputs[] = {batch.images.bytes(), batch.labels.bytes()};
    const Clock::time_point begin = Clock::now();
    if (absl::Status status = (*step)->Run(inputs); !status.ok()) return status;
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (i >= options.warmup) result.step_seconds.push_back(seconds);
  }
  float final_loss = 0;
  std::memcpy(&final_loss, (*step)->output(0).data(), sizeof(final_loss));
  result.final_loss = final_loss;
  return result;
}

Json RunToJson(const RunResult& result) {
  return {{"step_seconds", result.step_seconds}, {"version", result.version}, {"final_loss", result.final_loss}};
}

absl::StatusOr<RunResult> RunFromJson(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto has = [&](const char* key, bool (Json::*is)() const noexcept) {
    return json.contains(key) && (json[key].*is)();
  };
  if (!json.is_object() || !has("step_seconds", &Json::is_array) || !has("version", &Json::is_string)) {
    return absl::InvalidArgumentError(absl::StrCat("a run printed no result but '", text.substr(0, 200), "'"));
  }
  RunResult result;
  for (const Json& seconds : json["step_seconds"]) {
    if (seconds.is_number()) result.step_seconds.push_back(seconds.get<double>());
  }
  if (result.step_seconds.empty()) return absl::InvalidArgumentError("a run measured no step");
  result.version = json["version"].get<std::string>();
  result.final_loss = has("final_loss", &Json::is_number) ? json["final_loss"].get<double>() : std::nan("");
  return result;
}

}  // namespace mpc::tools
