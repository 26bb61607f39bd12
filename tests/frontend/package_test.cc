// The Programs of every model as a package: nothing is lost on the way, and a run from it gives the Model's bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "absl/strings/match.h"
#include "frontend/state/package_state.h"
#include "frontend/state/safetensors.h"
#include "models/registry.h"
#include "runtime/program_file.h"
#include "tests/frontend/temporary_folder.h"
#include "tests/runtime/package_equality.h"

namespace mpc {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFolder;

constexpr std::int64_t kBatch = 4;
constexpr std::uint64_t kSeed = 3;

/// A Model of a workload, made anew from the seed.
struct Trained {
  Trained(const std::string& name, const ModelOptions& options) {
    SetSeed(kSeed);
    workload = models::MakeWorkload(name).value();
    optimizer =
        std::make_unique<nn::Adam>(workload->network().TrainableParams(), nn::AdamOptions{.learning_rate = 1e-3});
    model = std::make_unique<Model>(workload->MakeModel(*optimizer, options));
  }
  std::vector<std::pair<std::string, TensorSpec>> Columns() const {
    const std::vector<TensorSpec> specs = workload->TrainInputs(kBatch);
    return {{"data", specs[0]}, {"label", specs[1]}};
  }
  /// Small integers and numbers, the same for every call.
  data::Row Batch() const {
    data::Row row;
    for (const TensorSpec& spec : workload->TrainInputs(kBatch)) {
      std::vector<float> values(static_cast<std::size_t>(spec.num_elements()));
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = IsFloating(spec.dtype) ? static_cast<float>(i % 17) / 8 - 1 : static_cast<float>(i % 7);
      }
      row.push_back(Tensor::From(values, spec.shape).To(spec.dtype));
    }
    return row;
  }

  std::unique_ptr<models::Workload> workload;
  std::unique_ptr<nn::Optimizer> optimizer;
  std::unique_ptr<Model> model;
};

std::vector<std::string> AllWorkloads() { return models::WorkloadNames(); }

bool IsLarge(const std::string& name) {
  return name == "bert" || name == "gpt2" || absl::StrContains(name, "imagenet") || absl::StrContains(name, "_224");
}

class EveryModel : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  const std::string& name() const { return std::get<0>(GetParam()); }
  ModelOptions Options() const {
    ModelOptions options;
    options.amp.level = std::get<1>(GetParam());
    options.amp.verbosity = 0;
    return options;
  }
  void ExpectRoundTrip(const runtime::Package& package) {
    const absl::StatusOr<std::vector<std::uint8_t>> bytes = runtime::SerializePackage(package);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const absl::StatusOr<runtime::Package> read = runtime::ParsePackage(*bytes, name());
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(runtime::SamePackage(*read, package));
    // Weights would be larger: the file grows with the instructions and their generated code alone.
    std::size_t instructions = 0, code = 0;
    for (const runtime::Program& program : package.programs) {
      instructions += program.step().instructions.size();
      for (const runtime::CodeBlob& blob : program.code) code += blob.bytes.size();
    }
    EXPECT_LT(bytes->size(), 64'000 + 1'000 * instructions + code);
  }
};

TEST_P(EveryModel, ComesBackAsItWas) {
  const Trained trained(name(), Options());
  const absl::StatusOr<runtime::Package> package = trained.model->MakePackage(trained.Columns());
  ASSERT_TRUE(package.ok()) << package.status();
  std::vector<std::string> programs;
  for (const runtime::Program& program : package->programs) programs.push_back(program.name);
  EXPECT_THAT(programs, ::testing::ElementsAre("train_step", "eval_step", "predict"));
  ExpectRoundTrip(*package);
}

