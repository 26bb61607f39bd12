// Weights in the layout of another framework: loading them and saving them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "frontend/state/checkpoint.h"
#include "frontend/state/checkpoint_fit.h"
#include "frontend/state/safetensors.h"
#include "tests/frontend/error_of.h"
#include "tests/frontend/temporary_folder.h"
#include "tests/training/training_support.h"

namespace mpc {
namespace {

using ::testing::ElementsAre;
using testing::ErrorOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::TwoLayers;
using testing::Values;
using Entries = std::map<std::string, Tensor>;

/// 1, 2, 3, ... from `first` on.
Tensor Counted(Shape shape, float first = 1) {
  std::vector<float> values(static_cast<std::size_t>(NumElements(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i);
  return Tensor::From(values, std::move(shape));
}

/// What a network with these names saves and another one loads again.
testing::Snapshot ThroughAFile(TwoLayers& net, const NameMap& names) {
  const testing::TemporaryFolder folder;
  EXPECT_TRUE(SaveCheckpoint(net, folder / "x", {.names = names}).ok());
  SetSeed(99);
  TwoLayers loaded;
  EXPECT_TRUE(LoadParamIntoNet(loaded, folder / "x", {.names = names}).ok());
  return testing::ParametersOf(loaded);
}

/// The entries that `net` saves.
Entries Saved(nn::Cell& net, const NameMap& names) {
  const testing::TemporaryFolder folder;
  EXPECT_TRUE(SaveCheckpoint(net, folder / "x", {.names = names}).ok());
  const absl::StatusOr<Entries> entries = LoadCheckpoint(folder / "x");
  EXPECT_TRUE(entries.ok()) << entries.status();
  return entries.ok() ? *entries : Entries();
}

TEST(ForeignWeights, MatricesAreTransposedAndBiasesAreNot) {
  TwoLayers net;
  Entries entries = Saved(net, {});
  entries["fc1.weight"] = Counted({6, 8});
  ASSERT_TRUE(LoadParamIntoNet(net, entries, {.names = NameMap().Transpose("fc1")}).ok());
  const std::vector<float> weight = net.fc1.weight.Value()->ToFloats();
  for (std::size_t row = 0; row < 8; ++row) {
    for (std::size_t column = 0; column < 6; ++column) {
      EXPECT_EQ(weight[row * 6 + column], static_cast<float>(1 + column * 8 + row));
    }
  }
  EXPECT_EQ(Saved(net, NameMap().Transpose("fc1"))["fc1.weight"].ToFloats(), entries["fc1.weight"].ToFloats());
  EXPECT_EQ(ThroughAFile(net, NameMap().Transpose("")), testing::ParametersOf(net));
  EXPECT_THAT(ErrorOf(LoadParamIntoNet(net, Saved(net, {}), {.names = NameMap().Transpose("fc1")}).status()),
              HasSubstr("'fc1.weight' is tensor<8x6xf32> in the file, tensor<6x8xf32> in the network, with its axes "
                        "exchanged"));
}

TEST(ForeignWeights, EntriesAreJoinedAndCutAgain) {
  TwoLayers net;
  Entries entries = Saved(net, {});
  entries.erase("fc1.weight");
  entries.erase("fc1.bias");
  entries["q.weight"] = Counted({2, 6});
  entries["k.weight"] = Counted({6, 6}, 13);
  entries["q.bias"] = Counted({4});
  entries["k.bias"] = Counted({4}, 5);
  const NameMap names = NameMap().Join("fc1", {"q", "k"});
  ASSERT_TRUE(LoadParamIntoNet(net, entries, {.names = names}).ok());
  EXPECT_EQ(net.fc1.weight.Value()->ToFloats(), Counted({8, 6}).ToFloats());
  EXPECT_EQ(net.fc1.bias.Value()->ToFloats(), Counted({8}).ToFloats());
  Entries saved = Saved(net, names);
  EXPECT_EQ(saved["q.weight"].ToFloats(), Counted({4, 6}).ToFloats()) << "saving cuts into equal parts";
  EXPECT_EQ(saved["k.weight"].ToFloats(), Counted({4, 6}, 25).ToFloats());
  EXPECT_EQ(ThroughAFile(net, names), testing::ParametersOf(net));
  EXPECT_EQ(ThroughAFile(net, NameMap().Join("fc1", {"q", "k"}).Transpose("fc1")), testing::ParametersOf(net));
}

TEST(ForeignWeights, JoinedEntriesThatDoNotFitAreNamed) {
  TwoLayers net;
  Entries entries = Saved(net, {});
  entries.erase("fc1.weight");
  entries["q.weight"] = Counted({2, 6});
  entries["k.weight"] = Counted({5, 6});
  const NameMap names = NameMap().Join("fc1.weight", {"q.weight", "k.weight", "v.weight"});
  EXPECT_THAT(ErrorOf(LoadParamIntoNet(net, entries, {.names = names}).status()),
              HasSubstr("'v.weight' (fc1.weight) is missing"));
  entries["v.weight"] = Counted({2, 6});
  EXPECT_THAT(ErrorOf(LoadParamIntoNet(net, entries, {.names = names}).status()),
              HasSubstr("'q.weight', 'k.weight', 'v.weight' (fc1.weight) are tensor<2x6xf32>, tensor<5x6xf32>, "
                        "tensor<2x6xf32> in the file, tensor<8x6xf32> in the network"));
  const testing::TemporaryFolder folder;
  EXPECT_THAT(ErrorOf(SaveCheckpoint(net, folder / "x", {.names = names})),
              HasSubstr("'fc1.weight' is tensor<8x6xf32>, which the 3 entries 'q.weight', 'k.weight', 'v.weight' do "
                        "not share equally"));
}

TEST(ForeignWeights, JoinOfNoEntryIsRefused) {
  TwoLayers net;
  const Entries entries = Saved(net, {});
  const NameMap names = NameMap().Join("fc1", {});
  const char* const refused = "'fc1.weight' has no entry of a file: NameMap::Join was given none for its path";
  EXPECT_THAT(ErrorOf(LoadParamIntoNet(net, entries, {.names = names}).status()), HasSubstr(refused));
  const testing::TemporaryFolder folder;
  EXPECT_THAT(ErrorOf(SaveCheckpoint(net, folder / "x", {.names = names})), HasSubstr(refused));
  EXPECT_EQ(names.Foreign("fc1.weight"), "");
}

TEST(ForeignWeights, OneEntryIsSplitAndPutTogetherAgain) {
  TwoLayers net;
  Entries entries = Saved(net, {});
  const NameMap names = NameMap().Split({"fc1.bias", "fc2.bias"}, "biases");
  entries.erase("fc1.bias");
  entries.erase("fc2.bias");
  entries["biases"] = Counted({11});
  ASSERT_TRUE(LoadParamIntoNet(net, entries, {.names = names}).ok());
  EXPECT_EQ(net.fc1.bias.Value()->ToFloats(), Counted({8}).ToFloats());
  EXPECT_EQ(net.fc2.bias.Value()->ToFloats(), Counted({3}, 9).ToFloats());
  EXPECT_EQ(Saved(net, names)["biases"].ToFloats(), Counted({11}).ToFloats());
  entries["biases"] = Counted({12});
  EXPECT_THAT(ErrorOf(LoadParamIntoNet(net, entries, {.names = names}).status()),
              HasSubstr("'biases' (fc1.bias) is tensor<12xf32> in the file, tensor<11xf32> in the network in fc1.bias "
                        "and fc2.bias"));
}

TEST(ForeignWeights, AnEntryOfParametersThatAreNotHereIsAnError) {
  TwoLayers net;
  Entries entries = Saved(net, {});
  entries["biases"] = Counted({11});
  const NameMap names = NameMap().Split({"fc1.bias", "fc3.bias"}, "biases");
  EXPECT_THAT(ErrorOf(LoadParamIntoNet(net, entries, {.names = names}).status()),
              HasSubstr("'biases' (fc1.bias) has rows of 'fc3.bias', which TwoLayers does not have"));
  const testing::TemporaryFolder folder;
  EXPECT_THAT(ErrorOf(SaveCheckpoint(net, folder / "x", {.names = names})),
              HasSubstr("'biases' has rows of 'fc1.bias' and of parameters that TwoLayers does not have"));
}

TEST(ForeignWeights, PrefixesGoBothWays) {
  TwoLayers net;
  EXPECT_EQ(ThroughAFile(net, NameMap().Prefix("module")), testing::ParametersOf(net));
  Entries entries = Saved(net, NameMap().Prefix("module"));
  EXPECT_EQ(entries.count("module.fc1.weight"), 1u);
  EXPECT_THAT(ErrorOf(LoadParamIntoNet(net, entries).status()), HasSubstr("'module.fc1.weight' is no parameter"));
  EXPECT_TRUE(LoadParamIntoNet(net, entries, {.names = NameMap().Rename("", "module").OptionalPrefix("module")}).ok());
  EXPECT_TRUE(
      LoadParamIntoNet(net, Saved(net, {}), {.names = NameMap().Rename("", "module").OptionalPrefix("module")}).ok());
}

TEST(ForeignWeights, IgnoredEntriesAreNoSurprise) {
  TwoLayers net;
  Entries entries = Saved(net, {});
  entries["mask"] = Counted({3});
  EXPECT_FALSE(LoadParamIntoNet(net, entries).ok());
  const absl::StatusOr<LoadReport> report = LoadParamIntoNet(net, entries, {.names = NameMap().Ignore("mask")});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->unexpected, IsEmpty());
}

TEST(ForeignWeights, ARepeatedEntryMustBeTheSame) {
  TwoLayers net;
  Entries entries = Saved(net, {});
  const LoadOptions options = {.names = NameMap().Repeat("head", "fc1.bias")};
  entries["head"] = Tensor(entries["fc1.bias"]);
  EXPECT_TRUE(LoadParamIntoNet(net, entries, options).ok());
  entries["head"] = Counted({8});
  EXPECT_THAT(ErrorOf(LoadParamIntoNet(net, entries, options).status()),
              HasSubstr("'head' and 'fc1.bias' differ, but are one parameter of TwoLayers"));
  entries.erase("fc1.bias");
  ASSERT_TRUE(LoadParamIntoNet(net, entries, options).ok()) << "the file has the other one alone";
  EXPECT_EQ(net.fc1.bias.Value()->ToFloats(), Counted({8}).ToFloats());
}

TEST(ForeignWeights, TwoSpellingsOfOneEntryAreAnError) {
  TwoLayers net;
  Entries entries = Saved(net, {});
  entries["fc1.beta"] = Counted({8});
  EXPECT_THAT(ErrorOf(LoadParamIntoNet(net, entries, {.names = NameMap().Alias("fc1.beta", "fc1.bias")}).status()),
              HasSubstr("'fc1.beta' and 'fc1.bias' stand for the same parameter"));
  entries.erase("fc1.bias");
  ASSERT_TRUE(LoadParamIntoNet(net, entries, {.names = NameMap().Alias("fc1.beta", "fc1.bias")}).ok());
  EXPECT_EQ(net.fc1.bias.Value()->ToFloats(), Counted({8}).ToFloats());
}

TEST(ForeignWeights, FilteredParametersKeepTheirValues) {
  TwoLayers net;
  Entries entries = Saved(net, {});
  const std::vector<float> before = net.fc2.weight.Value()->ToFloats();
  entries["fc2.weight"] = Counted({10, 8});
  entries.erase("fc2.bias");
  const absl::StatusOr<LoadReport> report = LoadParamIntoNet(net, entries, {.filter_prefix = {"fc2"}});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->loaded, ElementsAre("fc1.weight", "fc1.bias"));
  EXPECT_THAT(report->unexpected, IsEmpty());
  EXPECT_EQ(net.fc2.weight.Value()->ToFloats(), before);
  EXPECT_FALSE(LoadParamIntoNet(net, entries, {.filter_prefix = {"fc"}}).ok()) << "whole parts only";
}

TEST(ForeignWeights, NanIsAnErrorByName) {
  TwoLayers net;
  Entries entries = Saved(net, {});
  const testing::Snapshot before = testing::ParametersOf(net);
  std::vector<float> values = Counted({8}).ToFloats();
  values[5] = std::numeric_limits<float>::quiet_NaN();
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64}) {
    entries["fc1.bias"] = Tensor::From(values, {8}).To(dtype);
    for (const bool strict : {true, false}) {
      EXPECT_THAT(ErrorOf(LoadParamIntoNet(net, entries, {.strict = strict}).status()),
                  HasSubstr("'fc1.bias' holds NaN, first at element 5"));
    }
  }
  EXPECT_EQ(testing::ParametersOf(net), before);
  values[5] = std::numeric_limits<float>::infinity();
  entries["fc1.bias"] = Tensor::From(values, {8});
  EXPECT_TRUE(LoadParamIntoNet(net, entries).ok()) << "infinity is a number";
}

