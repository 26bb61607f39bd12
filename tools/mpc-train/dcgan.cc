#include "tools/mpc-train/dcgan.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>
#include <random>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "models/dcgan.h"
#include "mpc/data.h"
#include "mpc/train.h"
#include "tools/mpc-train/checkpoints.h"
#include "tools/mpc-train/step_trace.h"

namespace mpc::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kImageSize = 16;
constexpr std::int64_t kJudged = 256;  ///< images judged after an epoch

/// Standard normal numbers, a function of the seed and the number. Two uniform ones give one by Box and Muller.
Tensor Noise(std::uint64_t seed, std::int64_t number, const Shape& shape) {
  std::seed_seq sequence{seed, static_cast<std::uint64_t>(number)};
  std::mt19937_64 engine(sequence);
  const auto uniform = [&] { return (static_cast<double>(engine() >> 11) + 0.5) * 0x1p-53; };
  std::vector<float> values(static_cast<std::size_t>(NumElements(shape)));
  for (float& value : values) {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    value = static_cast<float>(radius * std::cos(2 * std::numbers::pi * uniform()));
  }
  return Tensor::From(values, shape);
}

/// Digits with pixels in [-1, 1]; the label gives way to noise, new in every epoch.
absl::StatusOr<data::Dataset> ImagesAndNoise(const TrainOptions& options, data::Split split, std::int64_t latent_size) {
  data::DigitsOptions digits{.image_size = kImageSize, .normalise = false};
  if (!options.data_directory.empty()) {
    absl::StatusOr<std::string> path = data::FindDataFile({"digits.csv.gz", "digits.csv"}, {options.data_directory});
    if (!path.ok()) return path.status();
    digits.path = *std::move(path);
  }
  const data::Dataset images = data::Digits(split, digits);
  absl::StatusOr<std::int64_t> rows = images.size();
  if (!rows.ok()) return rows.status();
  const auto seed = static_cast<std::uint64_t>(options.seed);
  const auto centred = [](const Tensor& image) -> absl::StatusOr<Tensor> {
    std::vector<float> pixels = image.ToFloats();
    for (float& pixel : pixels) pixel = 2 * pixel - 1;
    return Tensor::From(pixels, image.shape());
  };
  const auto noise = [seed, rows = *rows, latent_size](const Tensor&, const data::RowPosition& position) {
    return absl::StatusOr<Tensor>(Noise(seed, position.epoch * rows + position.row, {latent_size}));
  };
  return images.Map(data::MapFunction(centred), "image").Shuffle(seed).Map(data::PositionMapFunction(noise), "label");
}

double ShareJudgedReal(models::DcganDiscriminator& discriminator, const Tensor& images) {
  const std::vector<float> logits = discriminator(images).ToFloats();
  const auto real = std::count_if(logits.begin(), logits.end(), [](float logit) { return logit > 0; });
  return logits.empty() ? std::nan("") : static_cast<double>(real) / static_cast<double>(logits.size());
}

/// The networks and all that trains them.
struct Gan {
  explicit Gan(const TrainOptions& options)
      : optimizer_g(generator.TrainableParams(), {.learning_rate = options.learning_rate, .beta1 = 0.5}),
        optimizer_d(discriminator.TrainableParams(), {.learning_rate = options.learning_rate, .beta1 = 0.5}) {}

  absl::Status Initialize(amp::Options amp) {
    amp.num_losses = 3;
    return amp::Initialize({generator, discriminator}, {optimizer_g, optimizer_d}, amp);
  }

  models::DcganOptions network;
  models::DcganGenerator generator{network};
  models::DcganDiscriminator discriminator{network};
  nn::Adam optimizer_g;
  nn::Adam optimizer_d;
  models::DcganStep step{generator, discriminator, optimizer_g, optimizer_d};
};

/// Judges and reports after each epoch.
class DcganRecorder : public Callback {
 public:
  DcganRecorder(Gan& gan, Tensor test_images, Tensor noise, DcganResult& result, std::ostream* progress)
      : gan_(gan),
        test_images_(std::move(test_images)),
        noise_(std::move(noise)),
        result_(result),
        progress_(progress) {}

  void OnEpochBegin(RunContext&) override {
    loss_sum_ = 0;
    steps_ = 0;
    begin_ = Clock::now();
  }
  void OnStepEnd(RunContext& context) override {
    ++result_.steps;
    if (!std::isfinite(context.loss())) return;
    loss_sum_ += context.loss();
    ++steps_;
  }
  void OnEpochEnd(RunContext& context) override {
    DcganEpoch epoch;
    epoch.seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    epoch.discriminator_loss = loss_sum_ / static_cast<double>(steps_);
    gan_.step.SetTrain(false);
    epoch.real_taken = ShareJudgedReal(gan_.discriminator, test_images_);
    epoch.generated_taken = ShareJudgedReal(gan_.discriminator, gan_.generator(noise_));
    gan_.step.SetTrain(true);
    result_.seconds += epoch.seconds;
    result_.epochs.push_back(epoch);
    if (progress_ == nullptr) return;
    *progress_ << absl::StrFormat(
                      "epoch %d/%d: discriminator loss %s, judged real: %.1f %% of test images, %.1f %% of generated\n",
                      context.epoch, context.epochs, FormatLoss(epoch.discriminator_loss), 100 * epoch.real_taken,
                      100 * epoch.generated_taken)
               << std::flush;
  }

