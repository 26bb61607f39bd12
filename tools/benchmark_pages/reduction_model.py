#!/usr/bin/env python3
"""How long a sum over processes takes, from a latency and a rate: the model of docs/distributed.md.

    tools/benchmark_pages/reduction_model.py                      what it says for two networks on 8 and 64 H100
    tools/benchmark_pages/reduction_model.py two.json four.json   beside what `mpc-bench --all-reduce --json` measured

Of measurements the latency is fitted to the smallest message, for each number of ranks. Of the first file the rate of memory
is fitted to the largest message, and the rate of caches to the largest that stays in them. What sharing processors costs
is fitted to the message of this size where ranks share them. All else is predicted. Python's standard library only.
"""
import argparse
import dataclasses
import json
import math

WHOLE_BYTES = 8192  # up to this every rank of `shared` reduces the whole message
F32_BYTES = 4
BUCKET_BYTES = 25 * 2**20
SLOTS = 3  # of each rank of `shared`
CACHE_BYTES = 32 * 2**20  # of the last level
ROUNDS = 5


def shared_meetings(message, slot):
    """How often ranks of the transport `shared` meet for a message of `message` bytes through slots of `slot` bytes."""
    return 1 if message <= min(WHOLE_BYTES, slot) else math.ceil(message / slot) + 1


def shared_traffic(message, ranks):
    """Bytes that one rank of `shared` reads and writes: 4 (N - 1) / N to bring and to fetch, N / N rows of its slice to
    read, 2 / N to write their sum twice."""
    return message * (4 * (ranks - 1) + ranks + 2) / ranks


@dataclasses.dataclass(frozen=True)
class Rates:
    """Bytes a second that a processor reads and writes while the others do too, and how much longer work takes where ranks
    share processors, beside taking turns."""

    memory: float
    caches: float
    sharing: float = 1.0
    cache_bytes: int = CACHE_BYTES


def in_caches(message, ranks, processors, slot, cache_bytes):
    """Whether the operands, results and slots of all ranks stay in the caches. Of a message of one chunk nothing is known
    before it is needed, and of ranks that take turns each finds the caches full of the others' values: not these."""
    held = ranks * (2 * message + SLOTS * slot)
    return message > slot and ranks <= processors and held <= cache_bytes


def shared_seconds(message, ranks, processors, slot, latency, rates):
    """`latency` is that of a meeting. Where ranks share processors, these do the work of several ranks one after the
    other."""
    rate = rates.caches if in_caches(message, ranks, processors, slot, rates.cache_bytes) else rates.memory
    turns = ranks / processors * rates.sharing if ranks > processors else 1
    return shared_meetings(message, slot) * latency + turns * shared_traffic(message, ranks) / rate


@dataclasses.dataclass(frozen=True)
class Link:
    """What connects two ranks: seconds of a message of no bytes, and bytes a second in each direction."""

    latency: float
    rate: float


def halving_seconds(message, links, memory_rate, bucket=BUCKET_BYTES):
    """Recursive halving and a gather in the reverse order, over 2 ** len(links) ranks, one bucket after the other.

    Round k exchanges 1 / 2 ** k of the message over links[k - 1], and adds what came to what was there: two reads and a
    write, at `memory_rate`. Returns the parts (latency, transfer, sums).
    """
    buckets = math.ceil(message / bucket)
    latency = 2 * buckets * sum(link.latency for link in links)
    transfer = sum(2 * message / 2**round_ / link.rate for round_, link in enumerate(links, 1))
    sums = sum(3 * message / 2**round_ / memory_rate for round_ in range(1, len(links) + 1))
    return latency, transfer, sums


# Published figures; docs/distributed.md names their sources.
NVLINK = Link(latency=3.4e-6, rate=450e9)
NETWORK = Link(latency=14e-6, rate=50e9)
H100_MEMORY = 3.35e12
MACHINES = {8: [NVLINK] * 3, 64: [NVLINK] * 3 + [NETWORK] * 3}
PARAMETERS = {"ResNet-50": 25_557_032, "GPT-2 124M": 124_439_808}
KEPT = 0.95  # of the speed of one GPU


def predictions():
    """Rows of a table: network, GPUs, MB, milliseconds by part and together, and the step that keeps KEPT."""
    rows = []
    for network, parameters in PARAMETERS.items():
        message = parameters * F32_BYTES
        for gpus, links in MACHINES.items():
            parts = halving_seconds(message, links, H100_MEMORY)
            total = sum(parts)
            rows.append([network, str(gpus), f"{1e-6 * message:.0f}", *(f"{1e3 * part:.2f}" for part in parts),
                         f"{1e3 * total:.2f}", f"{1e3 * total * KEPT / (1 - KEPT):.0f}"])
    return rows


