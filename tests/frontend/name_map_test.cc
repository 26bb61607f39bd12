#include "frontend/state/name_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mpc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(NameMap, TheIdentityChangesNothing) {
  EXPECT_EQ(NameMap().Foreign("norm.gamma"), "norm.gamma");
  EXPECT_FALSE(NameMap().Ignores("norm.num_batches_tracked"));
  EXPECT_EQ(NameMap().format(), "mpc");
}

TEST(NameMap, PyTorchsNames) {
  const NameMap map = NameMap::PyTorch();
  EXPECT_EQ(map.Foreign("layer1.0.norm.gamma"), "layer1.0.norm.weight");
  EXPECT_EQ(map.Foreign("norm.beta"), "norm.bias");
  EXPECT_EQ(map.Foreign("norm.moving_mean"), "norm.running_mean");
  EXPECT_EQ(map.Foreign("norm.moving_variance"), "norm.running_var");
  EXPECT_EQ(map.Foreign("conv.weight"), "conv.weight");
  EXPECT_EQ(map.Foreign("fc.bias"), "fc.bias");
  EXPECT_EQ(map.Foreign("gamma"), "weight") << "of a network that is one layer";
  EXPECT_EQ(map.Foreign("gamma.weight"), "gamma.weight") << "a path is no member";
  EXPECT_TRUE(map.Ignores("norm.num_batches_tracked"));
  EXPECT_FALSE(map.Ignores("num_batches_tracked.weight"));
}

TEST(NameMap, RenamedPaths) {
  NameMap map = NameMap::PyTorch();
  map.Rename("norm", "features.1").Rename("norm.inner", "deep").Rename("head", "");
  EXPECT_EQ(map.Foreign("norm.gamma"), "features.1.weight");
  EXPECT_EQ(map.Foreign("norm.inner.weight"), "deep.weight") << "the longest path wins";
  EXPECT_EQ(map.Foreign("norm2.gamma"), "norm2.weight");
  EXPECT_EQ(map.Foreign("head.fc.bias"), "fc.bias");
  EXPECT_EQ(NameMap().Rename("", "module").Foreign("fc.bias"), "module.fc.bias");
  EXPECT_EQ(map.Rename("norm", "again").Foreign("norm.gamma"), "again.weight") << "the later of two equal paths wins";
}

TEST(NameMap, APartOfAPathMayStandForAny) {
  NameMap map = NameMap::PyTorch();
  map.Rename("blocks.*.ln1", "h.*.ln_1").Rename("blocks", "h").Rename("blocks.0.ln1", "first");
  EXPECT_EQ(map.Foreign("blocks.11.ln1.gamma"), "h.11.ln_1.weight");
  EXPECT_EQ(map.Foreign("blocks.11.other.gamma"), "h.11.other.weight");
  EXPECT_EQ(map.Foreign("blocks.0.ln1.gamma"), "first.weight") << "a literal part wins";
  EXPECT_EQ(map.Foreign("blocks.11.ln10.gamma"), "h.11.ln10.weight") << "whole parts only";
}

TEST(NameMap, AWholeNameIsRenamedAsItIs) {
  NameMap map = NameMap::PyTorch();
  map.Rename("decoder_gamma", "cls.bias").Rename("head.gamma", "scale");
  EXPECT_EQ(map.Foreign("decoder_gamma"), "cls.bias");
  EXPECT_EQ(map.Foreign("head.gamma"), "scale");
  EXPECT_EQ(map.Foreign("head.beta"), "head.bias");
}

TEST(NameMap, JoinedEntriesHoldOneParameter) {
  NameMap map = NameMap::PyTorch();
  map.Join("blocks.*.in_proj", {"layer.*.query", "layer.*.key"});
  EXPECT_THAT(map.LayoutOf("blocks.3.in_proj.bias").entries, ElementsAre("layer.3.query.bias", "layer.3.key.bias"));
  EXPECT_THAT(map.LayoutOf("blocks.3.in_proj.bias").sharers, IsEmpty());
  EXPECT_THAT(map.LayoutOf("blocks.3.out_proj.bias").entries, ElementsAre("blocks.3.out_proj.bias"));
}

