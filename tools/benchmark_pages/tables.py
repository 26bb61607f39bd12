"""Tables of Markdown from the JSON that mpc-bench writes. Each takes the contents of files and returns lines."""

import reduction_model


def _markdown(header, rows):
    if not rows:
        raise ValueError("no row to print")
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def _digits(value):
    """Three significant digits, thousands grouped."""
    if value is None:
        return ""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def _times(ratio):
    return f"{ratio['median']:.2f} ({ratio['p5']:.2f} .. {ratio['p95']:.2f})"


def _milliseconds(contestant):
    return _digits(1e3 * contestant["median"])


def _mebibytes(size):
    return "" if size is None else _digits(size / 2**20)


def _network(row):
    sizes = ", ".join(f"{name} {size}" for name, size in row.get("sizes", {}).items())
    return f"{row['model']}:{row['batch']}" + (f", {sizes}" if sizes else "")


def _unless_plain(settings):
    """What sets this row apart from a step as mpc compiles it by itself."""
    return ", ".join(word for word in settings.split(", ") if word not in ("fused regions",))


def _by_row(files):
    """(row, {peer: its row}) in the order of the files; a file has one entry for each peer of a row."""
    found = {}
    for content in files:
        for row in content["rows"]:
            key = (_network(row), row["mode"], row.get("busy", 0), row["mpc"]["settings"])
            peers = found.setdefault(key, (row, {}))[1]
            if "peer" in row:
                peers[row["peer"]["name"]] = row
    return list(found.values())


def _peer_names(rows):
    names = []
    for _, peers in rows:
        names += [name for name in peers if name not in names]
    return names


def ratios(files):
    """Step times and how many times as long each peer takes."""
    rows = _by_row(files)
    names = _peer_names(rows)
    header = ["network:batch", "mode", "mpc, ms"]
    for name in names:
        header += [f"{name}, ms", "ratio (5 % .. 95 %)"]
    table = []
    for row, peers in rows:
        mode = ", ".join(filter(None, [row["mode"], _unless_plain(row["mpc"]["settings"])]))
        cells = [_network(row), mode, _milliseconds(row["mpc"])]
        for name in names:
            peer = peers.get(name)
            cells += [_milliseconds(peer["peer"]), _times(peer["ratio"])] if peer else ["", ""]
        table.append(cells)
    return _markdown(header, table)


def memory(files):
    """MiB that are planned and that steps add to the process; seconds to the end of the first step."""
    rows = _by_row(files)
    names = _peer_names(rows)
    header = ["network:batch", "mode", "mpc: planned, MiB", "resident"] + [f"{name}: resident" for name in names]
    header += ["mpc: first step, s", "cached"]
    for name in names:
        header += [f"{name}: first step, s", "cached"]
    table = []
    for row, peers in rows:
        mpc = row["mpc"]
        found = [peers[name]["peer"] if name in peers else None for name in names]
        cells = [_network(row), row["mode"], _mebibytes(mpc["peak_bytes"]), _mebibytes(mpc["steps_resident_bytes"])]
        cells += [_mebibytes(peer["steps_resident_bytes"]) if peer else "" for peer in found]
        for contestant in [mpc] + found:
            first = contestant["first_step_seconds"] if contestant else {"cold": None, "cached": None}
            cells += [_digits(first["cold"]), _digits(first["cached"])]
        table.append(cells)
    return _markdown(header, table)


def busy(files):
    """One column for each network: the peer's time over mpc's beside each number of busy processes."""
    rows = _by_row(files)
    networks = list(dict.fromkeys(_network(row) for row, _ in rows))
    cells = {(row["busy"], _network(row)): _times(next(iter(peers.values()))["ratio"]) for row, peers in rows}
    counts = list(dict.fromkeys(row["busy"] for row, _ in rows))
    return _markdown(["busy processes"] + networks,
                     [[str(count)] + [cells[count, network] for network in networks] for count in counts])


def profile(files):
    """Matrix work beside the processor's rate, and what packing weights and loss scaling take of a step."""
    header = ["network:batch", "mode", "step's kernels, ms", "matrix work, GFLOP", "its share", "GFLOP/s",
              "of multiply-adds on registers", "packing weights, ms", "loss scaling, ms", "its share"]
    table = []
    for step in [step for content in files for step in content["profiles"]]:
        total = step["step"]["median"]
        work = step["matrix_work"]
        rate = work["flops"] / work["seconds"]
        packing = sum(kernel["median"] for kernel in step["kernels"] if kernel["name"] == "pack_weight")
        scaling = step["loss_scaling"]
        table.append([_network(step), step["mode"], _digits(1e3 * total), _digits(1e-9 * work["flops"]),
                      f"{100 * work['seconds'] / total:.0f} %", _digits(1e-9 * rate),
                      f"{100 * rate / work['limit_flops_a_second']:.0f} % ({work['limit_instructions']})",
                      _digits(1e3 * packing), _digits(1e3 * scaling["median"]), f"{100 * scaling['share']:.2f} %"])
    return _markdown(header, table)


