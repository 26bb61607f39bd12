// Paths that a user gives: of tied Parameters, with a dot behind them, and of nothing in the network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "frontend/state/checkpoint.h"
#include "tests/frontend/error_of.h"
#include "tests/frontend/temporary_folder.h"
#include "tests/training/training_support.h"

namespace mpc {
namespace {

using ::testing::ElementsAre;
using testing::ErrorOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TwoLayers;
using Entries = std::map<std::string, Tensor>;

/// Two square layers, whose matrices fit either way round.
class SquareLayers : public nn::Cell {
 public:
  MPC_CELL(SquareLayers, a, b)
  Tensor Construct(Tensor x) { return b(a(x)); }
  nn::Dense a{2, 2}, b{2, 2};
};

/// A head whose matrix is the token table.
class TiedHead : public nn::Cell {
 public:
  MPC_CELL(TiedHead, tok, head)
  TiedHead() { head.weight = tok.embedding_table; }
  Tensor Construct(Tensor x) { return head(tok(x)); }
  nn::Embedding tok{9, 6};
  nn::Dense head{6, 9};
};

std::vector<std::string> TrainableNames(nn::Cell& net) {
  std::vector<std::string> names;
  for (const Parameter& parameter : net.TrainableParams()) names.push_back(parameter.name());
  return names;
}

/// What is in the file that `net` saves.
Entries EntriesOf(nn::Cell& net, const NameMap& names = {}) {
  const testing::TemporaryFolder folder;
  MPC_EXPECT_OK(SaveCheckpoint(net, folder / "x", {.names = names}));
  absl::StatusOr<Entries> entries = LoadCheckpoint(folder / "x");
  return entries.ok() ? *std::move(entries) : Entries();
}

std::vector<std::string> SavedNames(nn::Cell& net, const NameMap& names) {
  std::vector<std::string> saved;
  for (const auto& [name, tensor] : EntriesOf(net, names)) saved.push_back(name);
  return saved;
}

TEST(ParameterPaths, AnEntryThatIsTransposedForSomeOfItsParametersIsRefused) {
  SquareLayers net;
  const NameMap split = NameMap().Split({"a", "b"}, "ab");
  const testing::TemporaryFolder folder;
  for (const char* path : {"a", "b", "a.weight"}) {
    const std::string other = path[0] == 'a' ? "b" : "a";
    const NameMap names = NameMap(split).Transpose(path);
    const std::string refused =
        "'ab.weight' is transposed for '" + std::string(1, path[0]) + ".weight' and not for '" + other + ".weight'";
    EXPECT_THAT(ErrorOf(SaveCheckpoint(net, folder / "x", {.names = names})), HasSubstr(refused));
    const testing::Snapshot before = testing::ParametersOf(net);
    const std::string error = ErrorOf(LoadParamIntoNet(net, EntriesOf(net, split), {.names = names}).status());
    EXPECT_THAT(error, HasSubstr(refused));
    EXPECT_EQ(error.find("is transposed"), error.rfind("is transposed")) << "once for both";
    EXPECT_THAT(error, Not(HasSubstr("is no parameter")));
    EXPECT_EQ(testing::ParametersOf(net), before);
  }
}

TEST(ParameterPaths, SplitEntriesThatAreAllTransposedLoadAgain) {
  for (const NameMap& names : {NameMap().Split({"a", "b"}, "ab").Transpose("a").Transpose("b"),
                               NameMap().Split({"a.", "b."}, "ab.").Transpose("a.").Transpose("b."),
                               NameMap().Split({"a", "b"}, "ab").Transpose("a.bias")}) {
    SetSeed(5);
    SquareLayers net;
    const Entries entries = EntriesOf(net, names);
    SquareLayers loaded;
    MPC_ASSERT_OK(LoadParamIntoNet(loaded, entries, {.names = names}).status());
    EXPECT_EQ(testing::ParametersOf(loaded), testing::ParametersOf(net));
  }
}

TEST(ParameterPaths, OfNothingInTheNetworkAreNoFilter) {
  TwoLayers net;
  const Entries entries = EntriesOf(net);
  const testing::Snapshot before = testing::ParametersOf(net);
  for (const bool strict : {true, false}) {
    for (const char* path : {"fc", "fc3", "fc2.", "fc2.weigh", "."}) {
      const absl::StatusOr<LoadReport> report =
          LoadParamIntoNet(net, entries, {.strict = strict, .filter_prefix = {"fc1", path}});
      if (std::string(path) == "fc2.") {
        MPC_ASSERT_OK(report.status());
        EXPECT_THAT(report->loaded, ElementsAre());
        continue;
      }
      EXPECT_THAT(ErrorOf(report.status()),
                  HasSubstr("LoadOptions::filter_prefix has '" + std::string(path) +
                            "', which names no parameter of TwoLayers; a path ends where a name ends, and the names "
                            "are fc1.weight, fc1.bias, fc2.weight, fc2.bias\nnothing was loaded"));
    }
  }
  EXPECT_EQ(testing::ParametersOf(net), before);
  EXPECT_THAT(ErrorOf(LoadParamIntoNet(net, entries, {.filter_prefix = {"x", "y"}}).status()),
              HasSubstr("filter_prefix has 'x', 'y', which name no parameter of TwoLayers"));
}

TEST(ParameterPaths, OfNothingInTheNetworkHaveNoNamesInAFile) {
  TwoLayers net;
  const testing::TemporaryFolder folder;
  for (const NameMap& names : {NameMap().Rename("fc3", "x"), NameMap().Join("fc3", {"x", "y"}),
                               NameMap().Transpose("fc3."), NameMap().Split({"fc3", "fc4"}, "x")}) {
    const std::string error = ErrorOf(LoadParamIntoNet(net, EntriesOf(net), {.names = names}).status());
    EXPECT_THAT(error, HasSubstr("NameMap has 'fc3'"));
    EXPECT_THAT(error, HasSubstr("no parameter of TwoLayers; a path ends where a name ends, and the names are fc1."));
    EXPECT_THAT(ErrorOf(SaveCheckpoint(net, folder / "x", {.names = names})), HasSubstr("NameMap has 'fc3'"));
  }
  MPC_EXPECT_OK(SaveCheckpoint(net, folder / "x", {.names = NameMap().Rename("", "x").Rename("*.bias", "*.b")}));
  MPC_EXPECT_OK(SaveCheckpoint(net, folder / "x", {.names = NameMap().Prefix("x").Ignore("fc3")}));
  // A preset has paths that not every network of its family has.
  MPC_EXPECT_OK(SaveCheckpoint(net, folder / "x", {.names = *NameMap::Preset("huggingface/bert")}));
  EXPECT_THAT(ErrorOf(SaveCheckpoint(net, folder / "x", {.names = NameMap::Preset("timm/vit")->Rename("fc3", "x")})),
              HasSubstr("NameMap has 'fc3', which names no parameter"));
}

TEST(ParameterPaths, MayEndInADot) {
  SquareLayers net;
  EXPECT_THAT(SavedNames(net, NameMap().Prefix("module.")),
              ElementsAre("module.a.bias", "module.a.weight", "module.b.bias", "module.b.weight"));
  for (const NameMap& names :
       {NameMap().Rename("a.", "x."), NameMap().Rename("a", "x."), NameMap().Rename("a.", "x")}) {
    EXPECT_THAT(SavedNames(net, names), ElementsAre("b.bias", "b.weight", "x.bias", "x.weight"));
  }
  EXPECT_THAT(SavedNames(net, NameMap().Join("a.", {"q.", "k."})),
              ElementsAre("b.bias", "b.weight", "k.bias", "k.weight", "q.bias", "q.weight"));
  Entries entries = EntriesOf(net);
  entries["mask.x"] = Tensor::Scalar(1.0f);
  const NameMap module = NameMap().Rename("", "module.").OptionalPrefix("module.").Ignore("module.mask.");
  MPC_EXPECT_OK(LoadParamIntoNet(net, entries, {.names = module}).status());
  MPC_EXPECT_OK(LoadParamIntoNet(net, EntriesOf(net, NameMap().Prefix("module")), {.names = module}).status());
  MPC_EXPECT_OK(net.SetRequiresGrad("a.", false));
  EXPECT_THAT(TrainableNames(net), ElementsAre("b.weight", "b.bias"));
}

TEST(ParameterPaths, ATiedParameterIsFrozenByAnyOfThem) {
  TiedHead net;
  for (const char* path : {"head", "head.", "head.weight", "tok", "tok.embedding_table"}) {
    MPC_ASSERT_OK(net.SetRequiresGrad(path, false));
    EXPECT_FALSE(net.tok.embedding_table.requires_grad()) << path;
    EXPECT_EQ(net.head.bias.requires_grad(), std::string(path) != "head" && std::string(path) != "head.") << path;
    MPC_ASSERT_OK(net.SetRequiresGrad("", true));
    EXPECT_THAT(TrainableNames(net), ElementsAre("tok.embedding_table", "head.bias"));
  }
  EXPECT_EQ(net.SetRequiresGrad("head.weigh", false).code(), absl::StatusCode::kNotFound);
}

TEST(ParameterPaths, ATiedParameterIsReadAndSetByAnyOfThem) {
  TiedHead net;
  const absl::StatusOr<Parameter> weight = net.GetParameter("head.weight");
  MPC_ASSERT_OK(weight.status());
  EXPECT_TRUE(*weight == net.tok.embedding_table);
  EXPECT_EQ(weight->name(), "tok.embedding_table") << "the first path is its name";
  MPC_EXPECT_OK(net.SetParameter("head.weight", Tensor::Full({9, 6}, 2.0)));
  EXPECT_EQ(net.tok.embedding_table.Value()->ToFloats(), std::vector<float>(54, 2.0f));
  EXPECT_THAT(std::string(net.GetParameter("head.gamma").status().message()),
              HasSubstr("TiedHead has no parameter 'head.gamma'; it has tok.embedding_table, head.bias"));
}

TEST(ParameterPaths, ATiedParameterIsLoadedByAnyOfThem) {
  TiedHead net;
  const Tensor table = testing::Values({9, 6}, 3);
  Entries entries = EntriesOf(net);
  entries["tok.embedding_table"] = entries["head.weight"] = table;
  absl::StatusOr<LoadReport> report = LoadParamIntoNet(net, entries);
  MPC_ASSERT_OK(report.status());
  EXPECT_THAT(report->loaded, ElementsAre("tok.embedding_table", "head.bias"));
  EXPECT_TRUE(report->unexpected.empty());
  EXPECT_EQ(net.tok.embedding_table.Value()->ToFloats(), table.ToFloats());
  for (const char* path : {"tok", "head.weight"}) {
    MPC_EXPECT_OK(LoadParamIntoNet(net, entries, {.filter_prefix = {path}}).status());
  }
  entries["head.weight"] = testing::Values({9, 6}, 4);
  EXPECT_THAT(ErrorOf(LoadParamIntoNet(net, entries).status()),
              HasSubstr("'head.weight' and 'tok.embedding_table' differ, but are one parameter of TiedHead"));
  EXPECT_EQ(net.tok.embedding_table.Value()->ToFloats(), table.ToFloats());
  entries.erase("tok.embedding_table");
  MPC_ASSERT_OK(LoadParamIntoNet(net, entries).status());
  EXPECT_EQ(net.tok.embedding_table.Value()->ToFloats(), entries["head.weight"].ToFloats());
}

TEST(ParameterPaths, ATiedParameterIsLeftOutByAnyOfThem) {
  TiedHead net;
  const Entries entries = EntriesOf(net);
  for (const char* path : {"head", "head.weight", "tok."}) {
    const absl::StatusOr<LoadReport> report = LoadParamIntoNet(net, entries, {.filter_prefix = {path}});
    MPC_ASSERT_OK(report.status());
    const bool takes_bias = std::string(path) != "head";
    EXPECT_EQ(report->loaded, takes_bias ? std::vector<std::string>{"head.bias"} : std::vector<std::string>()) << path;
  }
  EXPECT_THAT(ErrorOf(LoadParamIntoNet(net, entries, {.names = NameMap().Rename("head.weight", "x")}).status()),
              HasSubstr("; 'head.weight' is tied to 'tok.embedding_table', which is its name"));
}

}  // namespace
}  // namespace mpc