TEST(ForeignWeights, AValueThatBecomesInfiniteIsAnErrorByNameAndElement) {
  TwoLayers net;
  Entries entries = Saved(net, {});
  const testing::Snapshot before = testing::ParametersOf(net);
  std::vector<double> values(8, 1);
  values[2] = std::numeric_limits<double>::infinity();
  values[5] = 1e300;
  entries["fc1.bias"] = Tensor::From(values, {8});
  EXPECT_THAT(ErrorOf(LoadParamIntoNet(net, entries).status()),
              HasSubstr("'fc1.bias' has values too large for f32, first 1e+300 at element 5"));
  EXPECT_EQ(testing::ParametersOf(net), before);
  values[5] = 1e30;
  entries["fc1.bias"] = Tensor::From(values, {8});
  MPC_EXPECT_OK(LoadParamIntoNet(net, entries).status());
}

TEST(ForeignWeights, AParameterThatIsStoredLowTakesNoLargerValue) {
  TwoLayers net;
  Entries entries = Saved(net, {});
  MPC_ASSERT_OK(net.fc2.bias.StoreLow(DType::kF16));
  entries["fc2.bias"] = Tensor::From(std::vector<float>{1, 65504, -1e5}, {3});
  EXPECT_THAT(ErrorOf(LoadParamIntoNet(net, entries).status()),
              HasSubstr("'fc2.bias' has values too large for f16, first -100000 at element 2"));
}

