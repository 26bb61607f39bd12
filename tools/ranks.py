"""Processes of mpc-train that train together, and what they have saved, for scripts and tests. Standard library only."""

import json
import os
import pathlib
import socket
import struct
import subprocess
import time


def free_port():
    """A port of this machine that nobody listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start_rank(command, rank, size, port, **keywords):
    """Starts one process with the variables of torchrun. `keywords` are those of Popen."""
    environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(rank),
                       LOCAL_WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    return subprocess.Popen(command, env=environment, **keywords)


def start_ranks(command, size, **keywords):
    """Starts a group of `size` processes, in the order of ranks."""
    port = free_port()
    return [start_rank(command, rank, size, port, **keywords) for rank in range(size)]


def mpirun_command(mpirun, size, command):
    """The command that starts a group of `size` processes on this machine, whatever cores it has."""
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return [mpirun, "-n", str(size), "--oversubscribe", "--bind-to", "none", *root, *command]


def mpi_environment(**variables):
    """The environment of a process that loads MPI, which keeps memory until the process ends. The address sanitizer is
    told not to take that for leaks."""
    told = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "detect_leaks=0"]))
    return dict(os.environ, ASAN_OPTIONS=told, **variables)


# For sh: keeps what a rank of mpirun says, and its exit status. mpirun itself may be ended first. A trap lets sh live
# until its child has ended.
RECORD_RANK = """
log="$0/rank$OMPI_COMM_WORLD_RANK"
trap : TERM INT HUP
"$@" >"$log" 2>&1
status=$?
echo $status >"$log.status"
exit $status
"""
LAST_LINES = 40


class Group:
    """Processes that train together, whose output is kept in `folder`. mpirun starts them where it is named; else this
    does, with the variables of torchrun."""

    def __init__(self, command, size, folder, mpirun=""):
        self.folder, self.size, self.mpirun = pathlib.Path(folder), size, mpirun
        for old in self.folder.glob("rank*"):
            old.unlink()
        if mpirun:
            recorded = mpirun_command(mpirun, size, ["sh", "-c", RECORD_RANK, str(self.folder), *command])
            self.started = {"mpirun": self._start("mpirun", lambda **keywords: subprocess.Popen(
                recorded, env=mpi_environment(), **keywords))}
            return
        port = free_port()
        self.started = {f"rank{rank}": self._start(f"rank{rank}", lambda rank=rank, **keywords: start_rank(
            command, rank, size, port, **keywords)) for rank in range(size)}

    def _start(self, name, start):
        with open(self.folder / name, "w", encoding="utf-8") as output:
            return start(stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)

    def failure(self, limit):
        """Waits at most `limit` seconds, and ends who still runs then. "" where every process ended with status 0, else
        the statuses and the last lines of all."""
        end = time.monotonic() + limit
        late = False
        for process in self.started.values():
            try:
                process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                late = True
        if late:
            self._end()
            return f"not all had ended after {limit} s\n{self._report()}"
        return "" if all(process.returncode == 0 for process in self.started.values()) else self._report()

    def _end(self):
        for process in self.started.values():
            process.terminate()  # mpirun passes it on to its ranks
        time.sleep(2)
        for process in self.started.values():
            process.kill()
            process.wait()

    def _report(self):
        parts = [self._part(name, process.returncode) for name, process in self.started.items()]
        if self.mpirun:
            time.sleep(1)  # for ranks that end behind mpirun
            for rank in range(self.size):
                status = self.folder / f"rank{rank}.status"
                parts.append(self._part(f"rank{rank}", status.read_text().strip() if status.exists() else "unknown"))
            parts.append("An mpirun that gets SIGTERM, SIGINT or SIGHUP ends with status 1, and says nothing itself.")
        return "\n".join(parts)

    def _part(self, name, status):
        output = self.folder / name
        lines = output.read_text(encoding="utf-8", errors="replace").splitlines() if output.exists() else []
        said = [f"  {line}" for line in lines[-LAST_LINES:]] or ["  (it said nothing)"]
        return "\n".join([f"{name} ended with status {status}", *said])


def tensors(path):
    """The bytes of each tensor of a checkpoint, without the sums over micro-batches, which one process may have."""
    content = pathlib.Path(path).read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + length])
    data = content[8 + length:]
    return {name: data[slice(*entry["data_offsets"])] for name, entry in header.items()
            if name != "__metadata__" and not name.startswith("accumulator.")}
