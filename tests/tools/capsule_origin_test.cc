// Overflows that are injected into a training step: the capsule that the step leaves tells where each began.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "absl/strings/match.h"
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

  std::size_t Draw(std::size_t count) { return random_() % count; }

  std::mt19937 random_{GetParam().seed};
};

TEST_P(OverflowOrigin, IsNamedByTheCapsule) {
  const Injection& injection = GetParam();
  const TemporaryFolder folder;
  SetSeed(injection.seed);
  const auto workload = models::MakeWorkload(injection.model).value();
  nn::Momentum optimizer(workload->network().TrainableParams(), {.learning_rate = 0.01});
  const float scale = injection.into == Injected::kScale ? std::ldexp(1.0f, 40) : kGoodScale;
  const FixedLossScaleManager fixed({.loss_scale = scale});
  Model model =
      workload->MakeModel(optimizer, {.amp_level = "O2", .loss_scale_manager = fixed, .capsule_path = folder / "x"});
  data::Row batch = DrawBatch(*workload);
  std::string expected = "backward pass: ";

  const auto named = workload->network().ParametersAndNames();
  if (injection.into == Injected::kWeight) {
    const auto& [name, parameter] = named[Draw(named.size())];
    // All of it: a row of an embedding that no token reads would harm nothing.
    const std::vector<float> values(static_cast<std::size_t>(NumElements(parameter.shape())),
                                    std::numeric_limits<float>::quiet_NaN());
    Parameter injected = parameter;
    ASSERT_TRUE(injected.SetData(Tensor::From(values, parameter.shape())).ok());
    expected = absl::StrCat("parameter '", name, "'");
  } else if (injection.into == Injected::kInput) {
    std::vector<float> values = batch[0].ToFloats();
    const bool infinite = Draw(2) == 0;
    values[Draw(values.size())] = infinite ? std::numeric_limits<float>::infinity() : 1e6f;
    batch[0] = Tensor::From(values, batch[0].shape());
    // A number that f16 does not hold overflows where the network casts its input.
    expected = infinite ? "input '" : "forward pass: cast ";
  } else if (injection.into == Injected::kOperand) {
    std::vector<std::pair<std::string, Parameter>> products;
    for (const auto& [name, parameter] : named) {
      const bool is_table = absl::StrContains(name, "embedding") || absl::StrContains(name, "wte") ||
                            absl::StrContains(name, "wpe") || absl::StrContains(name, "position");
      if (absl::EndsWith(name, ".weight") && parameter.shape().size() >= 2 && !is_table) {
        products.emplace_back(name, parameter);
      }
    }
    ASSERT_FALSE(products.empty());
    auto& [name, parameter] = products[Draw(products.size())];
    std::vector<float> values(static_cast<std::size_t>(NumElements(parameter.shape())));
    for (float& value : values) value = Draw(2) == 0 ? kNearlyTooLarge : -kNearlyTooLarge;
    ASSERT_TRUE(parameter.SetData(Tensor::From(values, parameter.shape())).ok());
    const std::string cell = absl::StrReplaceAll(name.substr(0, name.rfind('.')), {{".", "/"}});
    expected = absl::StrCat("/", cell, "' ");
  }

  ::testing::internal::CaptureStderr();
  const absl::Status trained = model.Train(1, data::GeneratorDataset({batch}, {"data", "label"}));
  const std::string said = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(trained.ok()) << trained;
  ASSERT_THAT(said, HasSubstr("capsule of step 1 (not finite)"));
  const absl::StatusOr<std::string> text = ReplayWhatIf({.path = folder / "x"});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("as it was: not finite\n"));
  std::printf("%s\n", text->c_str());
  const std::size_t begin = text->find("first value that is not finite");
  ASSERT_NE(begin, std::string::npos) << *text;
  const std::string line = text->substr(begin, text->find('\n', begin) - begin) + " ";
  EXPECT_THAT(line, HasSubstr(expected)) << *text;
}

std::vector<Injection> Injections() {
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
    for (int i = 0; i < each.count; ++i) all.push_back({each.model, each.into, static_cast<unsigned>(all.size())});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Injected, OverflowOrigin, ::testing::ValuesIn(Injections()));

}  // namespace
}  // namespace mpc::opt
