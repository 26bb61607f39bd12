// A step that mpc-train has written, repeated by mpc-run and compiled anew by mpc-opt, from outside.
#include <csignal>

#include "absl/strings/str_cat.h"
#include "tests/tools/mpc_run_fixture.h"

namespace mpc::tools {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

ToolResult Opt(const std::vector<std::string>& arguments) { return RunTool(MPC_OPT, arguments); }

TEST_F(MpcRun, RepeatsTheFirstBadStepOnAnyThreads) {
  const std::string capsule = File("first.capsule");
  const ToolResult trained = Train({"lenet5", "--amp-level=O2", "--epochs=1", "--capsule=" + capsule});
  ASSERT_EQ(trained.exit_code, 0) << trained.error;
  EXPECT_THAT(trained.error, HasSubstr("capsule of step 1 (not finite): writing "));
  for (const char* threads : {"--threads=1", "--threads=2"}) {
    const ToolResult replay = RunPackage({"--replay=" + capsule, threads});
    EXPECT_EQ(replay.exit_code, 0) << replay.error;
    EXPECT_THAT(replay.output, HasSubstr("step 1 (not finite), model LeNet5"));
    EXPECT_THAT(replay.output, HasSubstr("  loss_scale: 16777216\n"));
    // With the count of `mpc-opt --replay`, below.
    EXPECT_THAT(replay.output,
                ContainsRegex("first operation whose result is not finite: train_step, instruction [0-9]+ "
                              "\\(generated[^)]* in loss\\) of .*softmax_cross_entropy_grad.*, phase "
                              "backward\n  result 1, tensor<32x10xf16>: 32 of 320 elements\n"));
    EXPECT_THAT(replay.output, HasSubstr("every bit is equal: 4 outputs and 22 state entries after the step"));
  }
  const ToolResult was = Opt({"--replay=" + capsule, "--trace"});
  EXPECT_EQ(was.exit_code, 0) << was.error;
  EXPECT_THAT(was.output, HasSubstr("as it was: not finite\n"));
  EXPECT_THAT(was.output, HasSubstr("first value that is not finite at loss scale 16777216: backward pass: cast for "
                                    "'loss' (f16), 32 of 320 elements"));
  EXPECT_THAT(was.output, HasSubstr("what leads to it:\n"));
  EXPECT_THAT(was.output, HasSubstr("forward pass: matmul in 'lenet5/fc3' (f16)\n"));
  for (const char* change : {"scale=1024", "bf16", "O0"}) {
    const ToolResult otherwise = Opt({"--replay=" + capsule, absl::StrCat("--what-if=", change)});
    EXPECT_EQ(otherwise.exit_code, 0) << otherwise.error;
    EXPECT_THAT(otherwise.output, HasSubstr(absl::StrCat(", ", change, ": finite\n")));
  }
  const ToolResult there = Opt({"--replay=" + capsule, "--what-if=device=cpu,scale=1024"});
  EXPECT_THAT(there.output, HasSubstr(", device=cpu, scale=1024: finite\n"));
  const ToolResult denied = Opt({"--replay=" + capsule, "--what-if=deny=lenet5/fc3"});
  EXPECT_THAT(denied.output, HasSubstr("deny=lenet5/fc3: not finite\n"));
  EXPECT_THAT(denied.output, HasSubstr("backward pass: reduce_sum for 'lenet5/fc2' (f16)"));
  // A part of a path is no path, and a name of nothing changes nothing.
  for (const char* nothing : {"fc3", "lenet5/fc4", "softmix"}) {
    const ToolResult unknown = Opt({"--replay=" + capsule, absl::StrCat("--what-if=O1,deny=", nothing)});
    EXPECT_EQ(unknown.exit_code, 1);
    EXPECT_THAT(unknown.error, HasSubstr(absl::StrCat("--what-if=deny=", nothing, ": list entry '", nothing,
                                                      "' is no operation and matches no Cell path")));
  }
  EXPECT_EQ(Opt({"--replay=" + capsule, "--what-if=deny=matmul"}).exit_code, 0);
  const std::pair<const char*, const char*> contradictions[] = {
      {"O1,O2", "--what-if takes a level once, got 'O1' and 'O2'"},
      {"f16,bf16", "--what-if takes a low type once, got 'f16' and 'bf16'"},
      {"scale=8,O1,scale=16", "--what-if takes a scale once, got 'scale=8' and 'scale=16'"},
      {"device=cuda,device=cpu", "--what-if takes a device once, got 'device=cuda' and 'device=cpu'"},
      {"bf16,O0", "--what-if=bf16: the step is at O0, where nothing is low; a low type goes with O1, O2, O3 or auto"},
  };
  for (const auto& [changes, error] : contradictions) {
    const ToolResult refused = Opt({"--replay=" + capsule, absl::StrCat("--what-if=", changes)});
    EXPECT_EQ(refused.exit_code, 1) << changes;
    EXPECT_THAT(refused.error, HasSubstr(error));
  }
}

TEST_F(MpcRun, NamesTheFirstBadValueOfABadStepAlone) {
  const std::string capsule = File("bad.capsule"), hashes = File("hashes");
  // The rate makes weights so large that step 2 is not finite.
  const std::vector<std::string> flags = {"lenet5",  "--epochs=1",           "--optimizer=sgd",          "--lr=1e38",
                                          "--quiet", "--capsule=" + capsule, "--record-hashes=" + hashes};
  std::vector<std::string> first = flags;
  first.emplace_back("--capsule-at=1");
  ASSERT_EQ(Train(first).exit_code, 0);
  const ToolResult good = RunPackage({"--replay=" + capsule});
  EXPECT_THAT(good.output, Not(HasSubstr("not finite")));
  // The hash of the replay is that of the run.
  const std::string line = ReadFile(hashes).substr(sizeof("mpc state hashes 1"), sizeof("1 0123456789abcdef") - 1);
  EXPECT_THAT(good.output, HasSubstr("  state_hash: " + line.substr(2) + "\n"));
  ASSERT_EQ(Train(flags).exit_code, 0);
  const ToolResult bad = RunPackage({"--replay=" + capsule});
  EXPECT_EQ(bad.exit_code, 0) << bad.error;
  EXPECT_THAT(bad.output, HasSubstr("step 2 (not finite)"));
  EXPECT_THAT(bad.output, ContainsRegex("first operation whose result is not finite: .*, phase forward\n  result 0, "));
}

// Three micro-batches make a step. The scale overflows in the first of them, and the last one skips the step.
TEST_F(MpcRun, RepeatsAStepThatAccumulates) {
  const std::string capsule = File("accumulated.capsule");
  const ToolResult trained =
      Train({"lenet5", "--amp-level=O2", "--epochs=1", "--accumulation=3", "--capsule=" + capsule});
  ASSERT_EQ(trained.exit_code, 0) << trained.error;
  EXPECT_THAT(trained.error, HasSubstr("capsule of step 1 (not finite): writing "));
  const ToolResult replay = RunPackage({"--replay=" + capsule, "--threads=2"});
  EXPECT_EQ(replay.exit_code, 0) << replay.error;
  EXPECT_THAT(replay.output, HasSubstr("3 micro-batches"));
  EXPECT_THAT(replay.output, HasSubstr("  loss@3: "));
  EXPECT_THAT(replay.output,
              ContainsRegex("first operation whose result is not finite: .*, phase backward, micro-batch "
                            "1 of 3\n  result 1, tensor<32x10xf16>: "));
  EXPECT_THAT(replay.output, HasSubstr("every bit is equal: 15 outputs and 40 state entries"));
  const ToolResult was = Opt({"--replay=" + capsule, "--trace"});
  EXPECT_EQ(was.exit_code, 0) << was.error;
  EXPECT_THAT(was.output, HasSubstr("as it was: not finite\nin micro-batch 1 of 3:\nfirst value that is not finite at "
                                    "loss scale 16777216: backward pass: cast for 'loss' (f16), "));
  for (const char* change : {"scale=1024", "bf16", "O0"}) {
    const ToolResult otherwise = Opt({"--replay=" + capsule, absl::StrCat("--what-if=", change)});
    EXPECT_EQ(otherwise.exit_code, 0) << otherwise.error;
    EXPECT_THAT(otherwise.output, HasSubstr(absl::StrCat(", ", change, ": finite\n")));
  }
}

// Another folder, another user's environment, another thread count: the tool is found by nothing but its own path.
TEST_F(MpcRun, RepeatsTheStepAsACopyElsewhere) {
  const std::string capsule = File("first.capsule");
  ASSERT_EQ(Train({"lenet5", "--amp-level=O2", "--epochs=1", "--capsule=" + capsule}).exit_code, 0);
  const TemporaryFolder elsewhere;
  const ToolResult replay = RunTool("/bin/sh", {"-c",
                                                "cp \"$0\" \"$2/run\" && cp \"$1\" \"$2/step\" && cd \"$2\" && "
                                                "env -i HOME=/nowhere LANG=C ./run --replay=step --threads=3",
                                                MPC_RUN, capsule, elsewhere.path()});
  EXPECT_EQ(replay.exit_code, 0) << replay.error;
  EXPECT_THAT(replay.output, HasSubstr("every bit is equal: 4 outputs and 22 state entries after the step"));
}

// The limit is reached in the middle of the capsule. Its signal kills the run as any kill does; where the signal is
// ignored, writing fails as on a full disk.
TEST_F(MpcRun, AKillOrAFullDiskWhileACapsuleIsWrittenLeavesWhatWasThere) {
  const std::string capsule = File("some.capsule");
  WriteFile(capsule, "old");
  const auto train = [&](const std::string& before) {
    return RunTool("/bin/sh",
                   {"-c", before + "ulimit -f 600; exec \"$0\" \"$@\"", MPC_TRAIN, "lenet5", "--amp-level=O2",
                    "--epochs=1", "--threads=1", "--choice-cache=", "--capsule=" + capsule});
  };
  const ToolResult killed = train("");
  EXPECT_EQ(killed.exit_code, 128 + SIGXFSZ) << killed.error;
  EXPECT_THAT(killed.error, HasSubstr("writing 66"));
  EXPECT_EQ(ReadFile(capsule), "old");
  const ToolResult full = train("trap '' XFSZ; ");
  EXPECT_EQ(full.exit_code, 0) << full.error;
  EXPECT_THAT(full.error, HasSubstr("warning: no capsule of step 1: cannot write "));
  EXPECT_THAT(full.output, HasSubstr("45 steps"));
  EXPECT_EQ(ReadFile(capsule), "old");
}

TEST_F(MpcRun, RefusesWhatHasNoUseForACapsule) {
  WriteFile(File("x"), "no capsule");
  const ToolResult damaged = RunPackage({"--replay=" + File("x")});
  EXPECT_EQ(damaged.exit_code, 1);
  EXPECT_THAT(damaged.error, HasSubstr(File("x")));
  EXPECT_EQ(Opt({"--replay=" + File("x")}).exit_code, 1);
  const ToolResult both = RunPackage({"--replay=" + File("x"), "--steps=3"});
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(both.error, HasSubstr("--replay and --steps=3 contradict each other"));
  const ToolResult data = RunPackage({"--replay=" + File("x"), "--data-dir=f"});
  EXPECT_THAT(data.error, HasSubstr("--replay and --data-dir contradict each other"));
  const ToolResult at = Train({"lenet5", "--capsule-at=3"});
  EXPECT_EQ(at.exit_code, 2);
  EXPECT_THAT(at.error, HasSubstr("--capsule-at=3 needs --capsule=FILE"));
  const ToolResult what = Opt({"--what-if=O1"});
  EXPECT_EQ(what.exit_code, 1);
  EXPECT_THAT(what.error, HasSubstr("--what-if needs --replay"));
  const ToolResult output = Opt({"--replay=" + File("x"), "-o", File("x")});
  EXPECT_EQ(output.exit_code, 1);
  EXPECT_THAT(output.error, HasSubstr("--replay and -o name one file"));
  EXPECT_EQ(ReadFile(File("x")), "no capsule");
  const ToolResult model = Opt({"--replay=" + File("x"), "--model=lenet5"});
  EXPECT_THAT(model.error, HasSubstr("--replay and --model exclude each other"));
}

}  // namespace
}  // namespace mpc::tools
