// Overflows that begin in the rows of one of several processes: what mpc-run and mpc-opt say names its rank.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "models/registry.h"
#include "tests/frontend/temporary_folder.h"
#include "tests/training/process_group.h"
#include "tools/mpc-opt/what_if.h"
#include "tools/mpc-run/replay.h"

namespace mpc::opt {
namespace {

using ::mpc::testing::TemporaryFolder;
using ::testing::HasSubstr;

/// A micro-batch whose rows are bad, of a step of some ranks.
struct BadRows {
  const char* model;
  int ranks;
  int micro_batches;
  int bad;  ///< from 0
};

void PrintTo(const BadRows& rows, std::ostream* out) {
  *out << rows.model << " " << rows.ranks << " ranks " << rows.micro_batches << " micro-batches, bad " << rows.bad;
}

/// Numbers in [-1, 1) and classes; of the bad micro-batch one pixel is infinite.
data::Dataset DrawBatches(const models::Workload& workload, const BadRows& rows) {
  std::mt19937 random(7);
  std::vector<data::Row> batches;
  for (int i = 0; i < rows.micro_batches; ++i) {
    data::Row row;
    for (const TensorSpec& spec : workload.TrainInputs(4)) {
      std::vector<float> values(static_cast<std::size_t>(NumElements(spec.shape)));
      for (float& value : values) {
        value = IsFloating(spec.dtype) ? static_cast<float>(random() % 2048) / 1024 - 1
                                       : static_cast<float>(random() % static_cast<unsigned>(workload.classes()));
      }
      if (i == rows.bad && row.empty()) values[17] = std::numeric_limits<float>::infinity();
      row.push_back(Tensor::From(values, spec.shape).To(spec.dtype));
    }
    batches.push_back(std::move(row));
  }
  return data::GeneratorDataset(std::move(batches), {"data", "label"});
}

class SharedOverflowOrigin : public ::testing::TestWithParam<BadRows> {};

TEST_P(SharedOverflowOrigin, IsNamedWithItsRank) {
  const BadRows& rows = GetParam();
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  ASSERT_TRUE(mpc::testing::RunGroup(rows.ranks, [&](int) {
    const auto workload = models::MakeWorkload(rows.model).value();
    nn::Momentum optimizer(workload->network().TrainableParams(), {.learning_rate = 0.01});
    const FixedLossScaleManager fixed({.loss_scale = 64});
    Model model = workload->MakeModel(optimizer, {.amp_level = "O2",
                                                  .loss_scale_manager = fixed,
                                                  .accumulation_steps = rows.micro_batches / rows.ranks,
                                                  .capsule_path = path});
    MPC_EXPECT_OK(model.Train(1, DrawBatches(*workload, rows)));
  }));
  const int rank = rows.bad / (rows.micro_batches / rows.ranks);
  const std::string place =
      absl::StrCat("micro-batch ", rows.bad + 1, " of ", rows.micro_batches, " (rank ", rank, ")");
  const absl::StatusOr<std::string> compiled = ReplayWhatIf({.path = path});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_THAT(*compiled, HasSubstr(absl::StrCat("as it was: not finite\nin ", place, ":\nfirst value that is not ")));
  EXPECT_THAT(*compiled, HasSubstr(": input 'data', 1 of "));
  tools::RunOptions options;
  options.replay_path = path;
  const absl::StatusOr<tools::ReplayReport> report = tools::ReplayCapsule(options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->is_equal) << report->text;
  EXPECT_THAT(report->text, HasSubstr(absl::StrCat("input \"data@", rows.bad + 1, "\" is not finite before the step")));
  EXPECT_THAT(report->text,
              ::testing::ContainsRegex(absl::StrCat("first operation whose result is not finite: .*, micro-batch ",
                                                    rows.bad + 1, " of ", rows.micro_batches, " .rank ", rank)));
}

INSTANTIATE_TEST_SUITE_P(Some, SharedOverflowOrigin,
                         ::testing::Values(BadRows{"lenet5", 2, 2, 1}, BadRows{"bnnet", 4, 4, 2},
                                           BadRows{"lenet5", 2, 4, 2}, BadRows{"bnnet", 2, 4, 3}));

}  // namespace
}  // namespace mpc::opt
