// Models by name, for the tools.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "mpc/mpc.h"

namespace mpc::models {

/// A network that classifies images of [channels, 32, 32], with what a tool needs to train it.
class Classifier {
 public:
  virtual ~Classifier() = default;
  virtual nn::Cell& network() = 0;
  /// A Model over the network. Loss and optimizer must outlive it.
  virtual Model MakeModel(nn::SoftmaxCrossEntropyWithLogits& loss, nn::Optimizer& optimizer, ModelOptions options) = 0;
  /// A Model that only predicts.
  virtual Model MakePredictor(ModelOptions options) = 0;
};

/// One of ClassifierNames(). Errors (NOT_FOUND): what was given, what exists.
absl::StatusOr<std::unique_ptr<Classifier>> MakeClassifier(std::string_view name, int num_classes = 10);

/// Every name, sorted.
std::vector<std::string> ClassifierNames();

/// A network with its loss and the shapes of its inputs, for tools that trace, explain or time a step.
class Workload {
 public:
  virtual ~Workload() = default;
  virtual nn::Cell& network() = 0;
  /// The network's inputs, for `batch` >= 1 samples, and with the labels behind them.
  virtual std::vector<TensorSpec> PredictInputs(std::int64_t batch) const = 0;
  virtual std::vector<TensorSpec> TrainInputs(std::int64_t batch) const = 0;
  /// Every whole number among the inputs and labels is below this: classes, or words of the vocabulary.
  virtual std::int64_t classes() const = 0;
  /// A Model over the network and its loss. The Workload and the optimizer must outlive it.
  virtual Model MakeModel(nn::Optimizer& optimizer, ModelOptions options) = 0;
  /// A Model that only predicts.
  virtual Model MakePredictor(ModelOptions options) = 0;
};

/// Other sizes than published, for small machines, and another rate of dropout. 0: as published.
struct WorkloadSizes {
  /// Pixels of a side, of "resnet18-imagenet", "resnet50-imagenet" and the networks of Vit; a multiple of 32.
  std::int64_t image_size = 0;
  std::int64_t classes = 0;  ///< classes of a ResNet or of a Vit, at least 2
  // The sizes below are for networks that read tokens: "bert", "bert-tiny", "gpt2" and "gpt2-tiny"; see BertConfig and
  // Gpt2Config.
  std::int64_t tokens = 0;  ///< tokens of a row, at most the context; 0: 128 for "bert", else the context
  std::int64_t vocabulary = 0;
  std::int64_t context = 0;
  std::int64_t width = 0;  ///< a multiple of the heads
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  /// Rate of a network that reads tokens or of a Vit, at least 0 and below 1. Not given: that of its config, which is
  /// 0.
  std::optional<double> dropout;

  friend bool operator==(const WorkloadSizes&, const WorkloadSizes&) = default;
};

/// Makes a network by name. The classifiers take [1, 32, 32] images with ten classes, "resnet18-cifar" takes [3, 32,
/// 32] ones. "resnet18-imagenet", and "resnet50-imagenet" or "resnet50", are as published ([3, 224, 224], 1,000
/// classes). So are "gpt2" (124M parameters, 1,024 tokens) and "bert" (110M parameters, 128 tokens). "gpt2-tiny" and
/// "bert-tiny" have 32 tokens and two layers of width 64. "vit_tiny_patch16_224", and likewise with small, base and
/// large, are timm's ([3, 224, 224], 1,000 classes). "vit-tiny" takes [3, 32, 32] images in patches of 8 x 8 with ten
/// classes, and has two layers of width 64. "dcgan-generator" and "dcgan-discriminator" have 16x16 images. Errors:
/// those of CheckWorkload.
absl::StatusOr<std::unique_ptr<Workload>> MakeWorkload(std::string_view name, const WorkloadSizes& sizes = {});

/// What a message calls a member of WorkloadSizes with its value: "image_size = 64".
using SizeNamer = std::string (*)(std::string_view name, std::string_view text);
std::string NameOfSize(std::string_view name, std::string_view text);

/// Errors (NOT_FOUND): what was given, what exists; (INVALID_ARGUMENT) a size or a rate that the network does not take,
/// with those that it does. They call sizes as `call` does.
absl::Status CheckWorkload(std::string_view name, const WorkloadSizes& sizes = {}, SizeNamer call = NameOfSize);

/// Every name, sorted.
std::vector<std::string> WorkloadNames();

/// Every name that tools train by, sorted: WorkloadNames, "resnet50", and "dcgan", whose step trains two networks.
std::vector<std::string> TrainedNames();

/// The sizes of `name`, with those of `sizes` that are given in place of the published ones. None is 0 but those
/// of images. Empty for a network that reads no tokens.
std::optional<WorkloadSizes> TokenSizesOf(std::string_view name, const WorkloadSizes& sizes = {});

/// What a network expects of pixels from 0 to 1: (pixel - mean) / std for each channel.
struct PixelNormalization {
  std::vector<float> mean;
  std::vector<float> std;

  friend bool operator==(const PixelNormalization&, const PixelNormalization&) = default;
};

/// The mean and the deviation of ImageNet's pixels, as torchvision's ResNets take them.
PixelNormalization ImageNetNormalization();
/// 0.5 and 0.5, which gives numbers from -1 to 1, as timm's vision transformers take them.
PixelNormalization HalfNormalization();

/// What the weights of `name` are published for. Empty for a network that does not take pictures of three channels.
std::optional<PixelNormalization> NormalizationOf(std::string_view name);

/// The names that take pictures of three channels, in as many classes as they are asked for; sorted.
std::vector<std::string> PictureNetworkNames();

/// Whether `name` predicts the next token at each position, as a network does that writes text.
bool PredictsNextToken(std::string_view name);

}  // namespace mpc::models
