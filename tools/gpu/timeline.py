#!/usr/bin/env python3
"""When the nodes of a packed network's step ran on the GPU: runs it with libgpu_timeline.so and prints the kernels that
take most of a step, then how much of the step nothing ran and how much several did. timeline-NETWORK.txt has every node
of one launch. With --of the records of an earlier run are read, such as those of a peer."""

import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys

KERNELS = 12
SKIPPED_LAUNCHES = 2

Activity = collections.namedtuple("Activity", "begin end graph node blocks threads registers bytes name")


def activities(lines):
    """The activities of graphs, in the order of their beginnings."""
    found = []
    for line in lines:
        fields = line.rstrip("\n").split("\t")
        if len(fields) != len(Activity._fields):
            continue  # the last line of a program that was killed
        begin, end, graph, node, blocks, threads, registers, size, name = fields
        if graph != "0":
            found.append(Activity(int(begin), int(end), graph, node, blocks, int(threads), int(registers), int(size), name))
    return sorted(found)


def short(name):
    """A name without the places that mangling and anonymous namespaces add."""
    found = re.search(r"[A-Za-z]\w*?Kernel(?![a-z])|nvjet\w+|cudnn\w+|cutlass_\w+", name)
    return re.sub(r"^.*\d(?=[A-Z]\w*Kernel$)", "", found[0]) if found else name


def launches(found):
    """The launches of the graph that ran last, each a list of activities."""
    by_node = collections.defaultdict(list)
    for activity in found:
        if activity.graph == found[-1].graph:
            by_node[activity.node].append(activity)
    count = max((len(of_node) for of_node in by_node.values()), default=0)
    whole = [of_node for of_node in by_node.values() if len(of_node) == count]
    return [[of_node[launch] for of_node in whole] for launch in range(count)]


def median(values):
    return sorted(values)[len(values) // 2]


def covered(launch):
    """Nanoseconds in which nothing ran, and in which more than one activity did, between a launch's begin and end."""
    edges = sorted([(activity.begin, 1) for activity in launch] + [(activity.end, -1) for activity in launch])
    idle = several = 0
    running, since = 0, edges[0][0]
    for time, change in edges:
        idle += (time - since) if running == 0 else 0
        several += (time - since) if running > 1 else 0
        running, since = running + change, time
    return idle, several


def table(all_launches):
    """Lines about the median launch, and lines of its nodes."""
    kept = all_launches[SKIPPED_LAUNCHES:] or all_launches
    durations = [median([launch[i].end - launch[i].begin for launch in kept]) / 1000 for i in range(len(kept[0]))]
    middle = sorted(kept, key=lambda launch: max(a.end for a in launch) - min(a.begin for a in launch))[len(kept) // 2]
    sums, counts = collections.Counter(), collections.Counter()
    for activity, duration in zip(middle, durations):
        sums[short(activity.name)] += duration
        counts[short(activity.name)] += 1
    begin, end = min(a.begin for a in middle), max(a.end for a in middle)
    idle, several = covered(middle)
    lines = [f"{time:9.1f} us {100 * time / sum(durations):5.1f} %  {counts[name]:4d} x {name[:70]}"
             for name, time in sums.most_common(KERNELS)]
    lines.append(f"{(end - begin) / 1000:9.1f} us of {len(middle)} nodes, which take {sum(durations):.1f} us; nothing ran for "
                 f"{idle / 1000:.1f} us, several nodes for {several / 1000:.1f} us")
    nodes = []
    for activity, duration in sorted(zip(middle, durations), key=lambda pair: pair[0].begin):
        nodes.append(f"{(activity.begin - begin) / 1000:10.2f} {duration:9.2f} us  {activity.blocks} x {activity.threads}, "
                     f"{activity.registers} registers, {activity.bytes} bytes: {activity.name}")
    return lines, nodes


def record(network, path):
    environment = {**os.environ, "CUDA_INJECTION64_PATH": str(pathlib.Path("lib/libgpu_timeline.so").resolve()),
                   "MPC_TIMELINE": str(path)}
    command = ["bin/mpc-run", f"programs/{network}-cuda.mpcx", "--data=synthetic", "--steps=12"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          env=environment)
    if done.returncode != 0 or not path.exists():
        sys.exit(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network", help="a packed program, or a name for --of")
    parser.add_argument("folder", help="for results")
    parser.add_argument("--of", help="a file that libgpu_timeline.so wrote")
    arguments = parser.parse_args()

    folder = pathlib.Path(arguments.folder)
    path = pathlib.Path(arguments.of) if arguments.of else folder / f"timeline-{arguments.network}.tsv"
    if not arguments.of:
        record(arguments.network, path)
    with open(path, encoding="utf-8") as file:
        found = launches(activities(file))
    if not found:
        sys.exit(f"{path}: no launch of a graph is in it")
    lines, nodes = table(found)
    (folder / f"timeline-{arguments.network}.txt").write_text("\n".join(nodes) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
