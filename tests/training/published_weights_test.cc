// Weights that torchvision, transformers and timm saved: logits are theirs, and what is saved again is their file.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "frontend/state/safetensors.h"
#include "models/bert.h"
#include "models/gpt2.h"
#include "models/resnet.h"
#include "models/vit.h"
#include "tests/frontend/error_of.h"
#include "tests/frontend/temporary_folder.h"
#include "tests/training/training_support.h"

namespace mpc::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kTolerance = 1e-5;

std::string Golden(const std::string& name) { return absl::StrCat(MPC_GOLDENS, "/published/", name); }

/// The sizes in tools/parity/make_published_goldens.py.
models::Gpt2Config SmallGpt2() {
  return {.vocabulary = 64, .context = 16, .width = 16, .layers = 2, .heads = 2, .epsilon = 1e-3};
}
models::BertConfig SmallBert() { return {.vocabulary = 64, .context = 16, .width = 16, .layers = 2, .heads = 2}; }
models::VitConfig SmallVit() {
  return {.image_size = 16, .patch_size = 4, .classes = 5, .width = 16, .layers = 2, .heads = 2};
}
models::ResNetOptions SmallResNet() { return {.num_classes = 5, .width = 2}; }

/// Compares the logits of `net` with those that the library has computed.
template <typename Network>
void ExpectLogits(Network& net, const std::string& golden) {
  const absl::StatusOr<Safetensors> expected = LoadSafetensors(Golden(golden) + "/expected.safetensors");
  ASSERT_TRUE(expected.ok()) << expected.status();
  Model predictor(net);
  const absl::StatusOr<Tensor> logits = predictor.Predict(*expected->Find("input"));
  ASSERT_TRUE(logits.ok()) << logits.status();
  const std::vector<float> actual = logits->ToFloats();
  const std::vector<float> wanted = expected->Find("logits")->ToFloats();
  ASSERT_EQ(actual.size(), wanted.size());
  double largest = 0;
  double difference = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(wanted[i])));
    difference = std::max(difference, std::abs(static_cast<double>(actual[i]) - wanted[i]));
  }
  EXPECT_LE(difference, kTolerance) << "of logits up to " << largest;
  EXPECT_GT(largest, 0.1) << "logits say something";
}

/// Saves `net` and compares the entries with those of the library's file, but for what a network here does not have.
void ExpectTheSameFile(nn::Cell& net, const std::string& golden, const std::string& preset) {
  const TemporaryFolder folder;
  MPC_ASSERT_OK(SaveCheckpoint(net, folder / "x", preset));
  const absl::StatusOr<Safetensors> saved = LoadSafetensors(folder / "x");
  const absl::StatusOr<Safetensors> theirs = LoadSafetensors(Golden(golden) + "/model.safetensors");
  const absl::StatusOr<NameMap> names = NameMap::Preset(preset);
  ASSERT_TRUE(saved.ok() && theirs.ok() && names.ok());
  EXPECT_EQ(saved->metadata.at("format"), "pt") << "transformers asks for it";
  std::size_t kept = 0;
  for (const auto& entry : theirs->tensors) {
    const std::string& name = entry.first;
    const Tensor& tensor = entry.second;
    const auto repeats = names->Repeats();
    const bool repeated =
        std::any_of(repeats.begin(), repeats.end(), [&](const auto& repeat) { return repeat.first == name; });
    if (repeated || names->Ignores(name)) continue;
    ++kept;
    const Tensor* const found = saved->Find(name);
    ASSERT_NE(found, nullptr) << name;
    EXPECT_EQ(found->To(tensor.dtype()).spec(), tensor.spec()) << name;
    EXPECT_EQ(found->To(tensor.dtype()).bytes(), tensor.bytes()) << name;
  }
  EXPECT_EQ(saved->tensors.size(), kept);
}

