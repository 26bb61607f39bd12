#include "models/registry.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/bert.h"
#include "models/bnnet.h"
#include "models/dcgan.h"
#include "models/faint.h"
#include "models/gpt2.h"
#include "models/lenet5.h"
#include "models/mlp.h"
#include "models/resnet.h"
#include "models/vit.h"

namespace mpc::models {
namespace {

template <typename Network>
class ClassifierOf : public Classifier {
 public:
  explicit ClassifierOf(Network network) : network_(std::move(network)) {}
  nn::Cell& network() override { return network_; }
  Model MakeModel(nn::SoftmaxCrossEntropyWithLogits& loss, nn::Optimizer& optimizer, ModelOptions options) override {
    return Model(network_, loss, optimizer, std::move(options));
  }
  Model MakePredictor(ModelOptions options) override { return Model(network_, std::move(options)); }

 protected:
  Network network_;
};

/// A network with a loss of its own.
class FaintClassifier : public ClassifierOf<FaintNet> {
 public:
  using ClassifierOf::ClassifierOf;
  Model MakeModel(nn::SoftmaxCrossEntropyWithLogits&, nn::Optimizer& optimizer, ModelOptions options) override {
    return Model(network_, loss_, optimizer, std::move(options));
  }

 private:
  FaintLoss loss_;
};

/// ResNet-18 for small images.
ResNet18 SmallResNet18(int num_classes, int num_channels = 1) {
  return ResNet18({.num_classes = num_classes, .num_channels = num_channels, .stem = ResNetStem::kCifar});
}

/// The types of the inputs of one sample, and of its label.
struct SampleShapes {
  TensorSpec input;
  TensorSpec label;
  std::int64_t classes = 10;
};

template <typename Network, typename Loss>
class WorkloadOf : public Workload {
 public:
  WorkloadOf(Network network, Loss loss, SampleShapes sample)
      : network_(std::move(network)), loss_(std::move(loss)), sample_(std::move(sample)) {}
  nn::Cell& network() override { return network_; }
  std::int64_t classes() const override { return sample_.classes; }
  std::vector<TensorSpec> PredictInputs(std::int64_t batch) const override { return {Batch(sample_.input, batch)}; }
  std::vector<TensorSpec> TrainInputs(std::int64_t batch) const override {
    return {Batch(sample_.input, batch), Batch(sample_.label, batch)};
  }
  Model MakeModel(nn::Optimizer& optimizer, ModelOptions options) override {
    return Model(network_, loss_, optimizer, std::move(options));
  }
  Model MakePredictor(ModelOptions options) override { return Model(network_, std::move(options)); }

 private:
  static TensorSpec Batch(TensorSpec sample, std::int64_t batch) {
    sample.shape.insert(sample.shape.begin(), batch);
    return sample;
  }

