#include "models/registry.h"

#include <functional>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/bnnet.h"
#include "models/dcgan.h"
#include "models/faint.h"
#include "models/gpt2.h"
#include "models/lenet5.h"
#include "models/mlp.h"
#include "models/resnet.h"

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

/// Brings a loss of its own.
class FaintClassifier : public ClassifierOf<FaintNet> {
 public:
  using ClassifierOf::ClassifierOf;
  Model MakeModel(nn::SoftmaxCrossEntropyWithLogits&, nn::Optimizer& optimizer, ModelOptions options) override {
    return Model(network_, loss_, optimizer, std::move(options));
  }

 private:
  FaintLoss loss_;
};

/// ResNet-18 for small images of one channel.
ResNet18 SmallResNet18(int num_classes) {
  return ResNet18({.num_classes = num_classes, .num_channels = 1, .stem = ResNetStem::kCifar});
}

/// Inputs of one sample, and of its label.
struct SampleShapes {
  TensorSpec input;
  TensorSpec label;
};

template <typename Network, typename Loss>
class WorkloadOf : public Workload {
 public:
  WorkloadOf(Network network, Loss loss, SampleShapes sample)
      : network_(std::move(network)), loss_(std::move(loss)), sample_(std::move(sample)) {}
  nn::Cell& network() override { return network_; }
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
std::unique_ptr<Workload> Classify(Network network, Shape image) {
  return MakeWorkloadOf(std::move(network), nn::SoftmaxCrossEntropyWithLogits({.sparse = true, .reduction = "mean"}),
                        {{DType::kF32, std::move(image)}, {DType::kI32, {}}});
}

std::unique_ptr<Workload> PredictTokens(const Gpt2Config& config) {
  return MakeWorkloadOf(Gpt2(config), NextTokenLoss(),
                        {{DType::kI32, {config.context}}, {DType::kI32, {config.context}}});
}

const std::map<std::string_view, std::function<std::unique_ptr<Workload>()>>& Workloads() {
  static const Shape kDigit = {1, 32, 32};
  static const Shape kPhoto = {3, 224, 224};
  static const auto* const workloads = new std::map<std::string_view, std::function<std::unique_ptr<Workload>()>>{
      {"bnnet", [] { return Classify(BnNet(), kDigit); }},
      {"faint",
       [] {
         return MakeWorkloadOf(FaintNet(), FaintLoss(), {{DType::kF32, kDigit}, {DType::kI32, {}}});
       }},
      {"lenet5", [] { return Classify(LeNet5(), kDigit); }},
      {"mlp", [] { return Classify(Mlp(), kDigit); }},
      {"resnet18", [] { return Classify(SmallResNet18(10), kDigit); }},
      {"resnet18-imagenet", [] { return Classify(ResNet18(), kPhoto); }},
      {"resnet50-imagenet", [] { return Classify(ResNet50(), kPhoto); }},
      {"gpt2", [] { return PredictTokens({}); }},
      {"gpt2-tiny", [] { return PredictTokens(Gpt2Config::Tiny()); }},
      {"dcgan-generator",
       [] {
         const DcganOptions options;
         return MakeWorkloadOf(DcganGenerator(options), nn::MSELoss(),
                               {{DType::kF32, {options.latent_size}},
                                {DType::kF32, {options.num_channels, options.image_size, options.image_size}}});
       }},
      {"dcgan-discriminator",
       [] {
         const DcganOptions options;
         return MakeWorkloadOf(
             DcganDiscriminator(options), nn::BCEWithLogitsLoss(),
             {{DType::kF32, {options.num_channels, options.image_size, options.image_size}}, {DType::kF32, {1}}});
       }},
  };
  return *workloads;
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
  for (const auto& [name, make] : Workloads()) names.emplace_back(name);
  return names;
}

absl::StatusOr<std::unique_ptr<Workload>> MakeWorkload(std::string_view name) {
  const auto found = Workloads().find(name);
  if (found == Workloads().end()) return UnknownModel(name, WorkloadNames());
  return found->second();
}

}  // namespace mpc::models
