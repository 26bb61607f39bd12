#!/usr/bin/env python3
"""Times PyTorch's training step of GPT-2 (124M by default), the peer of `mpc-bench gpt2 --peer=torch`; see
torch_common.py. The vocabulary is not padded, as in mpc's network."""

import torch
from torch import nn
from torch.nn import functional

import torch_common


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.in_proj = nn.Linear(width, 3 * width)
        self.out_proj = nn.Linear(width, width)

    def forward(self, x):
        rows, length, width = x.shape
        q, k, v = (part.view(rows, length, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.in_proj(x).split(width, dim=2))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out_proj(y.transpose(1, 2).reshape(rows, length, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.ln2 = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 4 * width)
        self.contract = nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.ln1(x))
        return x + self.contract(functional.gelu(self.expand(self.ln2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """The network of models/gpt2.h, with its paths: the head is the token table."""

    def __init__(self, sizes):
        super().__init__()
        self.tokens = nn.Embedding(sizes.vocabulary, sizes.width)
        self.positions = nn.Embedding(sizes.context, sizes.width)
        self.blocks = nn.Sequential(*[Block(sizes.width, sizes.heads) for _ in range(sizes.layers)])
        self.ln_f = nn.LayerNorm(sizes.width)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        return functional.linear(self.ln_f(self.blocks(x)), self.tokens.weight)


def add_sizes(parser):
    parser.add_argument("--tokens", type=int, default=1024, help="of a row, at most --context")
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--vocabulary", type=int, default=50257)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--heads", type=int, default=12)


def main():
    arguments = torch_common.parse(__doc__, ["eager", "compile", "max-autotune"], 4, add_sizes)
    shape = (arguments.batch, arguments.tokens)
    torch_common.run(
        arguments, lambda: Gpt2(arguments),
        lambda: [torch.randint(0, arguments.vocabulary, shape), torch.randint(0, arguments.vocabulary, shape)],
        lambda logits, labels: functional.cross_entropy(logits.float().flatten(0, 1), labels.flatten()),
        lambda parameters, options: torch.optim.AdamW(parameters, lr=3e-4, weight_decay=0.1, **options),
        [f"vocabulary of {arguments.vocabulary}", "AdamW"])


if __name__ == "__main__":
    main()