TEST(ForeignWeights, ACheckpointAtAnotherLevelLosesNoValueToInfinity) {
  TwoLayers net;
  MPC_ASSERT_OK(net.fc2.bias.StoreLow(DType::kF16));
  std::vector<Parameter> state;
  for (const auto& [name, parameter] : net.ParametersAndNames()) {
    if (name == "fc2.bias") state.push_back(parameter);
  }
  const Safetensors content{{{"fc2.bias", Tensor::From(std::vector<float>{testing::kInfinity, 1, 1e5}, {3})}}, {}};
  const internal::CheckpointFit fit = internal::FitCheckpoint(state, content, {}, {.same_level = false});
  EXPECT_THAT(fit.problems, ElementsAre("'fc2.bias' has values too large for f16, first 100000 at element 2"));
  EXPECT_THAT(fit.assignments, IsEmpty());
}

TEST(ForeignWeights, EveryProblemIsListedAtOnce) {
  TwoLayers net;
  Entries entries = Saved(net, {});
  entries["fc1.weight"] = Counted({8, 6}).To(DType::kI32);
  entries["fc1.bias"] = Tensor::Full({8}, std::nan(""));
  entries["fc2.weight"] = Counted({3, 9});
  entries.erase("fc2.bias");
  entries["other"] = Counted({1});
  const std::string error = ErrorOf(LoadParamIntoNet(net, entries).status());
  for (const char* part : {"'fc1.weight' is tensor<8x6xi32>", "'fc1.bias' holds NaN", "'fc2.weight' is tensor<3x9xf32>",
                           "'fc2.bias' is missing", "'other' is no parameter", "nothing was loaded"}) {
    EXPECT_THAT(error, HasSubstr(part));
  }
  EXPECT_THAT(error, Not(HasSubstr("two parameters")));
}

