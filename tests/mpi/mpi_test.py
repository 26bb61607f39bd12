"""Groups of processes that mpirun starts: mpi_test.py --mpirun=PROGRAM --ranks=PROGRAM --own-start=PROGRAM

--ranks is mpi_ranks, whose scenarios tests/mpi/mpi_ranks.h lists; --own-start is mpi_own_start. Exit status 77: skipped,
with the reason.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from ranks import mpi_environment  # noqa: E402

SKIPPED = 77
# What a job may take that mpirun ends: starting it, a second or two until mpirun kills, and a machine with other work. It
# is less than the time limit of the groups, which is 60 s.
ENDS_WITHIN = 40

OTHER_SIZES = (r"rank [01]: INVALID_ARGUMENT: transport \"mpi\": rank [01] expected \d+ bytes of rank [01] in all-reduce and "
               r"got \d+; all ranks must call the same functions with the same sizes\n")

options = argparse.Namespace()


def launcher():
    """The command in front of a program; "{ranks}" is the number of processes."""
    command = [options.mpirun, "-n", "{ranks}"]
    version = subprocess.run([options.mpirun, "--version"], capture_output=True, text=True).stdout
    if "Open MPI" in version or "OpenRTE" in version:
        command += ["--oversubscribe", "--bind-to", "none"]
        if os.geteuid() == 0:
            command.append("--allow-run-as-root")
    return command


def run(ranks, *program, limit=300):
    """Runs a job: (exit status, standard output, standard error, seconds)."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        job = subprocess.run([part.format(ranks=ranks) for part in launcher()] + list(program),
                             env=mpi_environment(MPC_TEST_FOLDER=folder), stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, timeout=limit)
    return job.returncode, job.stdout, job.stderr, time.monotonic() - start


class Results(unittest.TestCase):
    def expect_lines(self, ranks, scenario, line):
        status, output, errors, _ = run(ranks, options.ranks, scenario)
        self.assertEqual(status, 0, output + errors)
        self.assertEqual(sorted(output.splitlines()), [line.format(rank=rank) for rank in range(ranks)])

    def test_two_ranks_give_the_bits_of_the_tree(self):
        self.expect_lines(2, "results", "rank {rank} of 2 has all results")

    def test_four_ranks_give_the_bits_of_the_tree(self):
        self.expect_lines(4, "results", "rank {rank} of 4 has all results")

    def test_a_group_of_one(self):
        self.expect_lines(1, "results", "rank {rank} of 1 has all results")

    def test_copies_and_barriers_of_three_ranks(self):
        self.expect_lines(3, "results", "rank {rank} of 3 has all results")

    def test_sums_in_the_order_of_mpi(self):
        for ranks in (1, 2, 4):
            self.expect_lines(ranks, "any-order", f"rank {{rank}} of {ranks} has all sums")

    def test_messages_that_are_longer_than_one_of_mpi(self):
        self.expect_lines(2, "long-messages", "rank {rank} has long messages")

    def test_groups_open_twice_at_once_but_not_after_mpi_has_ended(self):
        self.expect_lines(2, "opening", 'again: FAILED_PRECONDITION: transport "mpi": MPI has ended in this process, as '
                          "when its last group was destroyed, and cannot start again")

    def test_another_number_of_processes_than_expected(self):
        status, _, errors, _ = run(3, options.ranks, "opening")
        self.assertNotEqual(status, 0)
        self.assertIn('FAILED_PRECONDITION: transport "mpi": MPI has started 3 processes, but 2 are expected', errors)


    def test_init_brings_processes_together(self):
        self.expect_lines(2, "init", "rank {rank} of 2, local rank {rank}, over mpi: 0 1")


class ProgramsThatStartMpi(unittest.TestCase):
    def test_their_mpi_is_used_and_left_to_them(self):
        status, output, errors, _ = run(2, options.own_start, "funneled")
        self.assertEqual(status, 0, output + errors)
        self.assertEqual(sorted(output.splitlines()), ["group: OK"] * 2 + ["own sum: 2"] * 2)

    def test_less_than_funneled_is_refused(self):
        status, output, errors, _ = run(2, options.own_start, "single")
        self.assertEqual(status, 0, output + errors)
        self.assertEqual(sorted(output.splitlines()), [
            'group: FAILED_PRECONDITION: transport "mpi": MPI gives less than MPI_THREAD_FUNNELED, and mpc computes '
            "with threads"] * 2 + ["own sum: 2"] * 2)


