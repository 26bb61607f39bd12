// Bad command lines of mpc-bench: a clear error and a non-zero exit before anything is measured.
#include <gtest/gtest.h>

#include "tests/tools/refusal.h"
#include "tests/tools/tool_runner.h"

namespace mpc::tools {
namespace {

class BadBench : public testing::TestWithParam<BadUsage> {};

TEST_P(BadBench, IsRefusedBeforeAnythingBegins) {
  ExpectRefused(RunTool(MPC_BENCH, GetParam().arguments), kBadUsage, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    OfNetworks, BadBench,
    testing::Values(
        BadUsage{{}, {"which model? choose among "}},
        BadUsage{{"lenet5", "--step=3"}, {"unknown flag '--step'; did you mean --steps?"}},
        BadUsage{{"faint", "--peer=torch"},
                 {"knows bert, bert-tiny, bnnet, gpt2, gpt2-tiny, lenet5, mlp, resnet18", "only, not faint"}},
        BadUsage{{"lenet5", "--peer=torch,jax"}, {"'jax' is not one of torch, torch-compile, "}},
        BadUsage{{"lenet5", "--peer=mpc-f32"}, {"--peer=mpc-f32 and --amp-level=O0 would measure the same step twice"}},
        BadUsage{{"lenet5", "--peer=mpc-unfused", "--fusion=false"},
                 {"--peer=mpc-unfused and --fusion=false would measure the same step twice"}},
        BadUsage{{"lenet5", "--peer=mpc-one-thread", "--threads=1"},
                 {"--peer=mpc-one-thread and --threads=1 would measure the same step twice"}},
        BadUsage{{"lenet5", "--ranks=3"}, {"mpc-bench: --ranks: '3' is not a power of two from 2 to 1024"}},
        BadUsage{{"lenet5", "--ranks=1"}, {"--ranks: '1' is not a power of two from 2 to 1024"}},
        BadUsage{{"lenet5", "--ranks=2048"}, {"--ranks: '2048' is not a power of two from 2 to 1024"}},
        BadUsage{{"lenet5:33", "--ranks=2"}, {"--ranks=2 does not divide the 33 rows of a batch of lenet5"}},
        BadUsage{{"lenet5", "--ranks=2", "--peer=torch"},
                 {"--peer=torch and --ranks=2 contradict each other", "torch-ddp, mpc-rank-alone, mpc-one-process"}},
        BadUsage{{"lenet5", "--ranks=2", "--peer=mpc-one-thread"}, {"--peer=mpc-one-thread and --ranks=2 contradict"}},
        BadUsage{{"lenet5", "--peer=torch-ddp"}, {"--peer=torch-ddp is of several processes: it needs --ranks=N"}},
        BadUsage{{"lenet5", "--peer=mpc-rank-alone"}, {"--peer=mpc-rank-alone is of several", "it needs --ranks=N"}},
        BadUsage{{"lenet5", "--ranks=2", "--profile"}, {"--profile times instructions", "without --ranks"}},
        BadUsage{{"lenet5", "--ranks=2", "--start=unwritten"}, {"--start writes", "without --ranks"}},
        BadUsage{{"lenet5", "--busy=0,some"}, {"'0,some' is no list of whole numbers from 0 to 4096"}},
        BadUsage{{"lenet5", "--busy=1", "--profile"}, {"--profile times instructions of mpc's own step", "--busy"}},
        BadUsage{{"lenet5", "--busy=1", "--single"}, {"--single measures one run and prints its samples", "--busy"}},
        BadUsage{{"--op=relu", "--busy=1"}, {"--op measures operations on their own", "--busy"}},
        BadUsage{{"lenet5", "--peer=torch", "--profile"},
                 {"--profile times instructions of mpc's own step, without --peer"}},
        BadUsage{{"lenet5", "--start=unwritten", "--profile"},
                 {"--profile times instructions of mpc's own step, without --start"}},
        BadUsage{{"lenet5", "--amp-level=O3", "--peer=mpc-unscaled"},
                 {"--peer=mpc-unscaled and O3 f16, which scales no loss, would measure the same step twice"}},
        BadUsage{{"lenet5", "--amp-level=O2", "--loss-scale=none", "--peer=mpc-unscaled"},
                 {"would measure the same step twice"}},
        BadUsage{{"lenet5", "--svg=chart.svg"}, {"--svg draws the ratios to peers: it needs --peer"}},
        BadUsage{{"lenet5", "--peer=mpc-unfused", "--python=python3"}, {"--python is of PyTorch", "--peer=torch"}},
        BadUsage{{"lenet5", "--profile", "--peer=mpc-unfused", "--svg=chart.svg"}, {"own step, without --svg"}},
        BadUsage{{"lenet5", "--profile", "--runs=3"}, {"own step, without --runs"}},
        BadUsage{{"lenet5", "--single", "--json=j"}, {"--single measures one run", "without --json"}},
        BadUsage{{"lenet5", "--start=unwritten", "--warmup=3"}, {"--start writes", "without --warmup"}},
        BadUsage{{"lenet5", "--dtype=f16"}, {"O0 is full f32"}},
        BadUsage{{"lenet5", "--amp-level=O2", "--loss-scale=derived"},
                 {"--loss-scale=derived is of mpc-train", "dynamic, none or a number"}},
        BadUsage{{"lenet5", "--peer=torch-graph"}, {"with --device=cuda, not of lenet5 with --device=cpu"}},
        BadUsage{{"lenet5", "--batch=8,none"}, {"'8,none' is no list of whole numbers"}},
        BadUsage{{"lenet5:0"}, {"the batch size of 'lenet5:0'"}},
        BadUsage{{"lenet5", "mlp", "--width=8"},
                 {"--width=8: lenet5 reads no tokens; bert, bert-tiny, gpt2 and gpt2-tiny do"}},
        BadUsage{{"gpt2", "--width=100"}, {"--width=100: "}},
        BadUsage{{"bert", "--tokens=513"}, {"--tokens=513: bert takes from 1 to 512"}},
        BadUsage{{"lenet5", "--loss-scale=big", "--amp-level=O2"}, {"big"}},
        BadUsage{{"lenet5", "mlp", "--start=here"}, {"--start writes one row, the command line asks for 2"}},
        BadUsage{{"lenet5", "--peer=mpc-unfused", "--json=a", "--svg=a"}, {"--json and --svg name one file, 'a'"}},
        BadUsage{{"lenet5", "--steps-per-launch=4"}, {"--steps-per-launch=4 and --device=cpu contradict"}}));

INSTANTIATE_TEST_SUITE_P(
    OfOperations, BadBench,
    testing::Values(BadUsage{{"--op=matmul", "--profile"},
                             {"--op measures operations on their own, without --profile"}},
                    BadUsage{{"--op=matmul", "--svg=chart.svg"}, {"without --svg"}},
                    BadUsage{{"--op=matmul", "--tune"}, {"without --tune"}},
                    BadUsage{{"--op=matmul", "--memory-budget=1GiB"}, {"without --memory-budget"}},
                    BadUsage{{"--op=matmul", "--runs=3"}, {"without --runs"}},
                    BadUsage{{"--op=matmul", "--steps=3"}, {"without --steps"}},
                    BadUsage{{"--op=relu,relu7"}, {"'relu7' is not one of matmul, "}},
                    BadUsage{{"--op=matmul", "--shape=8x8"}, {"matmul takes MxKxN, got 8x8"}},
                    BadUsage{{"--op=relu", "--shape=8y8"}, {"'8y8' is no list of whole numbers"}},
                    BadUsage{{"--op=relu", "--dtype=f64"}, {"'f64' is not f32, f16 or bf16"}},
                    BadUsage{{"lenet5", "--op=relu"}, {"--op measures operations on their own, without 'lenet5'"}},
                    BadUsage{{"--op=relu", "--peer=torch"}, {"without --peer"}},
                    BadUsage{{"--op=relu", "--device=cuda"}, {"--op measures the CPU, not --device=cuda"}},
                    BadUsage{{"lenet5", "--shape=8x8"}, {"they need --op=NAME"}}));

INSTANTIATE_TEST_SUITE_P(
    OfSums, BadBench,
    testing::Values(BadUsage{{"lenet5", "--all-reduce"},
                             {"--all-reduce measures sums over processes on their own, without 'lenet5'"}},
                    BadUsage{{"--all-reduce", "--threads=1"}, {"--all-reduce measures sums", "without --threads"}},
                    BadUsage{{"--all-reduce", "--device=cuda"}, {"--all-reduce measures sums", "without --device"}},
                    BadUsage{{"--all-reduce", "--ranks=3"}, {"--ranks: '3' is not a power of two"}},
                    BadUsage{{"--all-reduce", "--dtype=i32"}, {"--dtype: 'i32' is not f32, f16 or bf16"}},
                    BadUsage{{"--all-reduce", "--elements=5,none"},
                             {"mpc-bench: --elements: '5,none' is no list of whole numbers from 1"}},
                    BadUsage{{"--all-reduce", "--slot=100"}, {"mpc-bench: --slot: '100' is no multiple of 64 bytes"}},
                    BadUsage{{"--all-reduce", "--slot=big"}, {"mpc-bench: --slot: '", "big"}},
                    BadUsage{{"lenet5", "--slot=1MiB"},
                             {"--elements and --slot are of sums over processes: they need --all-reduce"}},
                    BadUsage{{"--op=relu", "--ranks=2"}, {"--op measures operations on their own, without --ranks"}}));

INSTANTIATE_TEST_SUITE_P(
    OfData, BadBench,
    testing::Values(BadUsage{{"lenet5", "--data"}, {"--data measures how fast pictures are read, without 'lenet5'"}},
                    BadUsage{{"--data", "--device=cuda"}, {"--data measures how fast", "without --device"}},
                    BadUsage{{"--data", "--seconds=3"}, {"--data measures how fast", "without --seconds"}},
                    BadUsage{{"--data", "--op=relu"}, {"--op measures operations on their own, without --data"}},
                    BadUsage{{"--data", "--batch=8,32"}, {"--data measures batches of one size"}},
                    BadUsage{{"--data", "--peer=torch"}, {"--data knows torchvision only"}},
                    BadUsage{{"--data", "--python=python3"}, {"--python is of torchvision: it needs"}},
                    BadUsage{{"lenet5", "--peer=torchvision"}, {"'torchvision' is not one of torch, "}}));

TEST(MpcBench, AChartNeedsAFolder) {
  ExpectRefused(RunTool(MPC_BENCH, {"lenet5", "--peer=mpc-unfused", "--svg=/nowhere/chart.svg"}), kFailure,
                {"there is no folder '/nowhere'"});
}

TEST(MpcBench, SaysWhichOperandsDoNotFitIntoMemory) {
  ExpectRefused(RunTool(MPC_BENCH, {"--op=matmul", "--shape=1000000x1000000x1000000"}), kFailure,
                {"matmul of MxKxN", "operands of tensor<1000000x1000000xf32> and ", ": 8000000000000 bytes",
                 "give a smaller --shape"});
}

TEST(MpcBench, OutputThatIsLostIsAnError) {
  ExpectRefused(RunTool("/bin/sh", {"-c", "exec \"$0\" --help > /dev/full", MPC_BENCH}), kFailure,
                {"mpc-bench: the standard output could not be written"});
}

TEST(MpcBench, SaysWhichGraphDoesNotTakeItsSizes) {
  ExpectRefused(RunTool(MPC_BENCH, {"--op=softmax_cross_entropy", "--shape=1000000000000x1000000000000"}), kFailure,
                {"softmax_cross_entropy of NxM = 1000000000000x1000000000000 in f32: "});
}

TEST(MpcBench, ARunThatFailsIsNamedByItsCommandLine) {
  const ToolResult result =
      RunTool(MPC_BENCH, {"lenet5", "--runs=1", "--steps=1", "--warmup=0", "--threads=1", "--memory-budget=1"});
  EXPECT_EQ(result.exit_code, kFailure);
  EXPECT_THAT(result.error, testing::ContainsRegex("mpc-bench: 'mpc-bench lenet5 --batch=32 .*' ended with status 1"));
}

}  // namespace
}  // namespace mpc::tools