TEST_P(EveryModel, ComesBackAsItWasForAGpuThatIsNotHere) {
  for (const std::string arch : {"sm_80", "sm_90"}) {
    if (const absl::Status status = runtime::GetTarget("cuda", arch).status(); !status.ok()) {
      ASSERT_FALSE(MPC_COMPILES_FOR_CUDA) << status;
      GTEST_SKIP() << status.message();
    }
    ASSERT_TRUE(SetContext({.device = "cuda", .arch = arch}).ok());
    const Trained trained(name(), Options());
    const absl::StatusOr<runtime::Package> package = trained.model->MakePackage(trained.Columns());
    ASSERT_TRUE(SetContext({}).ok());
    ASSERT_TRUE(package.ok()) << package.status();
    for (const runtime::Program& program : package->programs) {
      EXPECT_EQ(program.device, "cuda");
      EXPECT_EQ(program.arch, arch);
    }
    for (const runtime::InitialDraw& draw : package->draws) EXPECT_EQ(draw.program.device, "cpu");
    ExpectRoundTrip(*package);
  }
}

TEST_P(EveryModel, RunsFromThePackageBitForBitAsFromTheModel) {
  if (IsLarge(name())) GTEST_SKIP() << "the same code as its small relatives";
  Trained trained(name(), Options());
  const absl::StatusOr<runtime::Package> made = trained.model->MakePackage(trained.Columns());
  ASSERT_TRUE(made.ok()) << made.status();
  const runtime::Package package = runtime::ParsePackage(runtime::SerializePackage(*made).value(), name()).value();

  const data::Row batch = trained.Batch();
  const absl::StatusOr<runtime::Executable*> of_model = trained.model->LoadTrainStep(batch);
  ASSERT_TRUE(of_model.ok()) << of_model.status();
  const absl::StatusOr<runtime::StateStore> state = MakeInitialState(package);
  ASSERT_TRUE(state.ok()) << state.status();
  for (const auto& entry : state->entries()) {
    if (entry->role() == Role::kDerived) continue;
    const Parameter parameter = trained.model->State(entry->name());
    ASSERT_TRUE(parameter.defined()) << entry->name();
    EXPECT_EQ(std::memcmp(parameter.entry()->data(), entry->data(), entry->spec().bytes()), 0) << entry->name();
  }
  const runtime::Device* device = runtime::GetDevice("cpu").value();
  const absl::StatusOr<std::unique_ptr<runtime::Executable>> of_package =
      device->Load(std::make_shared<const runtime::Program>(*package.Find("train_step")), *state);
  ASSERT_TRUE(of_package.ok()) << of_package.status();

  const std::vector<absl::Span<const std::uint8_t>> inputs = {batch[0].bytes(), batch[1].bytes()};
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE((*of_model)->Run(inputs).ok());
    ASSERT_TRUE((*of_package)->Run(inputs).ok());
    EXPECT_EQ((*of_model)->output(0), (*of_package)->output(0)) << "loss of step " << step;
  }
  for (const auto& entry : state->entries()) {
    if (entry->role() == Role::kDerived) continue;
    const Parameter parameter = trained.model->State(entry->name());
    EXPECT_EQ(std::memcmp(parameter.entry()->data(), entry->data(), entry->spec().bytes()), 0) << entry->name();
  }
}

