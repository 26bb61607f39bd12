"""Processes that train together: DistributedDataParallel over gloo, as the variables of torchrun say."""

import datetime
import os
import sys

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

TIME_LIMIT = datetime.timedelta(seconds=120)


def join(arguments):
    """Of one process it does nothing, and so do the functions below."""
    if arguments.ranks == 1:
        return
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # the processes are on one machine
    distributed.init_process_group("gloo", timeout=TIME_LIMIT)
    if distributed.get_world_size() != arguments.ranks:
        raise SystemExit(f"torch: --ranks={arguments.ranks}, but WORLD_SIZE is {distributed.get_world_size()}")


def rows_of(arguments, batches):
    """This process's block of every batch."""
    if arguments.ranks == 1:
        return batches
    rank = distributed.get_rank()
    return [[column.chunk(arguments.ranks)[rank].clone() for column in batch] for batch in batches]


def wrapped(arguments, network):
    """DistributedDataParallel as its documentation has it, with gradients where the buckets are."""
    if arguments.ranks == 1:
        return network
    return DistributedDataParallel(network, gradient_as_bucket_view=True)


def settings(arguments):
    return [] if arguments.ranks == 1 else [f"DDP over gloo, {arguments.ranks} ranks"]


def from_first(number):
    """The whole number of rank 0, in every process."""
    value = torch.tensor(number)
    distributed.broadcast(value, src=0)
    return int(value)


def leave(arguments):
    """The last call: it ends a process of several. Threads of gloo can end an interpreter that exits by a signal."""
    if arguments.ranks > 1:
        distributed.barrier()
        sys.stdout.flush()
        os._exit(0)
