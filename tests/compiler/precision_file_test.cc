// Files of a chosen precision.
#include "compiler/report/precision_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"

namespace mpc::compiler {
namespace {

using ::testing::HasSubstr;

const ChosenPrecision kChosen = {"LeNet5", "f16", {{"lenet5/conv1#conv2d.0", "f16"}, {"lenet5#relu.0", "f32"}}};

TEST(PrecisionFile, ReadsWhatItPrints) {
  const std::string text = PrintPrecisionFile(kChosen);
  for (const std::string& given : {text, absl::StrReplaceAll(text, {{"\n", "\r\n"}})}) {
    const absl::StatusOr<ChosenPrecision> read = ParsePrecisionFile(given);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->network, kChosen.network);
    EXPECT_EQ(read->low, kChosen.low);
    EXPECT_EQ(read->slots, kChosen.slots);
  }
}

TEST(PrecisionFile, OtherFilesVersionsAndDamageAreToldApart) {
  const auto refusal = [](const std::string& text) { return ParsePrecisionFile(text).status(); };
  const std::string text = PrintPrecisionFile(kChosen);
  EXPECT_TRUE(absl::IsInvalidArgument(refusal("")));
  EXPECT_TRUE(absl::IsInvalidArgument(refusal("mpc precision lock 1\n")));
  EXPECT_TRUE(absl::IsUnimplemented(refusal(absl::StrReplaceAll(text, {{"precision 1", "precision 2"}}))));
  EXPECT_TRUE(absl::IsDataLoss(refusal(absl::StrReplaceAll(text, {{"f32 | ", "f16 | "}}))));
  EXPECT_TRUE(absl::IsDataLoss(refusal(text.substr(0, text.size() - 20))));
  const absl::Status cut = refusal("mpc precision 1\nnetwork: LeNet5\n");
  EXPECT_TRUE(absl::IsDataLoss(cut));
  EXPECT_THAT(cut.message(), HasSubstr("'low type: '"));
}

/// Every cut of the file, and every byte changed, is an error or the same content.
TEST(PrecisionFile, DamageIsNeverTakenForAnotherPrecision) {
  const std::string text = PrintPrecisionFile(kChosen);
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] ^= 1;
    for (const std::string& given : {text.substr(0, at), changed}) {
      const absl::StatusOr<ChosenPrecision> read = ParsePrecisionFile(given);
      if (!read.ok()) continue;
      EXPECT_EQ(PrintPrecisionFile(*read), text) << "byte " << at;
    }
  }
}

}  // namespace
}  // namespace mpc::compiler