  Network network_;
  Loss loss_;
  SampleShapes sample_;
};

template <typename Network, typename Loss>
std::unique_ptr<Workload> MakeWorkloadOf(Network network, Loss loss, SampleShapes sample) {
  return std::make_unique<WorkloadOf<Network, Loss>>(std::move(network), std::move(loss), std::move(sample));
}

template <typename Network>
std::unique_ptr<Workload> Classify(Network network, Shape image, std::int64_t classes = 10) {
  return MakeWorkloadOf(std::move(network), nn::SoftmaxCrossEntropyWithLogits({.sparse = true, .reduction = "mean"}),
                        {{DType::kF32, std::move(image)}, {DType::kI32, {}}, classes});
}

std::int64_t ClassesOf(const WorkloadSizes& sizes, std::int64_t published) {
  return sizes.classes > 0 ? sizes.classes : published;
}

/// A network on photographs, published for a thousand classes.
template <typename Network>
std::unique_ptr<Workload> ClassifyPhotos(const WorkloadSizes& sizes) {
  const std::int64_t side = sizes.image_size > 0 ? sizes.image_size : 224;
  const std::int64_t classes = ClassesOf(sizes, 1000);
  return Classify(Network({.num_classes = static_cast<int>(classes)}), {3, side, side}, classes);
}

/// ResNet-18 on small images, published for ten classes.
std::unique_ptr<Workload> ClassifySmallImages(const WorkloadSizes& sizes, int channels) {
  const std::int64_t classes = ClassesOf(sizes, 10);
  return Classify(SmallResNet18(static_cast<int>(classes), channels), {channels, 32, 32}, classes);
}

/// A vision transformer, as published but for the classes and the sides of its images.
std::unique_ptr<Workload> ClassifyPatches(VitConfig config, const WorkloadSizes& sizes) {
  if (sizes.image_size > 0) config.image_size = sizes.image_size;
  config.classes = ClassesOf(sizes, config.classes);
  config.dropout = sizes.dropout.value_or(config.dropout);
  return Classify(Vit(config), {config.channels, config.image_size, config.image_size}, config.classes);
}

/// Replaces sizes of a network that reads tokens by those that `from` gives, which are not 0.
template <typename From, typename To>
void TakeSizes(const From& from, To& to) {
  const auto take = [](std::int64_t size, std::int64_t& place) {
    if (size > 0) place = size;
  };
  take(from.vocabulary, to.vocabulary);
  take(from.context, to.context);
  take(from.width, to.width);
  take(from.layers, to.layers);
  take(from.heads, to.heads);
}

/// `published` with the sizes that are given in place of its own. A row is as long as its network publishes (0: as the
/// context), at most as the context, where no other length is given.
WorkloadSizes Resized(const WorkloadSizes& published, const WorkloadSizes& given) {
  WorkloadSizes sizes = published;
  TakeSizes(given, sizes);
  if (sizes.tokens == 0) sizes.tokens = sizes.context;
  sizes.tokens = given.tokens > 0 ? given.tokens : std::min(sizes.tokens, sizes.context);
  return sizes;
}

using MakeSized = std::function<std::unique_ptr<Workload>(const WorkloadSizes&)>;

struct NamedWorkload {
  MakeSized make;
  bool has_photos = false;                   ///< takes WorkloadSizes::image_size
  bool takes_classes = false;                ///< takes WorkloadSizes::classes
  bool takes_dropout = false;                ///< takes WorkloadSizes::dropout
  std::optional<PixelNormalization> pixels;  ///< normalisation of pictures, which it takes
  std::optional<WorkloadSizes> token_sizes;  ///< reads tokens; as published
  bool predicts_next_token = false;
};

/// A network that reads rows of `tokens` tokens (0: of its context), with a label for each of them.
template <typename Network, typename Loss, typename Config>
NamedWorkload ReadTokens(const Config& config, std::int64_t tokens = 0) {
  WorkloadSizes published = {.tokens = tokens};
  TakeSizes(config, published);
  const auto make = [config, published](const WorkloadSizes& given) {
    const WorkloadSizes sizes = Resized(published, given);
    Config resized = config;
    TakeSizes(sizes, resized);
    resized.dropout = given.dropout.value_or(config.dropout);
    const TensorSpec row = {DType::kI32, {sizes.tokens}};
    return MakeWorkloadOf(Network(resized), Loss(), {row, row, sizes.vocabulary});
  };
  return {.make = make,
          .takes_dropout = true,
          .token_sizes = published,
          .predicts_next_token = std::is_same_v<Loss, NextTokenLoss>};
}

NamedWorkload ReadPatches(const VitConfig& config) {
  const auto make = [config](const WorkloadSizes& sizes) { return ClassifyPatches(config, sizes); };
  return {
      .make = make, .has_photos = true, .takes_classes = true, .takes_dropout = true, .pixels = HalfNormalization()};
}

const std::map<std::string_view, NamedWorkload>& Workloads() {
  static const Shape kDigit = {1, 32, 32};
  static const auto* const workloads = new std::map<std::string_view, NamedWorkload>{
      {"bnnet", {[](const WorkloadSizes&) { return Classify(BnNet(), kDigit); }}},
      {"faint", {[](const WorkloadSizes&) {
         return MakeWorkloadOf(FaintNet(), FaintLoss(), {{DType::kF32, kDigit}, {DType::kI32, {}}});
       }}},
      {"lenet5", {[](const WorkloadSizes&) { return Classify(LeNet5(), kDigit); }}},
      {"mlp", {[](const WorkloadSizes&) { return Classify(Mlp(), kDigit); }}},
      {"resnet18",
       {.make = [](const WorkloadSizes& sizes) { return ClassifySmallImages(sizes, 1); }, .takes_classes = true}},
      {"resnet18-cifar",
       {.make = [](const WorkloadSizes& sizes) { return ClassifySmallImages(sizes, 3); },
        .takes_classes = true,
        .pixels = ImageNetNormalization()}},
      {"resnet18-imagenet",
       {.make = ClassifyPhotos<ResNet18>,
        .has_photos = true,
        .takes_classes = true,
        .pixels = ImageNetNormalization()}},
      {"resnet50-imagenet",
       {.make = ClassifyPhotos<ResNet50>,
        .has_photos = true,
        .takes_classes = true,
        .pixels = ImageNetNormalization()}},
      {"gpt2", ReadTokens<Gpt2, NextTokenLoss>(Gpt2Config())},
      {"gpt2-tiny", ReadTokens<Gpt2, NextTokenLoss>(Gpt2Config::Tiny())},
      {"bert", ReadTokens<Bert, MaskedTokenLoss>(BertConfig(), /*tokens=*/128)},
      {"bert-tiny", ReadTokens<Bert, MaskedTokenLoss>(BertConfig::Tiny())},
      {"vit-tiny",
       ReadPatches({.image_size = 32, .patch_size = 8, .classes = 10, .width = 64, .layers = 2, .heads = 4})},
      {"vit_base_patch16_224", ReadPatches(VitConfig::Base())},
      {"vit_large_patch16_224", ReadPatches(VitConfig::Large())},
      {"vit_small_patch16_224", ReadPatches(VitConfig::Small())},
      {"vit_tiny_patch16_224", ReadPatches(VitConfig::Tiny())},
      {"dcgan-generator", {[](const WorkloadSizes&) {
         const DcganOptions options;
         return MakeWorkloadOf(DcganGenerator(options), nn::MSELoss(),
                               {{DType::kF32, {options.latent_size}},
                                {DType::kF32, {options.num_channels, options.image_size, options.image_size}}});
       }}},
      {"dcgan-discriminator", {[](const WorkloadSizes&) {
         const DcganOptions options;
         return MakeWorkloadOf(
             DcganDiscriminator(options), nn::BCEWithLogitsLoss(),
             {{DType::kF32, {options.num_channels, options.image_size, options.image_size}}, {DType::kF32, {1}}});
       }}},
  };
  return *workloads;
}

const NamedWorkload* FindWorkload(std::string_view name) {
  const auto found = Workloads().find(name == "resnet50" ? "resnet50-imagenet" : name);
  return found == Workloads().end() ? nullptr : &found->second;
}

/// "a, b and c": the workloads that `fits` holds for.
std::string NamesOf(bool (*fits)(const NamedWorkload&)) {
  std::vector<std::string> names;
  for (const auto& [name, workload] : Workloads()) {
    if (fits(workload)) names.emplace_back(name);
  }
  const std::string last = names.back();
  names.pop_back();
  return absl::StrCat(absl::StrJoin(names, ", "), " and ", last);
}

/// Those that read tokens.
std::string TokenReaders() {
  return NamesOf([](const NamedWorkload& workload) { return workload.token_sizes.has_value(); });
}

/// Errors: classes of a network that does not take them; too few.
absl::Status CheckClasses(const std::string& model, bool takes_classes, std::int64_t classes, SizeNamer call) {
  if (classes == 0 || (takes_classes && classes >= 2)) return absl::OkStatus();
  const std::string given = absl::StrCat(call("classes", absl::StrCat(classes)), ": ", model);
  if (takes_classes) return absl::InvalidArgumentError(absl::StrCat(given, " takes 2 and more"));
  return absl::InvalidArgumentError(
      absl::StrCat(given, " has its own; ",
                   NamesOf([](const NamedWorkload& workload) { return workload.takes_classes; }), " take others"));
}

/// Errors: a rate of a network that drops nothing; a rate that is not at least 0 and below 1.
absl::Status CheckDropout(const std::string& model, bool takes_dropout, std::optional<double> rate, SizeNamer call) {
  if (!rate.has_value()) return absl::OkStatus();
  const std::string given = absl::StrCat(call("dropout", absl::StrCat(*rate)), ": ", model);
  if (!takes_dropout) {
    return absl::InvalidArgumentError(
        absl::StrCat(given, " has none; ",
                     NamesOf([](const NamedWorkload& workload) { return workload.takes_dropout; }), " take a rate"));
  }
  if (*rate >= 0 && *rate < 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(given, " takes rates of at least 0 and below 1"));
}

/// Errors: a size below 0; a size that a network without tokens does not have; a width that the heads do not divide.
/// More tokens than the context are an error too.
absl::Status CheckTokenSizes(const std::string& model, const std::optional<WorkloadSizes>& published,
                             const WorkloadSizes& sizes, SizeNamer call) {
  const std::pair<const char*, std::int64_t> given[] = {{"tokens", sizes.tokens},   {"vocabulary", sizes.vocabulary},
                                                        {"context", sizes.context}, {"width", sizes.width},
                                                        {"layers", sizes.layers},   {"heads", sizes.heads}};
  for (const auto& [name, size] : given) {
    if (size == 0) continue;
    const std::string called = absl::StrCat(call(name, absl::StrCat(size)), ": ", model);
    if (!published.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(called, " reads no tokens; ", TokenReaders(), " do"));
    }
    if (size < 0) return absl::InvalidArgumentError(absl::StrCat(called, " takes 1 and more"));
  }
  if (!published.has_value()) return absl::OkStatus();
  const WorkloadSizes resized = Resized(*published, sizes);
  if (resized.width % resized.heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat(call("width", absl::StrCat(resized.width)), ": the ", resized.heads,
                                                   " heads of ", model,
                                                   " share it equally; it must be a multiple of them"));
  }
  if (resized.tokens > resized.context) {
    return absl::InvalidArgumentError(
        absl::StrCat(call("tokens", absl::StrCat(sizes.tokens)), ": ", model, " takes from 1 to ", resized.context));
  }
  return absl::OkStatus();
}

