#!/usr/bin/env python3
"""Times PyTorch's training step of GPT-2 (124M by default), the peer of `mpc-bench gpt2 --peer=torch`; see
torch_common.py. The vocabulary is not padded, as in mpc's network."""

import torch
from torch import nn
from torch.nn import functional

import torch_transformer


class Block(torch_transformer.Block):
    def __init__(self, width, heads):
        super().__init__(width, heads, causal=True, epsilon=1e-5, gelu="tanh")

    def forward(self, x):
        x = x + self.attention(self.ln1(x))
        return x + self.fed_forward(self.ln2(x))


class Gpt2(nn.Module):
    """The network of models/gpt2.h, with its paths: the head is the token table."""

    def __init__(self, sizes):
        super().__init__()
        self.tokens = nn.Embedding(sizes.vocabulary, sizes.width)
        self.positions = nn.Embedding(sizes.context, sizes.width)
        self.blocks = nn.Sequential(*[Block(sizes.width, sizes.heads) for _ in range(sizes.layers)])
        self.ln_f = nn.LayerNorm(sizes.width)
        torch_transformer.draw_weights(self)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        return functional.linear(self.ln_f(self.blocks(x)), self.tokens.weight)


if __name__ == "__main__":
    torch_transformer.main(__doc__, Gpt2, vocabulary=50257, context=1024, tokens=1024)
