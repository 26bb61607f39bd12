// Overflows that are injected into a training step: the capsule that the step leaves tells where each began.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "frontend/state/step_capsule.h"
#include "models/registry.h"
#include "mpc/mpc.h"
#include "tests/frontend/temporary_folder.h"
#include "tools/mpc-opt/what_if.h"

namespace mpc::opt {
namespace {

using ::mpc::testing::TemporaryFolder;
using ::testing::HasSubstr;

constexpr std::int64_t kRows = 4;
/// Products of activations with it are beyond f16, it is not.
constexpr float kNearlyTooLarge = 60000;
/// The loss scale of the steps, where nothing else is injected.
constexpr float kGoodScale = 64;

enum class Injected { kWeight, kInput, kScale, kOperand };

struct Injection {
  const char* model;
  Injected into;
  unsigned seed;
};

void PrintTo(const Injection& injection, std::ostream* out) {
  static constexpr const char* kNames[] = {"weight", "input", "scale", "operand"};
  *out << injection.model << " " << kNames[static_cast<int>(injection.into)] << " " << injection.seed;
}

class OverflowOrigin : public ::testing::TestWithParam<Injection> {
 protected:
  /// Numbers in [-1, 1) and classes.
  data::Row DrawBatch(const models::Workload& workload) {
    data::Row row;
    for (const TensorSpec& spec : workload.TrainInputs(kRows)) {
      std::vector<float> values(static_cast<std::size_t>(NumElements(spec.shape)));
      for (float& value : values) {
        value = IsFloating(spec.dtype) ? static_cast<float>(random_() % 2048) / 1024 - 1
                                       : static_cast<float>(random_() % static_cast<unsigned>(workload.classes()));
      }
      row.push_back(Tensor::From(values, spec.shape).To(spec.dtype));
    }
    return row;
  }

  int Draw(std::size_t count) { return static_cast<int>(random_() % count); }

  // Each injects an overflow, or foresees one, and returns how the capsule has to describe its origin.

  /// No number is left of one trained parameter: of a row of an embedding alone, no token might read it.
  std::string SpoilWeight(nn::Cell& network) {
    const std::vector<std::pair<std::string, Parameter>> trained = Trained(network);
    auto [name, parameter] = trained[static_cast<std::size_t>(Draw(trained.size()))];
    const std::vector<float> values(static_cast<std::size_t>(NumElements(parameter.shape())),
                                    std::numeric_limits<float>::quiet_NaN());
    EXPECT_TRUE(parameter.SetData(Tensor::From(values, parameter.shape())).ok());
    return absl::StrCat(": parameter '", name, "', ");
  }

  /// One pixel is infinite, or a number that overflows where the network casts its input.
  std::string SpoilInput(data::Row& batch) {
    const bool infinite = GetParam().seed % 2 == 0;
    std::vector<float> values = batch[0].ToFloats();
    values[static_cast<std::size_t>(Draw(values.size()))] = infinite ? std::numeric_limits<float>::infinity() : 1e6f;
    batch[0] = Tensor::From(values, batch[0].shape());
    return infinite ? ": input 'data', 1 of " : ": forward pass: cast in ";
  }

  /// The first value that a step at `scale` cannot hold, from the magnitudes of a step at a good scale.
  std::string FirstBeyond(models::Workload& workload, nn::Optimizer& optimizer, const data::Row& batch, float scale) {
    const FixedLossScaleManager fixed({.loss_scale = kGoodScale});
    Model model = workload.MakeModel(optimizer, {.amp_level = "O2", .loss_scale_manager = fixed});
    const absl::StatusOr<std::vector<ValueStatistics>> values = model.Measure(batch);
    EXPECT_TRUE(values.ok()) << values.status();
    for (const ValueStatistics& value : *values) {
      // From here on a f16 rounds to infinity.
      if (value.backward && value.dtype == DType::kF16 && value.largest * (scale / kGoodScale) >= 65520) {
        return absl::StrCat(": ", value.Describe(), ", ");
      }
    }
    ADD_FAILURE() << "nothing overflows at scale " << scale;
    return "";
  }

  /// Whether f16 cannot hold the forward product `operation` of `cell`, by its magnitudes in f32.
  bool ProductOverflows(models::Workload& workload, nn::Optimizer& optimizer, const data::Row& batch,
                        const std::string& operation, const std::string& cell) {
    Model model = workload.MakeModel(optimizer, {.amp_level = "O0"});
    const absl::StatusOr<std::vector<ValueStatistics>> values = model.Measure(batch);
    EXPECT_TRUE(values.ok()) << values.status();
    for (const ValueStatistics& value : *values) {
      if (value.backward || value.operation != operation || value.cell != cell) continue;
      return value.not_finite() > 0 || value.largest >= 65520;
    }
    ADD_FAILURE() << "no " << operation << " in " << cell;
    return false;
  }