absl::Status UnknownModel(std::string_view name, const std::vector<std::string>& names) {
  return absl::NotFoundError(
      absl::StrCat("unknown model '", std::string(name), "'; choose ", absl::StrJoin(names, ", ")));
}

}  // namespace

std::vector<std::string> ClassifierNames() { return {"bnnet", "faint", "lenet5", "mlp", "resnet18"}; }

absl::StatusOr<std::unique_ptr<Classifier>> MakeClassifier(std::string_view name, int num_classes) {
  if (name == "lenet5") return std::make_unique<ClassifierOf<LeNet5>>(LeNet5(num_classes));
  if (name == "mlp") return std::make_unique<ClassifierOf<Mlp>>(Mlp(num_classes));
  if (name == "faint") return std::make_unique<FaintClassifier>(FaintNet(num_classes));
  if (name == "bnnet") return std::make_unique<ClassifierOf<BnNet>>(BnNet(num_classes));
  if (name == "resnet18") return std::make_unique<ClassifierOf<ResNet18>>(SmallResNet18(num_classes));
  return UnknownModel(name, ClassifierNames());
}

std::vector<std::string> WorkloadNames() {
  std::vector<std::string> names;
  for (const auto& [name, workload] : Workloads()) names.emplace_back(name);
  return names;
}

