#!/usr/bin/env python3
"""mpc-train in several processes: what launchers start has the state of one process that accumulates.

Usage: mpc_train_distributed_test.py MPC_TRAIN [MPIRUN]
"""
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import ranks  # noqa: E402

TRAIN = sys.argv.pop(1)
MPIRUN = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else ""
# 1,437 digits make 44 batches, which two and four processes divide.
ARGUMENTS = ["lenet5", "--epochs=1", "--drop-remainder", "--amp-level=O2", "--threads=1"]
LIMIT = 120


def own_address():
    """The address with which this machine reaches others; "" where it reaches none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        try:
            sender.connect(("203.0.113.1", 9))  # nothing is sent
        except OSError:
            return ""
        return sender.getsockname()[0]


def names_hosts():
    """Whether a process may have a host name of its own, as root may as a rule."""
    return subprocess.run(["unshare", "--uts", "hostname", "nodea"], capture_output=True).returncode == 0


def has_mounts():
    """Whether a process may have a folder for shared memory of its own, as root may as a rule."""
    return subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/dev/shm"],
                          capture_output=True).returncode == 0


def version_4():
    """Whether mpirun is of Open MPI 4. Version 5 has another option for what stands for ssh."""
    said = subprocess.run([MPIRUN, "--version"], capture_output=True, text=True).stdout
    return "(Open MPI) 4." in said or "(OpenRTE) 4." in said  # mpirun, and mpiexec


def start(rank, size, port, *arguments):
    return ranks.start_rank([TRAIN, *ARGUMENTS, "--distributed", *arguments], rank, size, port, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def start_both(of_rank_0, of_rank_1):
    """Two processes with arguments of their own."""
    port = ranks.free_port()
    return [start(0, 2, port, *of_rank_0), start(1, 2, port, *of_rank_1)]


def finish(processes):
    """(exit status, standard output, standard error) of each."""
    results = []
    for process in processes:
        output, errors = process.communicate(timeout=LIMIT)
        results.append((process.returncode, output, errors))
    return results


class Distributed(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def alone(self, micro_batches):
        saved = self.path(f"alone{micro_batches}.safetensors")
        hashes = self.path(f"alone{micro_batches}.hashes")
        subprocess.run([TRAIN, *ARGUMENTS, f"--accumulation={micro_batches}", f"--save={saved}",
                        f"--record-hashes={hashes}"], check=True, capture_output=True, timeout=LIMIT)
        return ranks.tensors(saved)

    def test_processes_of_torchrun_have_the_bits_of_one(self):
        for size, steps in ((2, 1), (2, 2), (4, 1)):
            saved = self.path(f"saved{size}.safetensors")
            port = ranks.free_port()
            hashes = self.path(f"hashes{size}")
            results = finish([start(rank, size, port, f"--accumulation={steps}", f"--save={saved}",
                                    f"--record-hashes={hashes}") for rank in range(size)])
            for status, output, errors in results:
                self.assertEqual(status, 0, output + errors)
            self.assertIn(f"{size} processes train together, each with 1 threads", results[0][1])
            self.assertIn("test accuracy", results[0][1])
            self.assertIn("amp: in effect at level O2", results[0][2])
            for _, output, errors in results[1:]:
                self.assertEqual(output, "")
                self.assertNotIn("amp:", errors)
            self.assertEqual(ranks.tensors(saved), self.alone(size * steps))
            recorded = pathlib.Path(hashes).read_text()
            self.assertEqual(len(recorded.splitlines()), 1 + 44 // (size * steps))
            self.assertEqual(recorded, pathlib.Path(self.path(f"alone{size * steps}.hashes")).read_text())

    def test_processes_that_train_alone_are_told_once(self):
        command = [TRAIN, "lenet5", "--data=synthetic", "--steps=1", "--batch-size=4", "--threads=1", "--quiet"]
        note = "mpc-train: torchrun has started 2 processes. Without --distributed each trains alone"
        started = ranks.start_ranks(command, 2, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for (status, _, errors), times in zip(finish(started), (1, 0)):
            self.assertEqual(status, 0, errors)
            self.assertEqual(errors.count(note), times)
        for (status, _, errors) in finish(ranks.start_ranks(command, 1, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                                            text=True)):
            self.assertEqual((status, errors.count("has started")), (0, 0), errors)

    def test_processes_of_mpirun_have_the_bits_of_one_over_both_transports(self):
        if not MPIRUN:
            print("skipped: mpirun is not installed", flush=True)
            return
        for transport in ("shared", "mpi"):
            saved = self.path(f"{transport}.safetensors")
            command = [TRAIN, *ARGUMENTS, "--distributed", f"--transport={transport}", f"--save={saved}"]
            job = subprocess.run(ranks.mpirun_command(MPIRUN, 2, command), env=ranks.mpi_environment(),
                                 capture_output=True, text=True, timeout=LIMIT)
            self.assertEqual(job.returncode, 0, job.stdout + job.stderr)
            self.assertEqual(ranks.tensors(saved), self.alone(2), transport)

    def two_hosts(self, transport, address):
        """Two processes of one machine that have other names of it, so that mpirun and mpc take it for two."""
        # It stands for ssh: agent HOST COMMAND...
        agent = pathlib.Path(self.path("agent"))
        agent.write_text("#!/bin/sh\nhost=$1; shift\nexec unshare --uts sh -c 'hostname \"$0\"; exec sh -c \"$1\"' \"$host\" \"$*\"\n")
        agent.chmod(0o755)
        command = [TRAIN, *ARGUMENTS, "--distributed", "--quiet", f"--save={self.path('hosts.safetensors')}"]
        if transport:
            command.append(f"--transport={transport}")
        flags = ["-H", "nodea:1,nodeb:1", "--mca", "plm_rsh_agent", str(agent)]
        if address:
            flags += ["-x", f"MASTER_ADDR={address}"]
        job = ranks.mpirun_command(MPIRUN, 2, command)
        return subprocess.run([*job[:1], *flags, *job[1:]], env=ranks.mpi_environment(), capture_output=True, text=True,
                              timeout=LIMIT)

    def test_two_host_names_are_two_machines(self):
        address = own_address()
        for missing, what in ((not MPIRUN or not version_4(), "Open MPI 4 is not installed"),
                              (not names_hosts(), "a process may not give itself a host name here"),
                              (not address, "this machine has loopback alone")):
            if missing:
                print(f"skipped: {what}", flush=True)
                return
        job = self.two_hosts("", address)
        self.assertEqual(job.returncode, 0, job.stdout + job.stderr)
        self.assertEqual(ranks.tensors(self.path("hosts.safetensors")), self.alone(2))
        for transport, other, error in (
                ("shared", address, r"transport shared is for one machine, but rank 0 \(host nodea, process \d+\) and rank 1 "
                                    r"\(host nodeb, process \d+\) are on two; accepted is mpi"),
                ("", "", "MASTER_ADDR is not set, and 1 of 2 ranks are on this machine: say where rank 0 listens"),
                ("", "127.0.0.1", 'MASTER_ADDR is "127.0.0.1", which is loopback on the machine of rank 0, and 1 ranks are')):
            job = self.two_hosts(transport, other)
            self.assertEqual(job.returncode, 1, job.stdout + job.stderr)
            self.assertRegex(job.stderr, error)

    def test_text_has_the_schedule_and_the_dropout_of_one_process(self):
        arguments = ["gpt2-tiny", "--data=text", "--steps=16", "--sample=0", "--threads=1", "--quiet",
                     "--dropout=0.1"]
        saved = [self.path("two.safetensors"), self.path("one.safetensors")]
        processes = ranks.start_ranks([TRAIN, *arguments, "--distributed", f"--save={saved[0]}"], 2,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for status, output, errors in finish(processes):
            self.assertEqual(status, 0, output + errors)
        subprocess.run([TRAIN, *arguments, "--accumulation=2", f"--save={saved[1]}"], check=True, capture_output=True,
                       timeout=LIMIT)
        self.assertEqual(ranks.tensors(saved[0]), ranks.tensors(saved[1]))

    def test_the_flags_of_gradients_have_the_bits_of_one_process(self):
        flags = ["--communication-dtype=bf16", "--loss-weight=elements", "--reduction=fast", "--bucket-mib=1"]
        saved = [self.path(name) for name in ("two.safetensors", "one.safetensors", "f32.safetensors")]
        port = ranks.free_port()
        for status, output, errors in finish([start(rank, 2, port, *flags, f"--save={saved[0]}") for rank in range(2)]):
            self.assertEqual(status, 0, output + errors)
        for more, path in ((flags, saved[1]), ([], saved[2])):
            subprocess.run([TRAIN, *ARGUMENTS, "--distributed", "--accumulation=2", *more, f"--save={path}"], check=True,
                           capture_output=True, timeout=LIMIT)
        two, one, wide = (ranks.tensors(path) for path in saved)
        self.assertEqual(two, one)
        self.assertNotEqual(two, wide)

    def test_rank_0_writes_the_plot(self):
        plot = self.path("plot.svg")
        for status, output, errors in finish(start_both([f"--plot={plot}"], [f"--plot={plot}"])):
            self.assertEqual(status, 0, output + errors)
        self.assertIn("learning rate", pathlib.Path(plot).read_text())

    def test_a_plot_in_one_process_is_named_by_both(self):
        for status, _, errors in finish(start_both([f"--plot={self.path('plot.svg')}"], [])):
            self.assertNotEqual(status, 0)
            self.assertIn('rank 0 has "record_learning_rate: 1", rank 1 has "record_learning_rate: 0"', errors)

    def test_accumulation_is_a_power_of_two(self):
        port = ranks.free_port()
        for status, _, errors in finish([start(rank, 2, port, "--accumulation=3") for rank in range(2)]):
            self.assertEqual(status, 1)
            self.assertIn("accumulation_steps is 3; where training is data parallel accepted are powers of two", errors)

    def test_a_process_without_a_launcher_trains_alone(self):
        result = subprocess.run([TRAIN, *ARGUMENTS, "--distributed"], capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("1 processes train together", result.stdout)

    def test_processors_count_wherever_openmp_binds_threads(self):
        command = [TRAIN, "mlp", "--data=synthetic", "--epochs=1", "--steps=2", "--distributed"]
        for size in (1, 2):
            said = []
            for variables in ("OMP_NUM_THREADS=1", "OMP_PROC_BIND=true", "OMP_PLACES=cores"):
                results = finish(ranks.start_ranks(["env", variables, *command], size, stdout=subprocess.PIPE,
                                                   stderr=subprocess.PIPE, text=True))
                for status, output, errors in results:
                    self.assertEqual(status, 0, output + errors)
                said.append(results[0][1].splitlines()[0])
            self.assertRegex(said[0], f"{size} processes train together, each with [0-9]+ threads")
            self.assertEqual(said, [said[0]] * 3)


class Signals(unittest.TestCase):
    def stopped(self, victim, number, name):
        """Sends a signal to one process of two; all must end with its code and say so, and rank 0 must have saved."""
        with tempfile.TemporaryDirectory() as folder:
            processes = ranks.start_ranks([TRAIN, *ARGUMENTS, "--epochs=1000", "--distributed", f"--save={folder}/",
                                           "--save-every=5"], 2, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                          text=True)
            end = time.monotonic() + LIMIT
            while not os.listdir(folder) and time.monotonic() < end:
                time.sleep(0.01)
            processes[victim].send_signal(number)
            for status, output, errors in finish(processes):
                self.assertEqual(status, 128 + number, output + errors)
                self.assertIn(f"stopped by {name} at the end of a step, as all 2 processes; saved in {folder}/", errors)
            checkpoints = [int(name.rpartition("-")[2].partition(".")[0]) for name in os.listdir(folder)]
            # Saved at the step that the processes have agreed on, and not at a multiple of five alone.
            resumed = subprocess.run([TRAIN, *ARGUMENTS, "--accumulation=2", f"--resume={folder}/"],
                                     capture_output=True, text=True, timeout=LIMIT)
            self.assertEqual(resumed.returncode, 0, resumed.stderr)
            self.assertIn(f": {max(checkpoints)} steps", resumed.stdout)

    def test_sigterm_of_any_process_ends_all_with_143(self):
        self.stopped(1, signal.SIGTERM, "SIGTERM")

    def test_ctrl_c_of_rank_0_ends_all_with_130(self):
        self.stopped(0, signal.SIGINT, "SIGINT")


class Refusals(unittest.TestCase):
    def refused(self, processes, *texts):
        for status, output, errors in finish(processes):
            self.assertEqual(status, 1, output + errors)
            for text in texts:
                self.assertRegex(errors, text)

    def test_options_that_differ_are_named_by_both(self):
        self.refused(start_both(["--clip-norm=1"], ["--clip-norm=2"]),
                     'rank 0 has "clip_global_norm: 1", rank 1 has "clip_global_norm: 2"')

    def test_budgets_rates_and_scales_that_differ(self):
        self.refused(start_both([], ["--memory-budget=1GiB"]),
                     'rank 0 has "--memory-budget: 0", rank 1 has "--memory-budget: 1073741824"')
        self.refused(start_both([], ["--lr=0.5"]), 'rank 0 has "learning_rate: .*", rank 1 has "learning_rate: 0.5"')
        self.refused(start_both(["--loss-scale=8"], ["--loss-scale=16"]),
                     'rank 0 has "loss scale at first: 8", rank 1 has "loss scale at first: 16"')

    def test_numbers_of_accumulated_batches_that_differ(self):
        self.refused(start_both(["--accumulation=1"], ["--accumulation=2"]),
                     'rank 0 has "accumulation_steps: 1", rank 1 has "accumulation_steps: 2"')

    @unittest.skipUnless(has_mounts(), "mounting needs the right to")
    def test_too_little_shared_memory(self):
        port = ranks.free_port()
        mounted = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=64k none /dev/shm && exec "$@"', "sh"]
        first = ranks.start_rank([*mounted, TRAIN, *ARGUMENTS, "--distributed"], 0, 2, port, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        # The other waits for what rank 0 does not create, and hears why.
        self.refused([first, start(1, 2, port)], "shared memory has no room for the [0-9]+ bytes")

    def test_seeds_that_differ(self):
        self.refused(start_both(["--seed=1"], ["--seed=2"]), 'rank 0 has "seed: 1", rank 1 has "seed: 2"')

    def test_data_sets_of_other_sizes(self):
        self.refused(start_both(["--batch-size=32"], ["--batch-size=16"]),
                     'rank 0 has "batches of an epoch: 44", rank 1 has "batches of an epoch: 89"')

    def test_numbers_of_threads_that_differ(self):
        self.refused(start_both(["--threads=1"], ["--threads=2"]), 'rank 0 has "threads: 1", rank 1 has "threads: 2"')

    def test_numbers_of_epochs_that_differ(self):
        self.refused(start_both([], ["--epochs=2"]), 'rank 0 has "epochs: 1", rank 1 has "epochs: 2"')

    def test_numbers_of_processes_that_differ(self):
        port = ranks.free_port()
        self.refused([start(0, 2, port), start(1, 4, port)], "was told of 2 ranks and rank 1 .* of 4")

    def test_transports_that_differ(self):
        self.refused(start_both(["--transport=shared"], []), '"transport": rank 0 has shared, rank 1 has auto')

    def test_mpi_without_its_launcher(self):
        self.refused(start_both(["--transport=mpi"], ["--transport=mpi"]), 'transport "mpi": (no launcher of MPI has '
                     "started this process|this build has no MPI transport)|rank [01] .* has failed: transport \"mpi\"")

    def test_a_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.refused([start(0, 2, port)], f"127.0.0.1:{port}.* in use")

    def test_a_variable_that_is_out_of_range(self):
        self.refused([start(2, 2, ranks.free_port())], "RANK")

    def test_reductions_that_differ(self):
        self.refused(start_both(["--reduction=fast"], []), 'rank 0 has "reduction: kFast", rank 1 has "reduction: kOrdered"')

    def test_a_flag_of_processes_for_one_process(self):
        sends, adds = "one process alone sends nothing", "one process may have it"
        for flag, reason in {"--transport=shared": sends, "--loss-weight=elements": adds,
                             "--communication-dtype=f16": adds, "--reduction=fast": sends,
                             "--bucket-mib=0": sends}.items():
            result = subprocess.run([TRAIN, *ARGUMENTS, flag], capture_output=True, text=True, timeout=LIMIT)
            self.assertEqual(result.returncode, 2)
            self.assertRegex(result.stderr, f"{flag} needs --distributed: .*{reason}")


if __name__ == "__main__":
    unittest.main()