  /// A weight of a product becomes so large that the product, and nothing before it, is beyond f16. Where small
  /// activations keep it below, it is the product of the backward pass that reads the same weight.
  std::string EnlargeOperand(models::Workload& workload, nn::Optimizer& optimizer, const data::Row& batch) {
    nn::Cell& network = workload.network();
    std::vector<std::pair<std::string, Parameter>> products;
    for (const auto& [name, parameter] : Trained(network)) {
      if (absl::EndsWith(name, ".weight") && parameter.shape().size() >= 2) products.emplace_back(name, parameter);
    }
    auto [name, parameter] = products[static_cast<std::size_t>(Draw(products.size()))];
    std::vector<float> values(static_cast<std::size_t>(NumElements(parameter.shape())));
    for (float& value : values) value = Draw(2) == 0 ? kNearlyTooLarge : -kNearlyTooLarge;
    EXPECT_TRUE(parameter.SetData(Tensor::From(values, parameter.shape())).ok());
    const std::string path = absl::StrReplaceAll(name.substr(0, name.rfind('.')), {{".", "/"}});
    const std::string cell = absl::StrCat(NetworkName(), "/", path);
    const std::string operation = parameter.shape().size() == 4 ? "conv2d" : "matmul";
    if (!ProductOverflows(workload, optimizer, batch, operation, cell)) {
      return absl::StrCat(": backward pass: ", operation, " for '", cell, "' ");
    }
    return absl::StrCat(": forward pass: ", operation, " in '", cell, "' ");
  }

  static std::vector<std::pair<std::string, Parameter>> Trained(nn::Cell& network) {
    std::vector<std::pair<std::string, Parameter>> trained = network.ParametersAndNames();
    std::erase_if(trained, [](const auto& each) { return !each.second.requires_grad(); });
    return trained;
  }

  static std::string NetworkName() {
    const std::string name = GetParam().model;
    return name.substr(0, name.find('-'));
  }

  std::mt19937 random_{GetParam().seed};
};

TEST_P(OverflowOrigin, IsNamedByTheCapsule) {
  const Injection& injection = GetParam();
  const TemporaryFolder folder;
  SetSeed(injection.seed);
  const auto workload = models::MakeWorkload(injection.model).value();
  nn::Momentum optimizer(workload->network().TrainableParams(), {.learning_rate = 0.01});
  data::Row batch = DrawBatch(*workload);
  const float scale = injection.into == Injected::kScale ? std::ldexp(kGoodScale, 14 + Draw(12)) : kGoodScale;
  std::string expected;
  switch (injection.into) {
    case Injected::kWeight:
      expected = SpoilWeight(workload->network());
      break;
    case Injected::kInput:
      expected = SpoilInput(batch);
      break;
    case Injected::kScale:
      expected = FirstBeyond(*workload, optimizer, batch, scale);
      break;
    case Injected::kOperand:
      expected = EnlargeOperand(*workload, optimizer, batch);
      break;
  }
  const FixedLossScaleManager fixed({.loss_scale = scale});
  Model model =
      workload->MakeModel(optimizer, {.amp_level = "O2", .loss_scale_manager = fixed, .capsule_path = folder / "x"});
  ::testing::internal::CaptureStderr();
  const absl::Status trained = model.Train(1, data::GeneratorDataset({batch}, {"data", "label"}));
  const std::string said = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(trained.ok()) << trained;
  ASSERT_THAT(said, HasSubstr("capsule of step 1 (not finite)"));
  const absl::StatusOr<std::string> text = ReplayWhatIf({.path = folder / "x"});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("as it was: not finite\n"));
  const std::size_t begin = text->find("first value that is not finite");
  ASSERT_NE(begin, std::string::npos) << *text;
  EXPECT_THAT(text->substr(begin, text->find('\n', begin) - begin), HasSubstr(expected)) << *text;
}

/// The first seed: MPC_OVERFLOW_SEED, so that other places and sizes may be drawn; else 0.
unsigned FirstSeed() {
  const char* const given = std::getenv("MPC_OVERFLOW_SEED");
  unsigned seed = 0;
  if (given != nullptr && !absl::SimpleAtoi(given, &seed)) {
    std::cerr << "MPC_OVERFLOW_SEED is '" << given << "', which is no whole number from 0\n";
    std::exit(2);
  }
  return seed;
}

std::vector<Injection> Injections() {
  const unsigned first_seed = FirstSeed();
  std::vector<Injection> all;
  struct Count {
    const char* model;
    Injected into;
    int count;
  };
  for (const Count& each : std::initializer_list<Count>{{"lenet5", Injected::kWeight, 6},
                                                        {"lenet5", Injected::kInput, 5},
                                                        {"lenet5", Injected::kScale, 4},
                                                        {"lenet5", Injected::kOperand, 5},
                                                        {"bnnet", Injected::kWeight, 6},
                                                        {"bnnet", Injected::kInput, 4},
                                                        {"bnnet", Injected::kScale, 3},
                                                        {"bnnet", Injected::kOperand, 4},
                                                        {"gpt2-tiny", Injected::kWeight, 5},
                                                        {"gpt2-tiny", Injected::kScale, 3},
                                                        {"gpt2-tiny", Injected::kOperand, 5}}) {
    for (int i = 0; i < each.count; ++i)
      all.push_back({each.model, each.into, first_seed + static_cast<unsigned>(all.size())});
  }
  return all;
}

/// Every fourth one: continuous integration has no time for more.
std::vector<Injection> SomeInjections() {
  std::vector<Injection> some;
  const std::vector<Injection> all = Injections();
  for (std::size_t i = 0; i < all.size(); i += 4) some.push_back(all[i]);
  return some;
}

INSTANTIATE_TEST_SUITE_P(Some, OverflowOrigin, ::testing::ValuesIn(SomeInjections()));
INSTANTIATE_TEST_SUITE_P(All, OverflowOrigin, ::testing::ValuesIn(Injections()));

}  // namespace
}  // namespace mpc::opt