INSTANTIATE_TEST_SUITE_P(Package, EveryModel,
                         ::testing::Combine(::testing::ValuesIn(AllWorkloads()), ::testing::Values("O0", "O1", "O3")),
                         [](const auto& info) {
                           std::string name = std::get<0>(info.param) + std::get<1>(info.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Package, HasTheStateThatPassesAdd) {
  ModelOptions options;
  options.amp.level = "O2";
  options.amp.verbosity = 0;
  options.accumulation_steps = 2;
  const Trained trained("mlp", options);
  const absl::StatusOr<runtime::Package> package = trained.model->MakePackage(trained.Columns());
  ASSERT_TRUE(package.ok()) << package.status();
  const absl::StatusOr<runtime::StateStore> state = MakeInitialState(*package);
  ASSERT_TRUE(state.ok()) << state.status();
  std::map<Role, int> roles;
  for (const auto& entry : state->entries()) {
    ++roles[entry->role()];
    EXPECT_EQ(entry->initialised(), entry->role() != Role::kDerived) << entry->name();
  }
  EXPECT_GT(roles[Role::kAccumulator], 0);
  EXPECT_GT(roles[Role::kDerived], 0);
  EXPECT_GT(roles[Role::kScaler], 0);
}

TEST(Package, ParametersWithoutMastersBeginRounded) {
  ModelOptions options;
  options.amp.level = "O3";
  options.amp.master_weights = false;
  options.amp.verbosity = 0;
  const Trained trained("mlp", options);
  const absl::StatusOr<runtime::Package> package = trained.model->MakePackage(trained.Columns());
  ASSERT_TRUE(package.ok()) << package.status();
  const absl::StatusOr<runtime::StateStore> state = MakeInitialState(*package);
  ASSERT_TRUE(state.ok()) << state.status();
  int low = 0;
  for (const auto& entry : state->entries()) {
    if (entry->role() != Role::kParameter || !IsLowPrecision(entry->spec().dtype)) continue;
    ++low;
    const Tensor value = trained.model->State(entry->name()).Value().value();
    ASSERT_EQ(value.spec(), entry->spec());
    EXPECT_EQ(std::memcmp(value.bytes().data(), entry->data(), entry->spec().bytes()), 0) << entry->name();
  }
  EXPECT_GT(low, 0);
}

TEST(Package, AnotherSeedDrawsAnotherBeginning) {
  const Trained trained("lenet5", {});
  const runtime::Package package = trained.model->MakePackage(trained.Columns()).value();
  const auto weight = [&](std::optional<std::uint64_t> seed) {
    const runtime::StateStore state = MakeInitialState(package, seed).value();
    const auto entry = state.Find("conv1.weight");
    return Tensor::FromBytes(entry->spec(), entry->data(), entry->spec().bytes()).ToFloats();
  };
  EXPECT_EQ(weight(std::nullopt), weight(kSeed));
  EXPECT_NE(weight(std::nullopt), weight(kSeed + 1));
}

TEST(Package, NeedsAModelThatTrains) {
  const auto workload = models::MakeWorkload("mlp").value();
  Model model = workload->MakePredictor({});
  EXPECT_THAT(std::string(model.MakePackage({}).status().message()), HasSubstr("a Model that trains"));
}

TEST(Package, NamesOfColumnsAreThereAndDiffer) {
  const Trained trained("mlp", {});
  auto columns = trained.Columns();
  columns[1].first = columns[0].first;
  EXPECT_EQ(trained.model->MakePackage(columns).status(),
            absl::InvalidArgumentError("MakePackage: two columns are called 'data'"));
  columns[0].first = "";
  EXPECT_EQ(trained.model->MakePackage(columns).status(),
            absl::InvalidArgumentError("MakePackage: the name of column 0 is empty"));
}

/// A parameter that is made from data.
class Table : public nn::Cell {
 public:
  MPC_CELL(Table, weight)
  explicit Table(std::int64_t size) : weight(Tensor::Full({size}, 1.0)) {}
  Tensor Construct(Tensor x) { return weight * x; }
  Parameter weight;
};

TEST(Package, HoldsNoWeights) {
  const auto package = [](std::int64_t size) {
    Table network(size);
    nn::MSELoss loss;
    nn::SGD optimizer(network.TrainableParams(), {.learning_rate = 0.1});
    Model model(network, loss, optimizer);
    return model.MakePackage({{"data", {DType::kF32, {2, size}}}, {"label", {DType::kF32, {2, size}}}}).status();
  };
  EXPECT_TRUE(package(8).ok()) << package(8);
  EXPECT_THAT(std::string(package(1 << 20).message()),
              ::testing::AllOf(HasSubstr("state \"weight\", tensor<1048576xf32>"), HasSubstr("holds no weights")));
}

TEST(Package, HasTheClassNamesOfTheTrainingData) {
  const Trained trained("mlp", {});
  EXPECT_TRUE(ClassNames(trained.model->MakePackage(trained.Columns()).value()).value().empty());
  const data::Dataset rows = data::GeneratorDataset(std::vector<data::Row>{trained.Batch()}, {"data", "label"});
  ASSERT_TRUE(trained.model->Train(1, rows.WithClassNames({"ant", "bee"})).ok());
  runtime::Package package = trained.model->MakePackage(trained.Columns()).value();
  EXPECT_EQ(*ClassNames(package), (std::vector<std::string>{"ant", "bee"}));
  for (auto& [key, value] : package.metadata) {
    if (key == "class_names") value = "ant, bee";
  }
  EXPECT_THAT(std::string(ClassNames(package).status().message()),
              HasSubstr("'class_names' of the package is no list"));
}

TEST(PackageState, LoadsWhatItSaved) {
  const TemporaryFolder folder;
  const Trained trained("mlp", {});
  const runtime::Package package = trained.model->MakePackage(trained.Columns()).value();
  const runtime::StateStore saved = MakeInitialState(package, 11).value();
  ASSERT_TRUE(SaveState(folder / "state", saved).ok());
  runtime::StateStore loaded = MakeInitialState(package).value();
  const absl::StatusOr<std::vector<std::string>> unknown = LoadState(folder / "state", loaded);
  ASSERT_TRUE(unknown.ok()) << unknown.status();
  EXPECT_TRUE(unknown->empty());
  for (const auto& entry : saved.entries()) {
    if (entry->role() == Role::kDerived) continue;
    EXPECT_EQ(std::memcmp(entry->data(), loaded.Find(entry->name())->data(), entry->spec().bytes()), 0);
  }
}

TEST(PackageState, ErrorsListEverythingAndChangeNothing) {
  const TemporaryFolder folder;
  const Trained trained("mlp", {});
  const runtime::Package package = trained.model->MakePackage(trained.Columns()).value();
  runtime::StateStore state = MakeInitialState(package).value();
  ASSERT_TRUE(SaveState(folder / "state", state).ok());
  Safetensors content = LoadSafetensors(folder / "state").value();
  const std::string first = state.entries()[0]->name();
  const std::string second = state.entries()[1]->name();
  std::erase_if(content.tensors, [&](const auto& entry) { return entry.first == first; });
  for (auto& [name, tensor] : content.tensors) {
    tensor = name == second ? Tensor::Zeros({3}) : Tensor::Zeros(tensor.shape(), tensor.dtype());
  }
  content.tensors.emplace_back("unknown", Tensor::Zeros({1}));
  ASSERT_TRUE(SaveSafetensors(folder / "broken", content).ok());
  const absl::StatusOr<std::vector<std::string>> loaded = LoadState(folder / "broken", state);
  EXPECT_THAT(std::string(loaded.status().message()),
              ::testing::AllOf(HasSubstr("it has no '" + first + "'"), HasSubstr("'" + second + "' is tensor<3xf32>"),
                               HasSubstr("nothing was loaded")));
  ASSERT_TRUE(SaveState(folder / "after", state).ok());
  EXPECT_EQ(testing::ReadAll(folder / "after"), testing::ReadAll(folder / "state"));
}

TEST(PackageState, AValueThatBecomesInfiniteIsAnErrorByNameAndElement) {
  const TemporaryFolder folder;
  const Trained trained("mlp", {});
  const runtime::Package package = trained.model->MakePackage(trained.Columns()).value();
  runtime::StateStore state = MakeInitialState(package).value();
  ASSERT_TRUE(SaveState(folder / "state", state).ok());
  Safetensors content = LoadSafetensors(folder / "state").value();
  const auto weight = std::find_if(content.tensors.begin(), content.tensors.end(), [](const auto& entry) {
    return IsFloating(entry.second.dtype()) && entry.second.size() > 3;
  });
  ASSERT_NE(weight, content.tensors.end());
  std::vector<double> values(static_cast<std::size_t>(weight->second.size()), 1);
  values[3] = 1e300;
  weight->second = Tensor::From(values, weight->second.shape());
  ASSERT_TRUE(SaveSafetensors(folder / "large", content).ok());
  EXPECT_THAT(std::string(LoadState(folder / "large", state).status().message()),
              HasSubstr("'" + weight->first + "' has values too large for f32, first 1e+300 at element 3"));
  ASSERT_TRUE(SaveState(folder / "after", state).ok());
  EXPECT_EQ(testing::ReadAll(folder / "after"), testing::ReadAll(folder / "state"));
}

}  // namespace
}  // namespace mpc