class Failures(unittest.TestCase):
    def ended(self, scenario, ranks=2, limit=ENDS_WITHIN):
        """What a job wrote that did not end well, but in time."""
        return self.ended_with_errors(scenario, ranks, limit)[0]

    def ended_with_errors(self, scenario, ranks=2, limit=ENDS_WITHIN):
        """The same, and what it wrote on standard error."""
        status, output, errors, seconds = run(ranks, options.ranks, scenario)
        self.assertNotEqual(status, 0, output + errors)
        self.assertLess(seconds, limit)
        self.assertIn("rank 0 has ended\n", output)
        return output, errors

    def test_a_rank_that_leaves_is_named(self):
        output, errors = self.ended_with_errors("leaves")
        self.assertIn('rank 0: UNAVAILABLE: transport "mpi": rank 1 has left the group; rank 0 waited for it in all-reduce\n',
                      output)
        # It cannot leave in order, and says why.
        self.assertIn('mpc: MPI is not ended, for transport "mpi": rank 0 has failed; rank 1 waited for the other ranks in '
                      "leaving the group\n", errors)

    def test_a_rank_that_failed_is_named(self):
        output = self.ended("fails")
        self.assertIn("rank 1: INVALID_ARGUMENT: ", output)
        self.assertIn('rank 0: UNAVAILABLE: transport "mpi": rank 1 has failed; rank 0 waited for rank 1 in all-reduce\n',
                      output)

    def test_a_rank_that_says_that_it_failed_is_named_with_its_place(self):
        self.assertRegex(self.ended("init-fails"), r"rank 0: UNAVAILABLE: rank 1 \(host .*\) has failed: the disk is full; it "
                         r'was last at step 17, "train_step"; rank 0 waited in barrier\n')

    def test_a_rank_that_does_not_come_is_named_after_the_time_limit(self):
        self.assertRegex(self.ended("stops"), r'rank 0: DEADLINE_EXCEEDED: transport "mpi": rank 0 has waited 2\d\d\d ms for '
                         "rank 1 in all-reduce\n")

    def test_sums_in_the_order_of_mpi_end_with_a_rank_that_fails_or_does_not_come(self):
        self.assertIn('rank 0: UNAVAILABLE: transport "mpi": rank 1 has failed; rank 0 waited for the other ranks in '
                      "all-reduce\n", self.ended("fails-in-any-order"))
        self.assertRegex(self.ended("stops-in-any-order"), r'rank 0: DEADLINE_EXCEEDED: transport "mpi": rank 0 has waited '
                         r"2\d\d\d ms for the other ranks in all-reduce\n")

    def test_fewer_bytes_than_expected(self):
        self.assertRegex(self.ended("sends-less"), OTHER_SIZES)

    def test_more_bytes_than_expected(self):
        self.assertRegex(self.ended("sends-more"), OTHER_SIZES)

    def test_another_thread_is_refused(self):
        self.assertIn('rank 1: FAILED_PRECONDITION: transport "mpi": all-reduce was called in another thread than the one '
                      "that opened the group\n", self.ended("another-thread"))

    def test_mpirun_ends_the_others_where_a_rank_exits(self):
        self.assertEqual(self.unfinished("exits"), 3)

    def test_mpirun_ends_the_others_where_a_rank_is_killed(self):
        self.assertEqual(self.unfinished("is-killed"), 128 + 9)

    def test_mpirun_ends_the_others_where_a_rank_fails_before_it_opens_the_group(self):
        self.unfinished("never-opens")

    def unfinished(self, scenario, ranks=4):
        """The exit status of a job that mpirun has ended in time."""
        status, output, errors, seconds = run(ranks, options.ranks, scenario)
        self.assertNotEqual(status, 0, output + errors)
        self.assertLess(seconds, ENDS_WITHIN)
        self.assertFalse(re.search("results|OK", output), output)
        return status


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mpirun")
    parser.add_argument("--ranks")
    parser.add_argument("--own-start")
    parser.parse_known_args(namespace=options)
    if not options.ranks:
        print("skipped: this build has no MPI transport")
        return SKIPPED
    if not options.mpirun or not shutil.which(options.mpirun):
        print("skipped: mpirun is not installed")
        return SKIPPED
    rest = [argument for argument in sys.argv if not argument.startswith(("--mpirun", "--ranks", "--own-start"))]
    return 0 if unittest.main(argv=rest, exit=False, verbosity=2).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
