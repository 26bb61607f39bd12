"""Files that version 0.1.0 wrote are read and give the bits that they gave then.

    old_files_test.py PROGRAMS_FOLDER FILES_FOLDER [--record]

bnnet-0.1.mpcx     mpc-train bnnet --amp-level=O2 --batch-size=8 --threads=1 --emit=...
bnnet-0.1.safetensors   mpc-train bnnet --amp-level=O2 --batch-size=64 --threads=1 --lr-schedule=constant --epochs=1 --save=...
bnnet-clip-0.1.mpcx     as bnnet-0.1.mpcx, with --clip-norm=0.5. Its sums of squares are f64 since, which need more workspace than
                   the file plans and may round otherwise: it is planned again at load, and its bits are not held.
bits.json          per kind of processor and version of oneDNN, digests of the state that each leaves; --record adds those of
                   this processor and library. Version 0.2.0 gave the bits of version 0.1.0 with oneDNN 2, and then those of
                   oneDNN 3. Since then a norm's sums are added in another order, and so are those of the library's operations,
                   which are cut into parts.
Exit status 77: everything was read and ran, but no bits are known for a processor and a oneDNN of this kind.
"""
import hashlib
import json
import math
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

SKIPPED = 77


def processor():
    """What the bits depend on beside the library: the processor's model, since libraries choose their blocks by its caches."""
    text = pathlib.Path("/proc/cpuinfo").read_text()
    fields = {name: re.search(rf"^{name}\s*: (.*)$", text, re.MULTILINE) for name in ("cpu family", "model", "model name")}
    return " ".join(found[1] for found in fields.values() if found)


def library(path):
    """The oneDNN that wrote a checkpoint: "oneDNN 3"."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    environment = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["environment"])
    return "oneDNN " + environment["onednn"].split(".")[0]


def tensors_digest(path):
    """A digest of the names, types, shapes and bits of a safetensors file."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    digest = hashlib.sha256()
    for name, entry in sorted(header.items()):
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            digest.update(f"{name} {entry['dtype']} {entry['shape']} ".encode())
            digest.update(data[8 + size + begin : 8 + size + end])
    return digest.hexdigest()


def run(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True, env={**os.environ, "MPC_CACHE_DIR": "off"})
    if done.returncode != 0:
        sys.exit(f"{program.name} {' '.join(arguments)}: exit status {done.returncode}\n{done.stderr}")


def numbers(path):
    """Every f32 of a safetensors file."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    found = []
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            found += struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin : 8 + size + end])
    return found


def check_clipped(programs, files, folder):
    """A step that clips runs, with one thread and with more than it was planned for, and leaves finite numbers."""
    for threads in (1, 2):
        state = folder / f"clipped{threads}"
        run(programs / "mpc-run", str(files / "bnnet-clip-0.1.mpcx"), "--data=digits", "--steps=40", f"--threads={threads}",
            f"--dump-state={state}")
        found = numbers(state)
        if not found or not all(map(math.isfinite, found)):
            sys.exit(f"the old Program that clips leaves numbers that are not finite, with {threads} threads")


def results(programs, files, folder):
    """Digests of what the old files lead to."""
    state, resumed = folder / "state", folder / "resumed.safetensors"
    run(programs / "mpc-run", str(files / "bnnet-0.1.mpcx"), "--data=digits", "--steps=40", "--threads=1",
        f"--dump-state={state}")
    run(programs / "mpc-train", "bnnet", "--amp-level=O2", "--batch-size=64", "--threads=1", "--lr-schedule=constant",
        "--epochs=2", f"--resume={files / 'bnnet-0.1.safetensors'}", f"--save={resumed}", "--quiet")
    return library(resumed), {"program": tensors_digest(state), "checkpoint": tensors_digest(resumed)}


def main():
    # The old Programs were compiled for processors with AVX-512.
    if not re.search(r"^flags\s*:.*\bavx512f\b", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE):
        print("skipped: needs AVX-512")
        return SKIPPED
    programs, files = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as folder:
        check_clipped(programs, files, pathlib.Path(folder))
        library_name, found = results(programs, files, pathlib.Path(folder))
    kind = f"{processor()}, {library_name} in parts"
    path = files / "bits.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    if "--record" in sys.argv:
        path.write_text(json.dumps({**known, kind: found}, indent=2) + "\n")
    elif kind not in known:
        print(f"skipped: the bits of old files are not known for {kind}")
        return SKIPPED
    for name, digest in known.get(kind, {}).items():
        if found[name] != digest:
            print(f"the old {name} gives other bits than it did")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