/// Has the library load what is saved here. `libraries` are those that the script imports.
void ExpectTheLibraryLoads(nn::Cell& net, const std::string& golden, const std::string& preset,
                           const std::string& libraries = "torchvision, transformers") {
  const char* const chosen = std::getenv("MPC_PYTHON");
  const std::string python = chosen != nullptr ? chosen : "python3";
  if (std::system((python + " -c 'import " + libraries + "' >/dev/null 2>&1").c_str()) != 0) {
    GTEST_SKIP() << python << " does not have all of " << libraries << "; MPC_PYTHON names another interpreter";
  }
  const TemporaryFolder folder;
  MPC_ASSERT_OK(SaveCheckpoint(net, folder / "model.safetensors", preset));
  const std::string command = absl::StrCat("HF_HUB_OFFLINE=1 ", python, " ", MPC_PARITY, "/check_published_exports.py ",
                                           golden, " ", Golden(golden), " ", folder / "model.safetensors");
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

TEST(PublishedWeights, TorchvisionsResNets) {
  models::ResNet18 resnet18(SmallResNet());
  ASSERT_TRUE(LoadParamIntoNet(resnet18, Golden("resnet18"), "torchvision/resnet18").ok());
  ExpectLogits(resnet18, "resnet18");
  ExpectTheSameFile(resnet18, "resnet18", "torchvision/resnet18");
  models::ResNet50 resnet50(SmallResNet());
  ASSERT_TRUE(LoadParamIntoNet(resnet50, Golden("resnet50"), "torchvision/resnet50").ok()) << "stored in f16";
  ExpectLogits(resnet50, "resnet50");
  ExpectTheSameFile(resnet50, "resnet50", "torchvision/resnet50");
}

TEST(PublishedWeights, TransformersGpt2) {
  models::Gpt2 net(SmallGpt2());
  const absl::StatusOr<LoadReport> report =
      LoadParamIntoNet(net, Golden("gpt2") + "/model.safetensors", "huggingface/gpt2");
  ASSERT_TRUE(report.ok()) << report.status();
  ExpectLogits(net, "gpt2");
  ExpectTheSameFile(net, "gpt2", "huggingface/gpt2");
}

TEST(PublishedWeights, TransformersBert) {
  models::Bert net(SmallBert());
  const absl::StatusOr<LoadReport> report =
      LoadParamIntoNet(net, Golden("bert") + "/model.safetensors", "huggingface/bert");
  ASSERT_TRUE(report.ok()) << report.status();
  ExpectLogits(net, "bert");
  ExpectTheSameFile(net, "bert", "huggingface/bert");
}

TEST(PublishedWeights, TimmsVit) {
  models::Vit net(SmallVit());
  const absl::StatusOr<LoadReport> report = LoadParamIntoNet(net, Golden("vit"), "timm/vit");
  ASSERT_TRUE(report.ok()) << report.status();
  ExpectLogits(net, "vit");
  ExpectTheSameFile(net, "vit", "timm/vit");
}

TEST(PublishedWeights, AFolderHasItsOwnSizesAndShards) {
  for (const char* golden : {"gpt2", "gpt2_shards"}) {
    absl::StatusOr<models::Gpt2> net = models::Gpt2::FromFolder(Golden(golden));
    ASSERT_TRUE(net.ok()) << net.status();
    ExpectLogits(*net, golden);
  }
  EXPECT_FALSE(fs::exists(Golden("gpt2_shards") + "/model.safetensors"));
}

TEST(PublishedWeights, TorchvisionLoadsWhatIsSavedHere) {
  models::ResNet18 net(SmallResNet());
  ASSERT_TRUE(LoadParamIntoNet(net, Golden("resnet18"), "torchvision/resnet18").ok());
  ExpectTheLibraryLoads(net, "resnet18", "torchvision/resnet18");
}

TEST(PublishedWeights, TransformersLoadsTheGpt2ThatIsSavedHere) {
  models::Gpt2 net(SmallGpt2());
  ASSERT_TRUE(LoadParamIntoNet(net, Golden("gpt2"), "huggingface/gpt2").ok());
  ExpectTheLibraryLoads(net, "gpt2", "huggingface/gpt2");
}

TEST(PublishedWeights, TransformersLoadsTheBertThatIsSavedHere) {
  models::Bert net(SmallBert());
  ASSERT_TRUE(LoadParamIntoNet(net, Golden("bert"), "huggingface/bert").ok());
  ExpectTheLibraryLoads(net, "bert", "huggingface/bert");
}

TEST(PublishedWeights, TimmLoadsTheVitThatIsSavedHere) {
  models::Vit net(SmallVit());
  ASSERT_TRUE(LoadParamIntoNet(net, Golden("vit"), "timm/vit").ok());
  ExpectTheLibraryLoads(net, "vit", "timm/vit", "torchvision, transformers, timm");
}

TEST(PublishedWeights, NamesWithoutTheOptionalPrefixAndWithTheHeadLoadToo) {
  models::Gpt2 net(SmallGpt2());
  absl::StatusOr<std::map<std::string, Tensor>> with = LoadCheckpoint(Golden("gpt2"));
  ASSERT_TRUE(with.ok()) << with.status();
  std::map<std::string, Tensor> entries;
  for (const auto& [name, tensor] : *with) entries[name.substr(std::string("transformer.").size())] = tensor;
  entries["lm_head.weight"] = entries["wte.weight"];
  entries["h.0.attn.bias"] = Tensor::Zeros({1, 1, 16, 16});
  const absl::StatusOr<NameMap> names = NameMap::Preset("huggingface/gpt2");
  ASSERT_TRUE(names.ok());
  const absl::StatusOr<LoadReport> report = LoadParamIntoNet(net, entries, {.names = *names});
  ASSERT_TRUE(report.ok()) << report.status();
  ExpectLogits(net, "gpt2");
  entries["lm_head.weight"] = Tensor::Zeros({64, 16});
  EXPECT_THAT(ErrorOf(LoadParamIntoNet(net, entries, {.names = *names}).status()),
              HasSubstr("'lm_head.weight' and 'wte.weight' differ, but are one parameter of Gpt2"));
}

TEST(PublishedWeights, TheSpellingsOfPublishedBertLoadToo) {
  models::Bert net(SmallBert());
  const absl::StatusOr<std::map<std::string, Tensor>> theirs = LoadCheckpoint(Golden("bert"));
  ASSERT_TRUE(theirs.ok()) << theirs.status();
  constexpr std::pair<const char*, const char*> kSpellings[] = {{"LayerNorm.weight", "LayerNorm.gamma"},
                                                                {"LayerNorm.bias", "LayerNorm.beta"}};
  std::map<std::string, Tensor> entries;
  for (const auto& [own, tensor] : *theirs) {
    std::string name = own;
    for (const auto& [now, before] : kSpellings) {
      if (const std::size_t at = name.find(now); at != std::string::npos)
        name.replace(at, std::string(now).size(), before);
    }
    entries[name] = tensor;
  }
  entries["bert.pooler.dense.weight"] = Tensor::Zeros({16, 16});
  entries["cls.seq_relationship.bias"] = Tensor::Zeros({2});
  const absl::StatusOr<LoadReport> report =
      LoadParamIntoNet(net, entries, {.names = *NameMap::Preset("huggingface/bert")});
  ASSERT_TRUE(report.ok()) << report.status();
  ExpectLogits(net, "bert");
}

TEST(PublishedWeights, ThoseOfAnotherNetworkAreListedByName) {
  models::Gpt2 gpt2(SmallGpt2());
  EXPECT_THAT(ErrorOf(LoadParamIntoNet(gpt2, Golden("bert"), "huggingface/gpt2").status()),
              AllOf(HasSubstr("'transformer.wte.weight' (tokens.embedding_table) is missing"),
                    HasSubstr("'bert.embeddings.word_embeddings.weight' is no parameter of Gpt2"),
                    HasSubstr("nothing was loaded")));
  models::ResNet18 resnet18(SmallResNet());
  EXPECT_THAT(ErrorOf(LoadParamIntoNet(resnet18, Golden("resnet50"), "torchvision/resnet18").status()),
              AllOf(HasSubstr("'layer1.0.conv1.weight' is tensor<2x2x1x1xf16> in the file, tensor<2x2x3x3xf32>"),
                    HasSubstr("'layer1.2.conv1.weight' is no parameter of ResNet18"), Not(HasSubstr("num_batches"))));
}

TEST(PublishedWeights, AnUnknownPresetNamesThoseThatExist) {
  models::Gpt2 net(SmallGpt2());
  EXPECT_THAT(ErrorOf(LoadParamIntoNet(net, Golden("gpt2"), "huggingface/gpt3").status()),
              HasSubstr("unknown preset of names 'huggingface/gpt3'; choose huggingface/bert, huggingface/gpt2, "
                        "timm/vit, torchvision/resnet18, torchvision/resnet50"));
  EXPECT_FALSE(SaveCheckpoint(net, "x", "none").ok());
}

}  // namespace
}  // namespace mpc::testing
