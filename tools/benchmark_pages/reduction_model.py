#!/usr/bin/env python3
"""How long a sum over processes takes, from a latency and a rate: the model of docs/distributed.md.

    tools/benchmark_pages/reduction_model.py                      what it says for two networks on 8 and 64 H100
    tools/benchmark_pages/reduction_model.py two.json four.json   beside what `mpc-bench --all-reduce --json` measured

Of measurements the latency is that of the smallest message, for each number of ranks. The rate is that of the largest
message of the first file alone. All else is predicted. Python's standard library only.
"""
import argparse
import dataclasses
import json
import math

WHOLE_BYTES = 8192  # up to this every rank of `shared` reduces the whole message
F32_BYTES = 4
BUCKET_BYTES = 25 * 2**20


def shared_meetings(message, slot):
    """How often ranks of the transport `shared` meet for a message of `message` bytes through slots of `slot` bytes."""
    return 1 if message <= min(WHOLE_BYTES, slot) else math.ceil(message / slot) + 1


def shared_traffic(message, ranks):
    """Bytes that one rank of `shared` reads and writes: 4 (N - 1) / N to bring and to fetch, N / N rows of its slice to
    read, 2 / N to write their sum twice."""
    return message * (4 * (ranks - 1) + ranks + 2) / ranks


def shared_seconds(message, ranks, processors, slot, latency, rate):
    """`latency` is that of a meeting; `rate` the bytes a second that a processor reads and writes. Where ranks share
    processors, these do the work of several ranks one after the other."""
    work = shared_traffic(message, ranks) / rate * max(1, ranks / processors)
    return shared_meetings(message, slot) * latency + work


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


def fitted(contents):
    """(rate, {ranks: latency}) of measurements: see above."""
    def seconds(row):
        return row["seconds"]["median"]
    first = contents[0]
    latencies = {}
    for content in contents:
        least = min(content["rows"], key=lambda row: row["bytes"])
        latencies[content["ranks"]] = seconds(least) / shared_meetings(least["bytes"], least["slot_bytes"])
    most = max(first["rows"], key=lambda row: row["bytes"])
    waiting = shared_meetings(most["bytes"], most["slot_bytes"]) * latencies[first["ranks"]]
    work = shared_traffic(most["bytes"], first["ranks"]) * max(1, first["ranks"] / first["processors"])
    return work / (seconds(most) - waiting), latencies


def comparison(contents):
    """Rows of a table: ranks, elements, slot, milliseconds measured and predicted, the prediction over the measurement."""
    rate, latencies = fitted(contents)
    rows = []
    for content in contents:
        for row in content["rows"]:
            measured = row["seconds"]["median"]
            predicted = shared_seconds(row["bytes"], content["ranks"], content["processors"], row["slot_bytes"],
                                       latencies[content["ranks"]], rate)
            rows.append([str(content["ranks"]), f"{row['elements']:,}", f"{row['slot_bytes'] / 1024:.0f}",
                         f"{1e3 * measured:.3f}", f"{1e3 * predicted:.3f}", f"{predicted / measured:.2f}"])
    return rows


COMPARISON_HEADER = ["ranks", "elements", "slot, KiB", "measured, ms", "model, ms", "model / measured"]


def fit_text(contents):
    """What the comparison stands on, as a sentence."""
    rate, latencies = fitted(contents)
    meetings = ", ".join(f"{1e6 * latency:.1f} us for {ranks} ranks" for ranks, latency in latencies.items())
    return f"A meeting takes {meetings}; a processor reads and writes {1e-9 * rate:.1f} GB/s."


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
