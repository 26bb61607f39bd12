#include "models/registry.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/bnnet.h"
#include "models/lenet5.h"
#include "models/mlp.h"

namespace mpc::models {
namespace {

template <typename Network>
class ClassifierOf : public Classifier {
 public:
  explicit ClassifierOf(int num_classes) : network_(num_classes) {}
  nn::Cell& network() override { return network_; }
  Model MakeModel(nn::SoftmaxCrossEntropyWithLogits& loss, nn::Optimizer& optimizer, ModelOptions options) override {
    return Model(network_, loss, optimizer, std::move(options));
  }
  Model MakePredictor(ModelOptions options) override { return Model(network_, std::move(options)); }

 private:
  Network network_;
};

}  // namespace

std::vector<std::string> ClassifierNames() { return {"bnnet", "lenet5", "mlp"}; }

absl::StatusOr<std::unique_ptr<Classifier>> MakeClassifier(std::string_view name, int num_classes) {
  if (name == "lenet5") return std::make_unique<ClassifierOf<LeNet5>>(num_classes);
  if (name == "mlp") return std::make_unique<ClassifierOf<Mlp>>(num_classes);
  if (name == "bnnet") return std::make_unique<ClassifierOf<BnNet>>(num_classes);
  return absl::NotFoundError(
      absl::StrCat("unknown model '", std::string(name), "'; choose ", absl::StrJoin(ClassifierNames(), ", ")));
}

}  // namespace mpc::models
