// What mpc-train begins from: --init with --classes, and --freeze.
#include "tools/mpc-train/initial_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "frontend/state/safetensors.h"
#include "models/mlp.h"
#include "models/resnet.h"
#include "models/vit.h"
#include "mpc/train.h"
#include "tests/frontend/error_of.h"
#include "tests/frontend/temporary_folder.h"

namespace mpc::tools {
namespace {

using mpc::testing::ErrorOf;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

models::ResNet18 SmallResNet(int classes) { return models::ResNet18({.num_classes = classes, .width = 2}); }

TrainOptions Options(const std::string& model, const std::string& init) {
  TrainOptions options;
  options.model = model;
  options.init_path = init;
  return options;
}

std::vector<float> ValuesOf(nn::Cell& network, const std::string& name) {
  const absl::StatusOr<Parameter> parameter = network.GetParameter(name);
  EXPECT_TRUE(parameter.ok()) << parameter.status();
  return parameter.ok() ? parameter->Value()->ToFloats() : std::vector<float>();
}

TEST(InitialWeights, TheHeadIsNewWhereClassesAreGiven) {
  const mpc::testing::TemporaryFolder folder;
  models::ResNet18 published = SmallResNet(5);
  ASSERT_TRUE(SaveCheckpoint(published, folder / "net", "torchvision/resnet18").ok());
  SetSeed(7);
  models::ResNet18 network = SmallResNet(3);
  const std::vector<float> head = ValuesOf(network, "fc.weight");
  TrainOptions options = Options("resnet18-imagenet", folder / "net");
  EXPECT_THAT(ErrorOf(LoadInitialWeights(options, network)),
              AllOf(HasSubstr(folder / "net"), HasSubstr("'fc.weight' is tensor<5x16xf32> in the file"),
                    HasSubstr("nothing was loaded; --classes=3 begins with a new 'fc'")));
  options.classes = 3;
  const absl::Status status = LoadInitialWeights(options, network);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(ValuesOf(network, "fc.weight"), head);
  for (const char* name : {"conv1.weight", "layer4.1.bn2.gamma", "bn1.moving_variance"}) {
    EXPECT_EQ(ValuesOf(network, name), ValuesOf(published, name)) << name;
  }
}

TEST(InitialWeights, TheHeadOfVitIsNewWhereClassesAreGiven) {
  const mpc::testing::TemporaryFolder folder;
  const auto small = [](std::int64_t classes) {
    return models::Vit({.image_size = 16, .classes = classes, .width = 16, .layers = 1, .heads = 2});
  };
  models::Vit published = small(5);
  ASSERT_TRUE(SaveCheckpoint(published, folder / "net", "timm/vit").ok());
  SetSeed(7);
  models::Vit network = small(3);
  const std::vector<float> head = ValuesOf(network, "head.weight");
  TrainOptions options = Options("vit_tiny_patch16_224", folder / "net");
  options.classes = 3;
  const absl::Status status = LoadInitialWeights(options, network);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(ValuesOf(network, "head.weight"), head);
  for (const char* name : {"class_token", "patches.weight", "blocks.0.attention.in_proj.weight"}) {
    EXPECT_EQ(ValuesOf(network, name), ValuesOf(published, name)) << name;
  }
}

TEST(InitialWeights, NamesAreTheFiles) {
  const mpc::testing::TemporaryFolder folder;
  models::ResNet18 published = SmallResNet(5);
  ASSERT_TRUE(SaveCheckpoint(published, folder / "own").ok());
  ASSERT_TRUE(SaveCheckpoint(published, folder / "torch", "torchvision/resnet18").ok());
  for (const char* file : {"own", "torch"}) {
    SetSeed(7);
    models::ResNet18 network = SmallResNet(5);
    const absl::Status status = LoadInitialWeights(Options("resnet18-imagenet", folder / file), network);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(ValuesOf(network, "bn1.gamma"), ValuesOf(published, "bn1.gamma"));
    EXPECT_EQ(ValuesOf(network, "fc.bias"), ValuesOf(published, "fc.bias"));
  }
}

TEST(InitialWeights, ThoseOfAnotherNetworkAreAnError) {
  const mpc::testing::TemporaryFolder folder;
  models::Mlp mlp;
  ASSERT_TRUE(SaveCheckpoint(mlp, folder / "mlp").ok());
  models::ResNet18 network = SmallResNet(5);
  EXPECT_THAT(ErrorOf(LoadInitialWeights(Options("resnet18-imagenet", folder / "mlp"), network)),
              AllOf(HasSubstr("'conv1.weight' is missing"), HasSubstr("'fc1.weight' is no parameter of ResNet18"),
                    Not(HasSubstr("--classes"))));
}

TEST(InitialWeights, OfOtherClassesAreAWarningOrWithoutTrainingAnError) {
  const mpc::testing::TemporaryFolder folder;
  TrainOptions options;
  options.load_path = folder / "net";
  ASSERT_TRUE(SaveSafetensors(options.load_path, {{}, {{"class_names", R"(["ant","bee"])"}}}).ok());
  EXPECT_THAT(ErrorOf(CheckClassNames(options, {"bee", "ant"})),
              AllOf(HasSubstr(folder / "net"), HasSubstr(R"(["ant","bee"], and the data have ["bee","ant"])")));
  EXPECT_TRUE(CheckClassNames(options, {"ant", "bee"}).ok());
  EXPECT_TRUE(CheckClassNames(options, {}).ok()) << "synthetic data have no names";
  options.epochs = 3;
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(CheckClassNames(options, {"cat", "dog"}).ok());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr(R"(warning: --load=)"));
  ASSERT_TRUE(SaveSafetensors(options.load_path, {}).ok());
  options.epochs = 0;
  EXPECT_TRUE(CheckClassNames(options, {"cat", "dog"}).ok()) << "the file says nothing";
}

TEST(Freezing, LeavesTheParametersOutOfTraining) {
  models::ResNet18 network = SmallResNet(5);
  TrainOptions options;
  options.freeze = "conv1,bn1,layer1,layer2,layer3,layer4";
  ASSERT_TRUE(Freeze(options, network).ok());
  std::vector<std::string> names;
  network.ParametersAndNames();
  for (const Parameter& parameter : network.TrainableParams()) names.push_back(parameter.name());
  EXPECT_THAT(names, ::testing::ElementsAre("fc.weight", "fc.bias"));
  options.freeze = "layer9";
  EXPECT_THAT(ErrorOf(Freeze(options, network)), HasSubstr("no parameter below 'layer9'"));
  options.freeze = "";
  EXPECT_TRUE(Freeze(options, network).ok());
}

}  // namespace
}  // namespace mpc::tools
