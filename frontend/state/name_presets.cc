#include <functional>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/state/name_map.h"

namespace mpc {
namespace {

/// Gpt2 and the files of transformers' GPT2LMHeadModel and GPT2Model. Their Conv1D has the axes of its matrix
/// exchanged.
NameMap HuggingFaceGpt2() {
  NameMap map = NameMap::PyTorch();
  map.OptionalPrefix("transformer")
      .Rename("tokens", "transformer.wte")
      .Rename("positions", "transformer.wpe")
      .Rename("blocks.*.ln1", "transformer.h.*.ln_1")
      .Rename("blocks.*.attention.in_proj", "transformer.h.*.attn.c_attn")
      .Rename("blocks.*.attention.out_proj", "transformer.h.*.attn.c_proj")
      .Rename("blocks.*.ln2", "transformer.h.*.ln_2")
      .Rename("blocks.*.expand", "transformer.h.*.mlp.c_fc")
      .Rename("blocks.*.contract", "transformer.h.*.mlp.c_proj")
      .Rename("ln_f", "transformer.ln_f")
      .Repeat("lm_head.weight", "transformer.wte.weight")
      // The causal mask, which earlier versions stored.
      .Ignore("transformer.h.*.attn.bias")
      .Ignore("transformer.h.*.attn.masked_bias");
  for (const char* dense : {"attention.in_proj", "attention.out_proj", "expand", "contract"}) {
    map.Transpose(absl::StrCat("blocks.*.", dense));
  }
  return map;
}

/// Bert and the files of transformers' BertForMaskedLM and BertForPreTraining.
NameMap HuggingFaceBert() {
  NameMap map = NameMap::PyTorch();
  const std::string layer = "bert.encoder.layer.*.";
  map.OptionalPrefix("bert")
      .Rename("tokens", "bert.embeddings.word_embeddings")
      .Rename("positions", "bert.embeddings.position_embeddings")
      .Rename("segments", "bert.embeddings.token_type_embeddings")
      .Rename("ln", "bert.embeddings.LayerNorm")
      .Join("blocks.*.attention.in_proj",
            {layer + "attention.self.query", layer + "attention.self.key", layer + "attention.self.value"})
      .Rename("blocks.*.attention.out_proj", layer + "attention.output.dense")
      .Rename("blocks.*.ln1", layer + "attention.output.LayerNorm")
      .Rename("blocks.*.expand", layer + "intermediate.dense")
      .Rename("blocks.*.contract", layer + "output.dense")
      .Rename("blocks.*.ln2", layer + "output.LayerNorm")
      .Rename("transform", "cls.predictions.transform.dense")
      .Rename("ln_f", "cls.predictions.transform.LayerNorm")
      .Rename("decoder_bias", "cls.predictions.bias")
      .Repeat("cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight")
      .Repeat("cls.predictions.decoder.bias", "cls.predictions.bias")
      // Published files have these spellings of TensorFlow.
      .Alias("LayerNorm.gamma", "LayerNorm.weight")
      .Alias("LayerNorm.beta", "LayerNorm.bias")
      .Ignore("bert.embeddings.position_ids")
      // The head that compares sentences.
      .Ignore("bert.pooler")
      .Ignore("cls.seq_relationship");
  return map;
}

/// Vit and the files of timm's VisionTransformer.
NameMap TimmVit() {
  NameMap map = NameMap::PyTorch();
  map.Rename("patches", "patch_embed.proj")
      .Rename("class_token", "cls_token")
      .Rename("positions", "pos_embed")
      .Rename("blocks.*.ln1", "blocks.*.norm1")
      .Rename("blocks.*.attention.in_proj", "blocks.*.attn.qkv")
      .Rename("blocks.*.attention.out_proj", "blocks.*.attn.proj")
      .Rename("blocks.*.ln2", "blocks.*.norm2")
      .Rename("blocks.*.expand", "blocks.*.mlp.fc1")
      .Rename("blocks.*.contract", "blocks.*.mlp.fc2")
      .Rename("ln_f", "norm");
  return map;
}

const std::map<std::string, std::function<NameMap()>, std::less<>>& Presets() {
  static const auto* const presets = new std::map<std::string, std::function<NameMap()>, std::less<>>{
      {"huggingface/bert", HuggingFaceBert},
      {"huggingface/gpt2", HuggingFaceGpt2},
      {"timm/vit", TimmVit},
      // ResNet18 and ResNet50 have torchvision's paths.
      {"torchvision/resnet18", NameMap::PyTorch},
      {"torchvision/resnet50", NameMap::PyTorch},
  };
  return *presets;
}

}  // namespace

absl::StatusOr<NameMap> NameMap::Preset(std::string_view name) {
  const auto found = Presets().find(name);
  if (found != Presets().end()) {
    NameMap map = found->second();
    map.preset_rules_ = map.rules_.size();
    map.preset_transposed_ = map.transposed_.size();
    return map;
  }
  return absl::NotFoundError(
      absl::StrCat("unknown preset of names '", std::string(name), "'; choose ", absl::StrJoin(PresetNames(), ", ")));
}

std::vector<std::string> NameMap::PresetNames() {
  std::vector<std::string> names;
  for (const auto& [name, make] : Presets()) names.push_back(name);
  return names;
}

}  // namespace mpc
