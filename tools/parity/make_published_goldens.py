#!/usr/bin/env python3
"""Saves tiny random networks as torchvision, transformers and timm save them, to compare logits with mpc.

    python3 tools/parity/make_published_goldens.py FOLDER

Needs torch, torchvision, transformers, timm and safetensors; no network. Each folder gets the network's files, and
`expected.safetensors` with an input and the logits that the library computes for it in f32.
"""

import pathlib
import sys

import torch
import torchvision
import transformers
from safetensors.torch import save_file
from torchvision.models.resnet import BasicBlock, Bottleneck, ResNet

VOCABULARY = 64
CONTEXT = 16
RESNET_WIDTH = 2  # channels of the first stage; published are 64


class NarrowResNet(ResNet):
    """torchvision's ResNet with fewer channels, which its constructor does not offer."""

    @property
    def inplanes(self) -> int:
        return self.current_planes

    @inplanes.setter
    def inplanes(self, planes: int) -> None:
        first = not hasattr(self, "current_planes")
        self.current_planes = RESNET_WIDTH if first else planes

    def _make_layer(self, block, planes, blocks, stride=1, dilate=False):
        return super()._make_layer(block, planes * RESNET_WIDTH // 64, blocks, stride, dilate)


def narrow_resnet(block, blocks: list[int], classes: int) -> ResNet:
    network = NarrowResNet(block, blocks)
    network.fc = torch.nn.Linear(8 * RESNET_WIDTH * block.expansion, classes)
    return network


def randomise(network: torch.nn.Module) -> torch.nn.Module:
    """Values under which each entry matters: biases are not 0, gammas are not 1, statistics are not those of a start."""
    with torch.no_grad():
        for name, tensor in network.state_dict().items():
            if not tensor.is_floating_point():
                continue
            if name.endswith("running_var"):
                tensor.uniform_(0.5, 1.5)
            elif tensor.dim() > 1:
                tensor.normal_(0, (tensor.shape[0] / tensor.numel()) ** 0.5)
            else:
                tensor.normal_(1 if name.endswith("weight") else 0, 0.2)
    return network.eval()


def save_expected(folder: pathlib.Path, value: torch.Tensor, logits: torch.Tensor, *more_libraries) -> None:
    libraries = (torch, torchvision, transformers, *more_libraries)
    versions = {library.__name__: library.__version__ for library in libraries}
    tensors = {"input": value, "logits": logits.detach().contiguous()}
    save_file(tensors, folder / "expected.safetensors", metadata=versions)


def make_resnet(folder: pathlib.Path, block, blocks: list[int], dtype: torch.dtype) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    # What a file in f16 holds is also what computes the logits, in f32.
    network = randomise(narrow_resnet(block, blocks, classes=5)).to(dtype)
    save_file(network.state_dict(), folder / "model.safetensors")
    images = torch.rand(2, 3, 32, 32)
    save_expected(folder, images, network.float()(images))


def make_transformer(folder: pathlib.Path, network, dtype: torch.dtype, **saving) -> None:
    network = randomise(network).to(dtype)
    network.save_pretrained(folder, **saving)
    (folder / "generation_config.json").unlink(missing_ok=True)
    tokens = torch.randint(VOCABULARY, (2, 12))
    save_expected(folder, tokens.to(torch.int32), network.float()(tokens).logits.flatten(0, 1))


def gpt2() -> transformers.GPT2LMHeadModel:
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=VOCABULARY, n_positions=CONTEXT, n_embd=16, n_layer=2, n_head=2,
                                layer_norm_epsilon=1e-3))


def bert() -> transformers.BertForMaskedLM:
    return transformers.BertForMaskedLM(
        transformers.BertConfig(vocab_size=VOCABULARY, max_position_embeddings=CONTEXT, hidden_size=16,
                                intermediate_size=64, num_hidden_layers=2, num_attention_heads=2))


def vit() -> torch.nn.Module:
    # The other networks are made and checked where there is no timm.
    from timm.models import VisionTransformer

    return VisionTransformer(img_size=16, patch_size=4, num_classes=5, embed_dim=16, depth=2, num_heads=2)


def make_vit(folder: pathlib.Path) -> None:
    import timm

    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(2)  # its values do not depend on which networks are made before
    network = randomise(vit())
    save_file(network.state_dict(), folder / "model.safetensors")
    images = torch.rand(2, 3, 16, 16)
    save_expected(folder, images, network(images), timm)


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    torch.manual_seed(1)
    make_resnet(folder / "resnet18", BasicBlock, [2, 2, 2, 2], torch.float32)
    make_resnet(folder / "resnet50", Bottleneck, [3, 4, 6, 3], torch.float16)
    make_transformer(folder / "gpt2", gpt2(), torch.float32)
    make_transformer(folder / "gpt2_shards", gpt2(), torch.bfloat16, max_shard_size="8KB")
    make_transformer(folder / "bert", bert(), torch.float32)
    make_vit(folder / "vit")


if __name__ == "__main__":
    main()
