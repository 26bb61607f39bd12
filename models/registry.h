// Models by name, for the tools.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "frontend/mpc.h"

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

/// "lenet5", "mlp" or "bnnet". Errors (NOT_FOUND): what was given, what exists.
absl::StatusOr<std::unique_ptr<Classifier>> MakeClassifier(std::string_view name, int num_classes = 10);

/// Every name, sorted.
std::vector<std::string> ClassifierNames();

}  // namespace mpc::models