PREDICTIONS_HEADER = ["network", "H100", "MB", "latency, ms", "transfer, ms", "sums, ms", "together, ms",
                      f"{100 * KEPT:.0f} % from, ms a step"]


def seconds(row):
    return row["seconds"]["median"]


def work_seconds(content, row, latency):
    """What a measurement takes beside meetings."""
    return seconds(row) - shared_meetings(row["bytes"], row["slot_bytes"]) * latency


def largest_in_caches(content, cache_bytes):
    """The row that the rate of caches is fitted to; None without one."""
    rows = [row for row in content["rows"]
            if in_caches(row["bytes"], content["ranks"], content["processors"], row["slot_bytes"], cache_bytes)]
    return max(rows, key=lambda row: row["bytes"], default=None)


def latency_of(content, rates):
    """Seconds of a meeting: the smallest message, without its work."""
    least = min(content["rows"], key=lambda row: row["bytes"])
    work = shared_seconds(least["bytes"], content["ranks"], content["processors"], least["slot_bytes"], 0.0, rates)
    return max(0.0, seconds(least) - work) / shared_meetings(least["bytes"], least["slot_bytes"])


def fit(content, row, latency):
    """The rate at which a processor works for `row`, where each rank has one of its own."""
    return shared_traffic(row["bytes"], content["ranks"]) / work_seconds(content, row, latency)


def fitted(contents, cache_bytes=CACHE_BYTES):
    """(Rates, {ranks: latency}) of measurements: see above. The first file has no more ranks than processors.

    A latency depends on a rate, since a small message is work too, and a rate on the latency. A few rounds settle both.
    """
    first = contents[0]
    most = max(first["rows"], key=lambda row: row["bytes"])
    cached = largest_in_caches(first, cache_bytes)
    rates = Rates(memory=fit(first, most, 0.0), caches=fit(first, most, 0.0), cache_bytes=cache_bytes)
    for _ in range(ROUNDS):
        latency = latency_of(first, rates)
        memory = fit(first, most, latency)
        rates = dataclasses.replace(rates, memory=memory,
                                    caches=memory if cached is None else fit(first, cached, latency))
    for content in contents:
        if cached is None or content["ranks"] <= content["processors"]:
            continue
        row = next((row for row in content["rows"] if row["bytes"] == cached["bytes"]), None)
        if row is None:
            continue
        for _ in range(ROUNDS):
            turns = content["ranks"] / content["processors"] * shared_traffic(row["bytes"], content["ranks"]) / rates.memory
            sharing = work_seconds(content, row, latency_of(content, rates)) / turns
            rates = dataclasses.replace(rates, sharing=max(1.0, sharing))
        break
    return rates, {content["ranks"]: latency_of(content, rates) for content in contents}


def comparison(contents):
    """Rows of a table: ranks, elements, slot, milliseconds measured and predicted, the prediction over the measurement."""
    rates, latencies = fitted(contents)
    rows = []
    for content in contents:
        for row in content["rows"]:
            measured = seconds(row)
            predicted = shared_seconds(row["bytes"], content["ranks"], content["processors"], row["slot_bytes"],
                                       latencies[content["ranks"]], rates)
            rows.append([str(content["ranks"]), f"{row['elements']:,}", f"{row['slot_bytes'] / 1024:.0f}",
                         f"{1e3 * measured:.3f}", f"{1e3 * predicted:.3f}", f"{predicted / measured:.2f}"])
    return rows


COMPARISON_HEADER = ["ranks", "elements", "slot, KiB", "measured, ms", "model, ms", "model / measured"]


def fit_text(contents):
    """What the comparison stands on, as a sentence."""
    rates, latencies = fitted(contents)
    meetings = ", ".join(f"{1e6 * latency:.1f} us for {ranks} ranks" for ranks, latency in latencies.items())
    return (f"A meeting takes {meetings}; a processor reads and writes {1e-9 * rates.memory:.1f} GB/s, and "
            f"{1e-9 * rates.caches:.1f} GB/s in caches; ranks that share processors take {rates.sharing:.1f} times as long as "
            "taking turns does.")


def markdown(header, rows):
    return ["| " + " | ".join(header) + " |", "|" + "---|" * len(header),
            *("| " + " | ".join(row) + " |" for row in rows)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="that mpc-bench --all-reduce --json wrote, one for each number of ranks")
    arguments = parser.parse_args()
    if not arguments.files:
        print("\n".join(markdown(PREDICTIONS_HEADER, predictions())))
        return
    contents = []
    for name in arguments.files:
        with open(name, encoding="utf-8") as file:
            contents.append(json.load(file))
    print("\n".join([*markdown(COMPARISON_HEADER, comparison(contents)), "", fit_text(contents)]))


if __name__ == "__main__":
    main()