TEST(ForeignWeights, NamesThatDifferByAPrefixGetTheWayOut) {
  TwoLayers net;
  for (const char* prefix : {"module", "module.network"}) {
    const Entries entries = Saved(net, NameMap().Prefix(prefix));
    const std::string error = ErrorOf(LoadParamIntoNet(net, entries).status());
    EXPECT_THAT(error, HasSubstr(absl::StrCat("\nthe file's names begin with '", prefix, ".': NameMap::Prefix(\"",
                                              prefix, "\") of LoadOptions::names takes it away\nnothing was loaded")));
    EXPECT_TRUE(LoadParamIntoNet(net, entries, {.names = NameMap().Prefix(prefix)}).ok());
  }
  // The other way round: the network has the longer names.
  const Entries plain = Saved(net, NameMap().Rename("fc1", "1").Rename("fc2", "2"));
  const Entries inner = {{"weight", plain.at("1.weight")}, {"bias", plain.at("1.bias")}};
  const LoadOptions one_layer{.filter_prefix = {"fc2"}};
  EXPECT_THAT(
      ErrorOf(LoadParamIntoNet(net, inner, one_layer).status()),
      HasSubstr("the file's names lack 'fc1.': NameMap::Rename(\"fc1\", \"\") of LoadOptions::names leaves it out"));
  EXPECT_TRUE(LoadParamIntoNet(net, inner, {.names = NameMap().Rename("fc1", ""), .filter_prefix = {"fc2"}}).ok());
  EXPECT_THAT(ErrorOf(LoadParamIntoNet(net, Saved(net, {}), {.names = NameMap().Prefix("module")}).status()),
              HasSubstr("the file's names lack 'module.', which LoadOptions::names puts before those of the network"));
  // One name that the prefix does not explain: there is no advice.
  Entries others = Saved(net, NameMap().Prefix("module"));
  others.erase("module.fc1.bias");
  EXPECT_THAT(ErrorOf(LoadParamIntoNet(net, others).status()), Not(HasSubstr("the file's names")));
}