def operations(files):
    """Times of operations and which fraction of the machine's limit they reach, a column for each type."""
    types = list(dict.fromkeys(row["dtype"] for content in files for row in content["rows"]))
    found = {}
    for content in files:
        for row in content["rows"]:
            shape = "x".join(str(size) for size in row["shape"])
            found.setdefault((row["op"], shape, row["limit"]), {})[row["dtype"]] = row
    header = ["graph", "shape", "limit"]
    for dtype in types:
        header += [f"{dtype}: ms", "of the limit"]
    table = []
    for (op, shape, limit), by_type in found.items():
        cells = [op, shape, limit]
        for dtype in types:
            row = by_type.get(dtype)
            cells += [_milliseconds(row["seconds"]), f"{100 * row['fraction']['median']:.0f} %"] if row else ["", ""]
        table.append(cells)
    lines = _markdown(header, table)
    copies = [content["limits"]["copy_bytes_per_second"] for content in files]
    lines += ["", "Copies reached " + ", then ".join(
        f"{1e-9 * copy['median']:.1f} ({1e-9 * copy['p5']:.1f} .. {1e-9 * copy['p95']:.1f})" for copy in copies) +
        " GB/s."]
    return lines


def choices(files):
    """Times of every kernel for an operation, that of the rules first, and how much longer the second one takes."""
    found = {}
    for content in files:
        for row in content["rows"]:
            shape = "x".join(str(size) for size in row["shape"])
            found.setdefault((row["op"], shape), []).append((row["choice"], row["seconds"]))
    most = max(len(kernels) for kernels in found.values())
    header = ["operation", "shape", "chosen, ms"] + ["other, ms"] * (most - 1) + ["first other over chosen"]
    table = []
    for (op, shape), kernels in found.items():
        cells = [f"{choice} {_milliseconds(seconds)}" for choice, seconds in kernels]
        ratio = f"{kernels[1][1]['median'] / kernels[0][1]['median']:.2f}" if len(kernels) > 1 else ""
        table.append([op, shape, *cells, *[""] * (most - len(cells)), ratio])
    return _markdown(header, table)


def reading(files):
    """Pictures a second of mpc and of each peer, mpc's rate over the peer's, and how far pixels are apart."""
    table = []
    for content in files:
        for index, row in enumerate(content["rows"]):
            if index == 0:
                table.append([f"mpc, {row['mpc']['settings']}", _digits(row["mpc"]["median"]), ""])
            name = row["peer"]["name"] + (" (best)" if row["best"] else "")
            table.append([name, _digits(row["peer"]["median"]), _times(row["ratio"])])
    lines = _markdown(["program", "pictures a second", "mpc / it (5 % .. 95 %)"], table)
    for pixels in [content["pixels"] for content in files]:
        lines += ["", f"Pixels of {pixels['pictures']} pictures are at most {pixels['largest']:.3f} levels apart, "
                  f"{pixels['mean']:.6f} in the mean."]
    return lines


def ranks(files):
    """Steps of several processes, beside what one rank does alone and what ranks send each other, one process, and peers."""
    rows = _by_row(files)
    own = ("mpc-rank-alone", "mpc-one-process")
    names = [name for name in _peer_names(rows) if name not in own]
    header = ["network:batch", "mode", "ranks x threads", "step, ms", "a rank alone, ms", "sent alone, ms",
              "step / (alone + sent)", "one process, ms", "it / step (5 % .. 95 %)"]
    for name in names:
        header += [f"{name}, ms", "it / step (5 % .. 95 %)"]
    table = []
    for row, peers in rows:
        alone, together = (peers[name] for name in own)
        cells = [_network(row), row["mode"], f"{row['ranks']} x {row['threads']}", _milliseconds(row["mpc"]),
                 _milliseconds(alone["peer"]), _milliseconds(row["mpc"]["reduction"]), _times(row["overhead"]),
                 _milliseconds(together["peer"]), _times(together["ratio"])]
        for name in names:
            peer = peers.get(name)
            cells += [_milliseconds(peer["peer"]), _times(peer["ratio"])] if peer else ["", ""]
        table.append(cells)
    return _markdown(header, table)


def reductions(files):
    """Sums over processes on their own, and what the model says of them."""
    return [*_markdown(reduction_model.COMPARISON_HEADER, reduction_model.comparison(files)), "",
            reduction_model.fit_text(files)]


def versions(files):
    """Programs with their versions, as the files name them, each once."""
    found = [row[side]["version"] for content in files for row in content.get("rows", [])
             for side in ("mpc", "peer") if side in row]
    return list(dict.fromkeys(found))


KINDS = {"ratios": ratios, "memory": memory, "busy": busy, "profile": profile, "operations": operations,
         "choices": choices, "ranks": ranks, "reading": reading, "reductions": reductions}
