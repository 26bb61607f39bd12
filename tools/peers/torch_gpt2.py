#!/usr/bin/env python3
"""Times PyTorch's training step of GPT-2 (124M), the peer of `mpc-bench gpt2 --peer=torch`; see torch_common.py. The
vocabulary is not padded, as in mpc's network."""

import torch
from torch import nn
from torch.nn import functional

import torch_common

WIDTH, LAYERS, HEADS, CONTEXT, VOCABULARY = 768, 12, 12, 1024, 50257


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.in_proj = nn.Linear(WIDTH, 3 * WIDTH)
        self.out_proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        rows, length, _ = x.shape
        q, k, v = (part.view(rows, length, HEADS, WIDTH // HEADS).transpose(1, 2)
                   for part in self.in_proj(x).split(WIDTH, dim=2))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out_proj(y.transpose(1, 2).reshape(rows, length, WIDTH))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1 = nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.ln2 = nn.LayerNorm(WIDTH)
        self.expand = nn.Linear(WIDTH, 4 * WIDTH)
        self.contract = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        x = x + self.attention(self.ln1(x))
        return x + self.contract(functional.gelu(self.expand(self.ln2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """The network of models/gpt2.h, with its paths: the head is the token table."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.ln_f = nn.LayerNorm(WIDTH)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        return functional.linear(self.ln_f(self.blocks(x)), self.tokens.weight)


def main():
    arguments = torch_common.parse(__doc__, ["eager", "compile", "max-autotune"], batch=4)
    shape = (arguments.batch, arguments.tokens)
    torch_common.run(
        arguments, Gpt2(),
        lambda: [torch.randint(0, VOCABULARY, shape), torch.randint(0, VOCABULARY, shape)],
        lambda logits, labels: functional.cross_entropy(logits.float().flatten(0, 1), labels.flatten()),
        lambda parameters, options: torch.optim.AdamW(parameters, lr=3e-4, weight_decay=0.1, **options),
        "vocabulary of 50257, AdamW")


if __name__ == "__main__":
    main()
