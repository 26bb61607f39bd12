"""What the peers that read tokens share."""

import torch
from torch import nn
from torch.nn import functional

import torch_common


class Attention(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads = heads
        self.causal = causal
        self.in_proj = nn.Linear(width, 3 * width)
        self.out_proj = nn.Linear(width, width)

    def forward(self, x):
        rows, length, width = x.shape
        q, k, v = (part.view(rows, length, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.in_proj(x).split(width, dim=2))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out_proj(y.transpose(1, 2).reshape(rows, length, width))


class Block(nn.Module):
    """The parts of models/transformer.h; a derived class says in which order they stand."""

    def __init__(self, width, heads, causal, epsilon, gelu):
        super().__init__()
        self.gelu = gelu
        self.ln1 = nn.LayerNorm(width, eps=epsilon)
        self.attention = Attention(width, heads, causal)
        self.ln2 = nn.LayerNorm(width, eps=epsilon)
        self.expand = nn.Linear(width, 4 * width)
        self.contract = nn.Linear(4 * width, width)

    def fed_forward(self, x):
        return self.contract(functional.gelu(self.expand(x), approximate=self.gelu))


def draw_weights(network):
    """Where --weights does not give them."""
    for parameter in network.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.02)


def main(description, make_network, vocabulary, context, tokens):
    """`make_network(arguments)` is the network, from sizes of the command line; the others are their defaults."""

    def add_sizes(parser):
        parser.add_argument("--tokens", type=int, default=tokens, help="of a row, at most --context")
        parser.add_argument("--context", type=int, default=context)
        parser.add_argument("--vocabulary", type=int, default=vocabulary)
        parser.add_argument("--layers", type=int, default=12)
        parser.add_argument("--width", type=int, default=768)
        parser.add_argument("--heads", type=int, default=12)

    arguments = torch_common.parse(description, ["eager", "compile", "max-autotune"], 4, add_sizes)
    shape = (arguments.batch, arguments.tokens)
    torch_common.run(
        arguments, lambda: make_network(arguments),
        lambda: [torch.randint(0, arguments.vocabulary, shape), torch.randint(0, arguments.vocabulary, shape)],
        lambda logits, labels: functional.cross_entropy(logits.float().flatten(0, 1), labels.flatten()),
        lambda parameters, options: torch.optim.AdamW(parameters, lr=3e-4, weight_decay=0.1, **options),
        [f"vocabulary of {arguments.vocabulary}", "AdamW"])