std::vector<std::string> TrainedNames() {
  std::vector<std::string> names = WorkloadNames();
  names.insert(names.end(), {"dcgan", "resnet50"});
  std::sort(names.begin(), names.end());
  return names;
}

std::string NameOfSize(std::string_view name, std::string_view text) {
  return absl::StrCat(std::string(name), " = ", std::string(text));
}

absl::Status CheckWorkload(std::string_view name, const WorkloadSizes& sizes, SizeNamer call) {
  const NamedWorkload* const workload = FindWorkload(name);
  if (workload == nullptr) return UnknownModel(name, WorkloadNames());
  constexpr std::int64_t kSide = 32;
  const std::string model(name);
  if (sizes.image_size != 0 && !workload->has_photos) {
    return absl::InvalidArgumentError(
        absl::StrCat(call("image_size", absl::StrCat(sizes.image_size)), ": ", model, " has images of one size; ",
                     NamesOf([](const NamedWorkload& workload) { return workload.has_photos; }), " take others"));
  }
  if (sizes.image_size < 0 || sizes.image_size % kSide != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(call("image_size", absl::StrCat(sizes.image_size)), ": ", model, " takes multiples of ", kSide));
  }
  if (absl::Status status = CheckClasses(model, workload->takes_classes, sizes.classes, call); !status.ok())
    return status;
  if (absl::Status status = CheckDropout(model, workload->takes_dropout, sizes.dropout, call); !status.ok())
    return status;
  return CheckTokenSizes(model, workload->token_sizes, sizes, call);
}

std::optional<WorkloadSizes> TokenSizesOf(std::string_view name, const WorkloadSizes& sizes) {
  const NamedWorkload* const workload = FindWorkload(name);
  if (workload == nullptr || !workload->token_sizes.has_value()) return std::nullopt;
  return Resized(*workload->token_sizes, sizes);
}

PixelNormalization ImageNetNormalization() {
  return {.mean = {0.485f, 0.456f, 0.406f}, .std = {0.229f, 0.224f, 0.225f}};
}

PixelNormalization HalfNormalization() { return {.mean = {0.5f, 0.5f, 0.5f}, .std = {0.5f, 0.5f, 0.5f}}; }

std::optional<PixelNormalization> NormalizationOf(std::string_view name) {
  const NamedWorkload* const workload = FindWorkload(name);
  return workload != nullptr ? workload->pixels : std::nullopt;
}

std::vector<std::string> PictureNetworkNames() {
  std::vector<std::string> names;
  for (const auto& [name, workload] : Workloads()) {
    if (workload.pixels.has_value()) names.emplace_back(name);
  }
  return names;
}

bool PredictsNextToken(std::string_view name) {
  const NamedWorkload* const workload = FindWorkload(name);
  return workload != nullptr && workload->predicts_next_token;
}

absl::StatusOr<std::unique_ptr<Workload>> MakeWorkload(std::string_view name, const WorkloadSizes& sizes) {
  if (absl::Status status = CheckWorkload(name, sizes); !status.ok()) return status;
  return FindWorkload(name)->make(sizes);
}

}  // namespace mpc::models
