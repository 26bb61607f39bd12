"""What the peers that classify images share."""

import torch
from torch.nn import functional

import torch_common


def main(description, make_network, classes, image, batch, layout="nchw", modes=(), add_sizes=None):
    """`image(arguments)` is the shape of one image, `make_network(arguments)` the network; `layout` the default of
    --layout, None where the network has no use for one; `modes` those beside eager, compile and max-autotune."""

    def add_all_sizes(parser):
        if layout is not None:
            parser.add_argument("--layout", choices=["nchw", "nhwc"], default=layout, help="nhwc: channels last")
        if add_sizes is not None:
            add_sizes(parser)

    arguments = torch_common.parse(description, ["eager", *modes, "compile", "max-autotune"], batch, add_all_sizes)
    channels_last = layout is not None and arguments.layout == "nhwc"

    def network():
        made = make_network(arguments)
        return made.to(memory_format=torch.channels_last) if channels_last else made

    def place(columns):
        return [columns[0].contiguous(memory_format=torch.channels_last), *columns[1:]]

    settings = [] if layout is None else ["channels last" if channels_last else "NCHW"]
    torch_common.run(
        arguments, network,
        lambda: [torch.randn(arguments.batch, *image(arguments)), torch.randint(0, classes, (arguments.batch,))],
        lambda logits, labels: functional.cross_entropy(logits.float(), labels),
        lambda parameters, options: torch.optim.SGD(parameters, lr=0.01, momentum=0.9, **options),
        [*settings, "SGD with momentum"], place if channels_last else None)
