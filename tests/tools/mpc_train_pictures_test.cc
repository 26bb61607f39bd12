// mpc-train on folders of pictures: what it prints and what its summary says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/tools/picture_folder.h"
#include "tests/tools/tool_runner.h"
#include "tools/support/exit_code.h"

namespace mpc::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class MpcTrainPictures : public ::testing::Test {
 protected:
  MpcTrainPictures() { WritePictures(folder_.path()); }

  /// Trains an epoch of three batches.
  ToolResult Train(std::vector<std::string> flags) {
    std::vector<std::string> arguments = {"vit-tiny",   "--data=pictures", "--data-dir=" + folder_.path(),
                                          "--epochs=1", "--batch-size=2",  "--summary=" + results_.File("summary")};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return RunTool(MPC_TRAIN, arguments);
  }
  nlohmann::json Summary() const { return ReadJson(results_.File("summary")); }

  TemporaryFolder folder_, results_;
};

TEST_F(MpcTrainPictures, SaysWhatIsMadeOfThem) {
  const ToolResult result = Train({});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output,
              HasSubstr("pictures: mean 0.5 0.5 0.5, deviation 0.5 0.5 0.5; training takes whole pictures\n"));
  EXPECT_THAT(result.output, Not(HasSubstr("damaged")));
  const nlohmann::json options = Summary()["options"];
  EXPECT_EQ(options["mean"], nlohmann::json({0.5, 0.5, 0.5}));
  EXPECT_EQ(options["augment"], false);
  EXPECT_EQ(options["shift"], 0) << "pictures do not move";
}

TEST_F(MpcTrainPictures, LeavesDamagedOnesOutWhereItIsAsked) {
  const std::string damaged = folder_.File("train/ant/2.jpg");
  Damage(damaged);
  const ToolResult refused = Train({});
  EXPECT_EQ(refused.exit_code, kFailure);
  EXPECT_THAT(refused.error, HasSubstr(damaged));
  const ToolResult result = Train({"--skip-damaged"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("damaged pictures left out: 1 of training, 0 of the test; the first: "));
  EXPECT_THAT(result.output, HasSubstr(damaged));
  EXPECT_EQ(Summary()["left_out"]["train"], 1);
  EXPECT_EQ(Summary()["left_out"]["test"], 0);
  EXPECT_EQ(Summary()["steps"], 3) << "five pictures in batches of two";
}

TEST_F(MpcTrainPictures, WorkersAndThePartsOfPicturesDoNotDependOnEachOther) {
  std::vector<nlohmann::json> losses;
  for (const char* workers : {"--workers=0", "--workers=3"}) {
    const ToolResult result = Train({"--augment", "--normalize=imagenet", workers});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.output, HasSubstr("mean 0.485 0.456 0.406, deviation 0.229 0.224 0.225; training takes random "
                                         "parts, mirrored half of the time\n"));
    losses.push_back(Summary()["train_loss"]);
  }
  EXPECT_EQ(losses[0], losses[1]);
  ASSERT_EQ(Train({"--normalize=imagenet"}).exit_code, 0);
  EXPECT_NE(Summary()["train_loss"], losses[0]);
}

}  // namespace
}  // namespace mpc::tools
