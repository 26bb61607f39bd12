// transformers' config.json of a GPT-2.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/gpt2.h"
#include "tests/frontend/error_of.h"
#include "tests/frontend/temporary_folder.h"

namespace mpc::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Reads `text` as config.json.
absl::StatusOr<models::Gpt2Config> ConfigOf(const std::string& text) {
  const TemporaryFolder folder;
  return models::ReadGpt2Config(folder.Write("config.json", text));
}

TEST(Gpt2Config, HasTheSizesOfTheFile) {
  const absl::StatusOr<models::Gpt2Config> config = ConfigOf(
      R"({"model_type": "gpt2", "vocab_size": 10, "n_positions": 8, "n_embd": 6, "n_layer": 1, "n_head": 3,
          "layer_norm_epsilon": 1e-6, "n_inner": 24, "attn_pdrop": 0.1, "something_new": 1})");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->vocabulary, 10);
  EXPECT_EQ(config->context, 8);
  EXPECT_EQ(config->width, 6);
  EXPECT_EQ(config->layers, 1);
  EXPECT_EQ(config->heads, 3);
  EXPECT_EQ(config->epsilon, 1e-6);
  EXPECT_EQ(config->dropout, 0);
  EXPECT_EQ(ConfigOf("{}")->width, 768) << "as published";
}

TEST(Gpt2Config, FieldsThatChangeNumbersAreErrorsByName) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("model_type": "llama")", "model_type is \"llama\"; accepted is \"gpt2\""},
      {R"("activation_function": "relu")", "activation_function is \"relu\""},
      {R"("n_inner": 100)", "n_inner is 100; accepted are null and 3072"},
      {R"("add_cross_attention": true)", "add_cross_attention is true"},
      {R"("scale_attn_weights": false)", "scale_attn_weights is false; accepted is true"},
      {R"("scale_attn_by_inverse_layer_idx": true)", "scale_attn_by_inverse_layer_idx is true"},
      {R"("reorder_and_upcast_attn": true)", "reorder_and_upcast_attn is true"},
      {R"("tie_word_embeddings": false)", "tie_word_embeddings is false"},
      {R"("pruned_heads": {"0": [1]})", "pruned_heads is {\"0\":[1]}"},
      {R"("quantization_config": {})", "quantization_config is {}"},
      {R"("layer_norm_epsilon": 0)", "layer_norm_epsilon is 0; accepted are numbers above 0"},
      {R"("n_layer": -1)", "n_layer is -1; accepted are 1 to 4096"},
      {R"("n_embd": "wide")", "n_embd is \"wide\""},
      {R"("n_head": 7)", "n_embd is 768, which the 7 heads of n_head do not share equally"},
  };
  for (const auto& [field, error] : cases) {
    EXPECT_THAT(ErrorOf(ConfigOf(absl::StrCat("{", field, "}")).status()), HasSubstr(error));
  }
  EXPECT_THAT(ErrorOf(ConfigOf(R"({"n_inner": 1, "scale_attn_weights": false})").status()),
              AllOf(HasSubstr("n_inner"), HasSubstr("scale_attn_weights")))
      << "all at once";
  EXPECT_THAT(ErrorOf(ConfigOf("{").status()), HasSubstr("not valid JSON"));
  EXPECT_THAT(ErrorOf(ConfigOf("[]").status()), HasSubstr("not a JSON object"));
  EXPECT_FALSE(models::Gpt2::FromFolder("/nowhere").ok());
}

}  // namespace
}  // namespace mpc::testing