TEST(ForeignWeights, LowFilesAreWrittenAndWidened) {
  const testing::TemporaryFolder folder;
  TwoLayers net;
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    MPC_ASSERT_OK(SaveCheckpoint(net, folder / "low", {.dtype = dtype}));
    const absl::StatusOr<Entries> entries = LoadCheckpoint(folder / "low");
    ASSERT_TRUE(entries.ok()) << entries.status();
    EXPECT_EQ(entries->at("fc1.weight").dtype(), dtype);
    TwoLayers loaded;
    ASSERT_TRUE(LoadParamIntoNet(loaded, folder / "low").ok());
    EXPECT_EQ(loaded.fc1.weight.dtype(), DType::kF32);
    EXPECT_EQ(loaded.fc1.weight.Value()->ToFloats(), net.fc1.weight.Value()->To(dtype).ToFloats());
  }
}

TEST(ForeignWeights, ALowTypeThatIsTooSmallIsAnError) {
  const testing::TemporaryFolder folder;
  TwoLayers net;
  MPC_ASSERT_OK(net.fc2.bias.SetData(Tensor::Full({3}, 1e5)));
  EXPECT_THAT(ErrorOf(SaveCheckpoint(net, folder / "x", {.dtype = DType::kF16})),
              HasSubstr("'fc2.bias' has values too large for f16"));
  MPC_EXPECT_OK(SaveCheckpoint(net, folder / "x", {.dtype = DType::kBF16}));
  MPC_ASSERT_OK(net.fc2.bias.SetData(Tensor::From(std::vector<float>{testing::kInfinity, 1e5, 1}, {3})));
  EXPECT_THAT(ErrorOf(SaveCheckpoint(net, folder / "x", {.dtype = DType::kF16})),
              HasSubstr("'fc2.bias' has values too large for f16, first 100000 at element 1"))
      << "one infinity hides no other";
  EXPECT_THAT(ErrorOf(SaveCheckpoint(net, folder / "x", {.dtype = DType::kI32})),
              HasSubstr("dtype i32 is no floating type"));
}

TEST(ForeignWeights, TwoParametersOfOneEntryAreAnError) {
  TwoLayers net;
  const NameMap names = NameMap().Rename("fc2.bias", "fc1.bias");
  EXPECT_THAT(ErrorOf(LoadParamIntoNet(net, Saved(net, {}), {.names = names}).status()),
              HasSubstr("'fc1.bias' (fc2.bias) stands for two parameters"));
}

}  // namespace
}  // namespace mpc