TEST(NameMap, LayersOfPyTorchWithOtherNamesAreRenamed) {
  NameMap map = NameMap::PyTorch();
  map.Rename("act.w", "act.weight").Rename("*.in_proj.weight", "*.in_proj_weight");
  EXPECT_EQ(map.Foreign("act.w"), "act.weight");
  EXPECT_EQ(map.Foreign("mha.in_proj.weight"), "mha.in_proj_weight");
}

TEST(NameMap, AttentionOfPyTorchsTransformersHasPyTorchsNamesAtAnyDepth) {
  NameMap map = NameMap::PyTorch();
  EXPECT_EQ(map.Foreign("self_attn.in_proj.weight"), "self_attn.in_proj_weight");
  EXPECT_EQ(map.Foreign("encoder.layers.2.self_attn.in_proj.bias"), "encoder.layers.2.self_attn.in_proj_bias");
  EXPECT_EQ(map.Foreign("layers.0.multihead_attn.in_proj.weight"), "layers.0.multihead_attn.in_proj_weight");
  EXPECT_EQ(map.Foreign("layers.0.self_attn.out_proj.weight"), "layers.0.self_attn.out_proj.weight");
  EXPECT_EQ(map.Foreign("mixer.in_proj.weight"), "mixer.in_proj.weight") << "it may be a layer of one's own";
  map.Rename("layers.*.self_attn", "blocks.*.attention").Rename("whole.self_attn.in_proj", "q");
  EXPECT_EQ(map.Foreign("layers.3.self_attn.in_proj.weight"), "blocks.3.attention.in_proj_weight");
  EXPECT_EQ(map.Foreign("whole.self_attn.in_proj.weight"), "q.weight");
}

TEST(NameMap, SplitEntriesHoldSeveralParameters) {
  NameMap map = NameMap::PyTorch();
  map.Split({"layers.*.query", "layers.*.key"}, "h.*.in_proj");
  for (const char* own : {"layers.2.query.weight", "layers.2.key.weight"}) {
    EXPECT_THAT(map.LayoutOf(own).entries, ElementsAre("h.2.in_proj.weight"));
    EXPECT_THAT(map.LayoutOf(own).sharers, ElementsAre("layers.2.query.weight", "layers.2.key.weight"));
  }
}

TEST(NameMap, TransposedPaths) {
  NameMap map;
  map.Transpose("blocks.*.fc").Transpose("head.weight");
  EXPECT_TRUE(map.LayoutOf("blocks.0.fc.weight").transposed);
  EXPECT_FALSE(map.LayoutOf("blocks.0.conv.weight").transposed);
  EXPECT_TRUE(map.LayoutOf("head.weight").transposed);
  EXPECT_FALSE(map.LayoutOf("head.bias").transposed);
}

TEST(NameMap, APrefixStandsBeforeEveryName) {
  NameMap map = NameMap::PyTorch();
  map.Rename("conv", "features.0").Ignore("mask").Prefix("module");
  EXPECT_EQ(map.Foreign("conv.weight"), "module.features.0.weight");
  EXPECT_EQ(map.Foreign("fc.weight"), "module.fc.weight");
  EXPECT_TRUE(map.Ignores("module.mask"));
  EXPECT_THAT(map.Meanings({"module.fc.weight", "fc.weight"}), ElementsAre("module.fc.weight", "fc.weight"));
}

TEST(NameMap, AFileMayLackAnOptionalPrefix) {
  NameMap map = NameMap::PyTorch();
  map.Rename("tokens", "transformer.wte").Repeat("lm_head.weight", "transformer.wte.weight");
  map.OptionalPrefix("transformer");
  EXPECT_EQ(map.Foreign("tokens.embedding_table"), "transformer.wte.weight");
  EXPECT_THAT(map.Meanings({"h.0.bias", "lm_head.weight", "wte.weight"}),
              ElementsAre("transformer.h.0.bias", "lm_head.weight", "transformer.wte.weight"));
  EXPECT_THAT(map.Meanings({"transformer.wte.weight", "wte.bias"}), ElementsAre("transformer.wte.weight", "wte.bias"))
      << "one name that has it is enough";
  EXPECT_THAT(map.Repeats(), ElementsAre(Pair("lm_head.weight", "transformer.wte.weight")));
}

