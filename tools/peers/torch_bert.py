#!/usr/bin/env python3
"""Times PyTorch's training step of BERT (base by default), the peer of `mpc-bench bert --peer=torch`; see
torch_common.py. Every position has a label, as in mpc's batches."""

import torch
from torch import nn
from torch.nn import functional

import torch_transformer

EPSILON = 1e-12


class Block(torch_transformer.Block):
    def __init__(self, width, heads):
        super().__init__(width, heads, causal=False, epsilon=EPSILON, gelu="none")

    def forward(self, x):
        x = self.ln1(x + self.attention(x))
        return self.ln2(x + self.fed_forward(x))


class Bert(nn.Module):
    """The network of models/bert.h, with its paths: the head ends in the token table."""

    def __init__(self, sizes):
        super().__init__()
        self.tokens = nn.Embedding(sizes.vocabulary, sizes.width)
        self.positions = nn.Embedding(sizes.context, sizes.width)
        self.segments = nn.Embedding(2, sizes.width)
        self.ln = nn.LayerNorm(sizes.width, eps=EPSILON)
        self.blocks = nn.Sequential(*[Block(sizes.width, sizes.heads) for _ in range(sizes.layers)])
        self.transform = nn.Linear(sizes.width, sizes.width)
        self.ln_f = nn.LayerNorm(sizes.width, eps=EPSILON)
        self.decoder_bias = nn.Parameter(torch.zeros(sizes.vocabulary))
        torch_transformer.draw_weights(self)

    def forward(self, ids):
        positions = torch.arange(ids.shape[1], device=ids.device)
        segment = torch.zeros(1, dtype=torch.long, device=ids.device)
        x = self.blocks(self.ln(self.positions(positions) + self.segments(segment) + self.tokens(ids)))
        x = self.ln_f(functional.gelu(self.transform(x)))
        return functional.linear(x, self.tokens.weight, self.decoder_bias)


if __name__ == "__main__":
    torch_transformer.main(__doc__, Bert, vocabulary=30522, context=512, tokens=128)