 private:
  Gan& gan_;
  Tensor test_images_;
  Tensor noise_;
  DcganResult& result_;
  std::ostream* progress_;
  double loss_sum_ = 0;
  std::int64_t steps_ = 0;
  Clock::time_point begin_;
};

absl::StatusOr<Tensor> TestImages(const TrainOptions& options, std::int64_t latent_size) {
  absl::StatusOr<data::Dataset> test = ImagesAndNoise(options, data::Split::kTest, latent_size);
  if (!test.ok()) return test.status();
  for (const data::NamedRow& row : test->Batch(kJudged).CreateDictIterator()) return row["image"];
  return absl::NotFoundError("the data set has no test images");
}

}  // namespace

Json DcganResult::Summary(const TrainOptions& options) const {
  Json summary;
  summary["epochs"] = Json::array();
  for (const DcganEpoch& epoch : epochs) {
    summary["epochs"].push_back({{"discriminator_loss", epoch.discriminator_loss},
                                 {"real_taken", epoch.real_taken},
                                 {"generated_taken", epoch.generated_taken},
                                 {"seconds", epoch.seconds}});
  }
  summary["steps"] = steps;
  summary["skipped"] = skipped;
  summary["loss_scales"] = loss_scales;
  summary["options"] = {{"model", options.model},           {"amp_level", options.amp.level},
                        {"batch_size", options.batch_size}, {"epochs", options.epochs},
                        {"lr", options.learning_rate},      {"seed", options.seed}};
  return summary;
}

absl::StatusOr<runtime::Package> PackageDcgan(const TrainOptions& options) {
  Gan gan(options);
  if (absl::Status status = gan.Initialize(options.amp); !status.ok()) return status;
  Model model(gan.step, {.device = options.device});
  const std::int64_t batch = options.batch_size;
  return model.MakePackage({{"image", {DType::kF32, {batch, 1, kImageSize, kImageSize}}},
                            {"noise", {DType::kF32, {batch, gan.network.latent_size}}}});
}

absl::StatusOr<DcganResult> TrainDcgan(const TrainOptions& options, std::ostream* progress) {
  if (absl::Status status = CheckSavePath(options); !status.ok()) return status;
  if (!options.summary_path.empty()) {
    if (absl::Status status = CheckWritable(options.summary_path); !status.ok()) return status;
  }
  if (!options.trace_path.empty()) {
    if (absl::Status status = CheckWritable(options.trace_path); !status.ok()) return status;
  }
  SetSeed(static_cast<std::uint64_t>(options.seed));
  if (absl::Status status = SetContext(ContextOf(options, options.threads)); !status.ok()) return status;
  Gan gan(options);
  const std::int64_t latent_size = gan.network.latent_size;
  absl::StatusOr<data::Dataset> train = ImagesAndNoise(options, data::Split::kTrain, latent_size);
  if (!train.ok()) return train.status();
  absl::StatusOr<Tensor> test_images = TestImages(options, latent_size);
  if (!test_images.ok()) return test_images.status();
  if (absl::Status status = gan.Initialize(options.amp); !status.ok()) return status;
  Model model(gan.step, {.device = options.device});
  absl::StatusOr<std::string> resumed = Resume(options, model);
  if (!resumed.ok()) return resumed.status();
  if (progress != nullptr && !resumed->empty()) *progress << *resumed << std::endl;

  DcganResult result;
  DcganRecorder recorder(gan, *test_images, Noise(static_cast<std::uint64_t>(options.seed), -1, {kJudged, latent_size}),
                         result, progress);
  const std::shared_ptr<Callback> saver = MakeSaver(options);
  std::shared_ptr<StepTrace> trace;
  if (!options.trace_path.empty()) {
    trace = std::make_shared<StepTrace>(options.model, options.trace_first, options.trace_last);
  }
  OnRequestExit on_exit;  // the saver saves at the end of a run that is stopped too
  if (absl::Status status = model.Train(options.epochs, train->Batch(options.batch_size, /*drop_remainder=*/true),
                                        {recorder, saver, trace, on_exit});
      !status.ok()) {
    return status;
  }
  result.signal = on_exit.signal();
  if (trace != nullptr) {
    if (absl::Status status = SaveTrace(*trace, options.trace_path, result.signal != 0); !status.ok()) return status;
  }
  result.skipped = model.skipped_steps();
  absl::StatusOr<std::map<std::string, amp::ScalerState>> scalers = amp::StateDict();
  if (!scalers.ok()) return scalers.status();
  for (const auto& [name, scaler] : *scalers) result.loss_scales.push_back(scaler.at("loss_scale"));
  return result;
}

}  // namespace mpc::tools