TEST(NameMap, IgnoredPaths) {
  NameMap map;
  map.Ignore("h.*.attn.bias").Ignore("pooler");
  EXPECT_TRUE(map.Ignores("h.0.attn.bias"));
  EXPECT_TRUE(map.Ignores("pooler.dense.weight"));
  EXPECT_FALSE(map.Ignores("h.0.attn.c_attn.bias"));
  EXPECT_FALSE(map.Ignores("h.0.mlp.bias"));
}

TEST(NameMap, AliasesAreWholeParts) {
  NameMap map;
  map.Alias("LayerNorm.gamma", "LayerNorm.weight");
  EXPECT_THAT(map.Meanings({"a.LayerNorm.gamma", "a.MyLayerNorm.gamma", "LayerNorm.gamma"}),
              ElementsAre("a.LayerNorm.weight", "a.MyLayerNorm.gamma", "LayerNorm.weight"));
}

TEST(NamePresets, TransformersNamesOfGpt2) {
  const absl::StatusOr<NameMap> map = NameMap::Preset("huggingface/gpt2");
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_EQ(map->format(), "pt");
  EXPECT_EQ(map->Foreign("tokens.embedding_table"), "transformer.wte.weight");
  EXPECT_EQ(map->Foreign("blocks.11.ln1.beta"), "transformer.h.11.ln_1.bias");
  EXPECT_EQ(map->Foreign("blocks.0.attention.in_proj.bias"), "transformer.h.0.attn.c_attn.bias");
  EXPECT_EQ(map->Foreign("blocks.0.contract.weight"), "transformer.h.0.mlp.c_proj.weight");
  EXPECT_TRUE(map->LayoutOf("blocks.0.contract.weight").transposed);
  EXPECT_FALSE(map->LayoutOf("tokens.embedding_table").transposed);
  EXPECT_TRUE(map->Ignores("transformer.h.3.attn.bias"));
}

TEST(NamePresets, TransformersNamesOfBert) {
  const absl::StatusOr<NameMap> map = NameMap::Preset("huggingface/bert");
  ASSERT_TRUE(map.ok()) << map.status();
  const std::string self = "bert.encoder.layer.1.attention.self.";
  EXPECT_THAT(map->LayoutOf("blocks.1.attention.in_proj.weight").entries,
              ElementsAre(self + "query.weight", self + "key.weight", self + "value.weight"));
  EXPECT_EQ(map->Foreign("blocks.1.ln2.gamma"), "bert.encoder.layer.1.output.LayerNorm.weight");
  EXPECT_EQ(map->Foreign("ln.gamma"), "bert.embeddings.LayerNorm.weight");
  EXPECT_EQ(map->Foreign("decoder_bias"), "cls.predictions.bias");
}

TEST(NamePresets, TimmsNamesOfVit) {
  const absl::StatusOr<NameMap> map = NameMap::Preset("timm/vit");
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_EQ(map->format(), "pt");
  EXPECT_EQ(map->Foreign("patches.bias"), "patch_embed.proj.bias");
  EXPECT_EQ(map->Foreign("class_token"), "cls_token");
  EXPECT_EQ(map->Foreign("blocks.11.attention.in_proj.weight"), "blocks.11.attn.qkv.weight");
  EXPECT_EQ(map->Foreign("blocks.0.contract.bias"), "blocks.0.mlp.fc2.bias");
  EXPECT_FALSE(map->LayoutOf("blocks.0.contract.weight").transposed);
  EXPECT_EQ(map->Foreign("ln_f.gamma"), "norm.weight");
  EXPECT_EQ(map->Foreign("head.weight"), "head.weight");
}

TEST(NamePresets, AreSortedAndAllExist) {
  const std::vector<std::string> names = NameMap::PresetNames();
  EXPECT_THAT(names, ElementsAre("huggingface/bert", "huggingface/gpt2", "timm/vit", "torchvision/resnet18",
                                 "torchvision/resnet50"));
  for (const std::string& name : names) EXPECT_TRUE(NameMap::Preset(name).ok()) << name;
  EXPECT_EQ(NameMap::Preset("torchvision/resnet50")->Foreign("layer1.0.bn1.moving_mean"), "layer1.0.bn1.running_mean");
  EXPECT_EQ(NameMap::Preset("keras/resnet50").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace mpc
