// What mpc-bisect says about two capsules of one step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "frontend/state/step_capsule.h"
#include "runtime/program_binding.h"
#include "tests/frontend/error_of.h"
#include "tests/tools/planted_device.h"
#include "tests/tools/tool_runner.h"
#include "tools/mpc-bisect/bisection.h"
#include "tools/mpc-bisect/result_pairs.h"
#include "tools/support/state_hashes.h"

namespace mpc::tools {
namespace {

using ::mpc::testing::ErrorOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

/// The files of one test program: each capsule is made once.
const TemporaryFolder& Folder() {
  static const auto* const folder = new TemporaryFolder;
  return *folder;
}

/// The path of a capsule that mpc-train writes with `arguments`.
std::string MakeCapsule(const std::string& name, std::vector<std::string> arguments) {
  const std::string path = Folder().File(name);
  if (!ReadFile(path).empty()) return path;
  for (const std::string& argument : {"--capsule=" + path, std::string("--capsule-at=2"), std::string("--threads=1"),
                                      std::string("--amp-verbosity=0")}) {
    arguments.push_back(argument);
  }
  const ToolResult trained = RunTool(MPC_TRAIN, arguments);
  EXPECT_EQ(trained.exit_code, 0) << trained.error;
  return path;
}

std::string Lenet() { return MakeCapsule("lenet5", {"lenet5", "--amp-level=O2", "--loss-scale=128", "--epochs=1"}); }
std::string Gpt2() {
  return MakeCapsule("gpt2", {"gpt2-tiny", "--amp-level=O2", "--loss-scale=128", "--epochs=1", "--batch-size=2",
                              "--tokens=8", "--steps=2"});
}

CapsuleFile Read(const std::string& path) {
  absl::StatusOr<StepCapsule> capsule = ReadStepCapsule(path);
  EXPECT_TRUE(capsule.ok()) << capsule.status();
  return {path, *std::move(capsule)};
}

std::string Write(const std::string& name, const StepCapsule& capsule) {
  const std::string path = Folder().File(name);
  EXPECT_TRUE(WriteStepCapsule(path, capsule).ok());
  return path;
}

ToolResult BisectTool(const std::string& first, const std::string& second) {
  return RunTool(MPC_BISECT, {first, second});
}

TEST(Bisect, FindsNoDifferenceInOneStep) {
  for (const std::string& path : {Lenet(), Gpt2()}) {
    const ToolResult result = BisectTool(path, path);
    EXPECT_EQ(result.exit_code, 0) << result.output << result.error;
    EXPECT_THAT(result.output, HasSubstr("  batch: equal\n"));
    EXPECT_THAT(result.output, HasSubstr("  state: equal\n"));
    EXPECT_THAT(result.output, HasSubstr("  Program: equal\n"));
    EXPECT_THAT(result.output, HasSubstr("results; all are compared\nno result that is compared differs\n"));
    EXPECT_THAT(result.output,
                HasSubstr("no difference: what both steps begin with, what is compared and what they leave"));
    EXPECT_THAT(result.output, Not(HasSubstr("does not repeat")));
  }
}

// The runs of two thread counts have equal bits, and say that they had two.
TEST(Bisect, ThreadsAreNoDifference) {
  CapsuleFile file = Read(Lenet());
  file.capsule.origin["threads"] = "2";
  const ToolResult result = BisectTool(Lenet(), Write("threads", file.capsule));
  EXPECT_EQ(result.exit_code, 0) << result.output << result.error;
  EXPECT_THAT(result.output, HasSubstr("    threads: \"1\" in A, \"2\" in B\n"));
}

TEST(Bisect, FindsOneBitOfAWeightInTheState) {
  CapsuleFile file = Read(Lenet());
  for (auto& [name, tensor] : file.capsule.state) {
    if (name != "conv2.weight") continue;
    std::vector<std::uint8_t> bytes(tensor.bytes().begin(), tensor.bytes().end());
    bytes[4 * 17] ^= 1;
    tensor = Tensor::FromBytes(tensor.spec(), bytes.data(), bytes.size());
  }
  const ToolResult result = BisectTool(Lenet(), Write("weight", file.capsule));
  EXPECT_EQ(result.exit_code, 1) << result.error;
  EXPECT_THAT(result.output, HasSubstr("  batch: equal\n"));
  EXPECT_THAT(result.output, HasSubstr("  state: 1 of "));
  EXPECT_THAT(result.output, HasSubstr("    \"conv2.weight\": 1 of 2400 elements differs, the first is element 17: "));
  EXPECT_THAT(result.output, HasSubstr(", 1 ulp apart\n"));
  EXPECT_THAT(result.output, HasSubstr("first operation whose result differs: "));
}

/// Plants one unit in the last place into each result of floating type in turn, every `stride`th.
void ExpectPlantedDifferencesFound(const std::string& path, std::size_t stride) {
  const CapsuleFile file = Read(path);
  CapsuleFile planted = file;
  planted.capsule.program.device = "planted";
  const runtime::Program& program = file.capsule.program;
  std::size_t found = 0;
  for (std::size_t i = 0; i < program.step().instructions.size(); i += stride) {
    const runtime::Instruction& instruction = program.step().instructions[i];
    const runtime::ValueId id = instruction.outputs.empty() ? runtime::kNoValue : instruction.outputs.back();
    if (id == runtime::kNoValue || !IsFloating(program.values[id].spec.dtype)) continue;
    const TensorSpec& spec = program.values[id].spec;
    const std::size_t element = static_cast<std::size_t>(spec.num_elements()) / 2;
    PlantDifference({i, instruction.outputs.size() - 1, element});
    const absl::StatusOr<Bisection> bisection = BisectCapsules(file, planted);
    ASSERT_TRUE(bisection.ok()) << bisection.status();
    EXPECT_TRUE(bisection->differs);
    EXPECT_THAT(bisection->text, HasSubstr(absl::StrCat("first operation whose result differs: ",
                                                        runtime::DescribeInstruction(program, i))));
    EXPECT_THAT(bisection->text,
                HasSubstr(absl::StrCat("\n  result ", instruction.outputs.size() - 1, ", ", spec.ToString())));
    EXPECT_THAT(bisection->text, HasSubstr(absl::StrCat(": 1 of ", spec.num_elements(),
                                                        spec.num_elements() == 1 ? " element" : " elements",
                                                        " differs, the first is element ", element, ": ")));
    EXPECT_THAT(bisection->text, HasSubstr(", 1 ulp apart\n"));
    ++found;
  }
  EXPECT_GT(found, 10u);
}

TEST(Bisect, FindsOneUnitInTheLastPlaceAtItsOperationInLenet5) { ExpectPlantedDifferencesFound(Lenet(), 1); }
TEST(Bisect, FindsOneUnitInTheLastPlaceAtItsOperationInGpt2) { ExpectPlantedDifferencesFound(Gpt2(), 7); }

std::string Accumulated() {
  return MakeCapsule("accumulated", {"lenet5", "--amp-level=O2", "--loss-scale=128", "--epochs=1", "--accumulation=2"});
}
TEST(Bisect, FindsOneUnitInTheLastPlaceAtItsOperationInAStepThatAccumulates) {
  ExpectPlantedDifferencesFound(Accumulated(), 3);
}
TEST(Bisect, NamesTheMicroBatchOfAnInputThatDiffers) {
  CapsuleFile file = Read(Accumulated());
  ASSERT_EQ(file.capsule.runs, 2);
  auto& [name, data] = file.capsule.batch.at(2);
  EXPECT_EQ(name, "image@2");
  std::vector<float> values = data.ToFloats();
  values[5] += 1;
  data = Tensor::From(values, data.shape());
  const ToolResult result = BisectTool(Accumulated(), Write("second", file.capsule));
  EXPECT_EQ(result.exit_code, 1) << result.error;
  EXPECT_THAT(result.output, HasSubstr("  batch: 1 of 4 differs\n    \"image@2\": 1 of "));
  EXPECT_THAT(result.output,
              ::testing::ContainsRegex("first operation whose result differs: .*, micro-batch 2 of 2\n"));
}

// Levels of mixed precision have Programs of their own. What both compute is compared; what one alone does is named.
TEST(Bisect, ComparesWhatTwoProgramsShare) {
  const std::string path = MakeCapsule("O0", {"lenet5", "--amp-level=O0", "--epochs=1"});
  const std::string low = MakeCapsule("O1", {"lenet5", "--amp-level=O1", "--dtype=bf16", "--epochs=1"});
  const ToolResult result = BisectTool(path, low);
  EXPECT_EQ(result.exit_code, 1) << result.output << result.error;
  EXPECT_THAT(result.output, HasSubstr("    level: \"O0\" in A, \"O1\" in B\n"));
  EXPECT_THAT(result.output, HasSubstr(": those that agree in operation, Cell, phase and type\n"));
  EXPECT_THAT(result.output, HasSubstr("  B alone computes before it: "));
}

TEST(Bisect, RefusesByNameWhatCannotBeCompared) {
  WriteFile(Folder().File("text"), "no capsule");
  const ToolResult text = BisectTool(Lenet(), Folder().File("text"));
  EXPECT_EQ(text.exit_code, 2);
  EXPECT_THAT(text.error, HasSubstr(Folder().File("text")));
  const ToolResult missing = BisectTool(Folder().File("nowhere"), Lenet());
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.error, HasSubstr(Folder().File("nowhere")));
  std::string bytes = ReadFile(Lenet());
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  WriteFile(Folder().File("damaged"), bytes);
  EXPECT_EQ(BisectTool(Lenet(), Folder().File("damaged")).exit_code, 2);
  const ToolResult network = BisectTool(Lenet(), Gpt2());
  EXPECT_EQ(network.exit_code, 2);
  EXPECT_THAT(network.error, HasSubstr("cannot be compared: the steps are of two networks:\n"));
  EXPECT_THAT(network.error, HasSubstr("A alone has parameter \"conv1.weight\""));
  CapsuleFile later = Read(Lenet());
  later.capsule.step = 3;
  EXPECT_THAT(ErrorOf(BisectCapsules(Read(Lenet()), later).status()), HasSubstr("A is step 2, B is step 3"));
  const std::string small =
      MakeCapsule("small", {"lenet5", "--amp-level=O2", "--loss-scale=128", "--epochs=1", "--batch-size=16"});
  const ToolResult batch = BisectTool(Lenet(), small);
  EXPECT_EQ(batch.exit_code, 2);
  EXPECT_THAT(batch.error, HasSubstr("the steps take other inputs: "));
}

/// The hashes of a run of LeNet-5 of one epoch, or as `more` says.
std::string RecordHashes(const std::string& name, const std::vector<std::string>& more) {
  const std::string path = Folder().File(name);
  std::vector<std::string> arguments = {"lenet5", "--epochs=1", "--amp-level=O2", "--amp-verbosity=0",
                                        "--record-hashes=" + path};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const ToolResult trained = RunTool(MPC_TRAIN, arguments);
  EXPECT_EQ(trained.exit_code, 0) << trained.error;
  return path;
}

TEST(BisectHashes, ThreadsLeaveTheState) {
  const std::string one = RecordHashes("one", {"--threads=1"});
  const ToolResult same = BisectTool(one, RecordHashes("two", {"--threads=2"}));
  EXPECT_EQ(same.exit_code, 0) << same.output << same.error;
  EXPECT_THAT(same.output, HasSubstr("no difference: the state is equal after each of the 45 steps that both have\n"));
  EXPECT_EQ(ReadFile(one), ReadFile(Folder().File("two")));
}

// What --resume of a checkpoint goes on with is what a run without a stop has.
TEST(BisectHashes, AResumedRunHasTheHashesOfARunWithoutAStop) {
  const std::string saved = Folder().File("checkpoint");
  RecordHashes("before", {"--threads=1", "--save=" + saved});
  const std::string rest = RecordHashes("rest", {"--threads=1", "--resume=" + saved, "--epochs=2"});
  const std::string whole = RecordHashes("whole", {"--threads=1", "--epochs=2"});
  const StateHashes hashes = ReadStateHashes(whole).value();
  ASSERT_EQ(hashes.size(), 90u);
  EXPECT_EQ(StateHashes(hashes.find(46), hashes.end()), ReadStateHashes(rest).value());
  // Into the file of the first run, whose lines stay.
  RecordHashes("before", {"--threads=1", "--resume=" + saved, "--epochs=2"});
  EXPECT_EQ(ReadFile(whole), ReadFile(Folder().File("before")));
  WriteFile(rest, "not hashes\n");
  const ToolResult refused =
      RunTool(MPC_TRAIN, {"lenet5", "--epochs=2", "--amp-level=O2", "--resume=" + saved, "--record-hashes=" + rest});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.error, HasSubstr(rest + " does not begin with the line \"mpc state hashes 1\""));
  EXPECT_EQ(ReadFile(rest), "not hashes\n");
}

TEST(BisectHashes, AFullDiskCostsTheRestOfTheFileAlone) {
  // Files of at most 1,024 bytes stand for the disk.
  const std::string path = Folder().File("cut");
  const ToolResult cut =
      RunTool("/bin/sh", {"-c", "trap '' XFSZ; ulimit -f 2; exec \"$0\" \"$@\"", MPC_TRAIN, "lenet5", "--epochs=2",
                          "--threads=1", "--choice-cache=", "--record-hashes=" + path});
  EXPECT_EQ(cut.exit_code, 0) << cut.error;
  EXPECT_THAT(cut.error, HasSubstr("warning: '" + path + "' cannot be written; it has no hashes from step "));
  EXPECT_THAT(cut.output, HasSubstr("90 steps"));
  const StateHashes hashes = ReadStateHashes(path).value();
  EXPECT_LT(hashes.size(), 90u);
  EXPECT_GT(hashes.size(), 40u);
  const ToolResult full = RunTool(MPC_TRAIN, {"lenet5", "--record-hashes=/dev/full"});
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_THAT(full.error, HasSubstr("cannot write \"/dev/full\": No space left on device"));
}

TEST(BisectHashes, FindTheFirstStepThatDiffers) {
  StateHashes hashes = ReadStateHashes(RecordHashes("one", {"--threads=1"})).value();
  ASSERT_EQ(hashes.size(), 45u);
  std::string text = "mpc state hashes 1\n";
  for (const auto& [step, hash] : hashes) text += StateHashLine(step, step < 17 ? hash : hash + 1);
  WriteFile(Folder().File("other"), text);
  const ToolResult result = BisectTool(Folder().File("one"), Folder().File("other"));
  EXPECT_EQ(result.exit_code, 1) << result.error;
  EXPECT_THAT(result.output, HasSubstr("first step after which the state differs: 17, "));
  EXPECT_THAT(result.output, HasSubstr("16 steps before it are equal\n"));
  EXPECT_THAT(result.output, HasSubstr("--capsule-at=17, "));
}

TEST(BisectHashes, RefuseDamageByItsLine) {
  const std::string path = Folder().File("x");
  const std::string head = "mpc state hashes 1\n", line = "1 0123456789abcdef\n";
  const auto error = [&](const std::string& text) {
    WriteFile(path, text);
    return ErrorOf(ReadStateHashes(path).status());
  };
  EXPECT_EQ(error(head + line), "");
  EXPECT_THAT(error("mpc state hashes 2\n" + line), HasSubstr("does not begin with the line \"mpc state hashes 1\""));
  EXPECT_THAT(error(head + "1 0123456789abcde"), HasSubstr("line 2 has no end"));
  EXPECT_THAT(error(head + "1 0123456789abcde\n"), HasSubstr("line 2 is no step and its hash of 16 digits"));
  EXPECT_THAT(error(head + line + line), HasSubstr("line 3 is of a step that does not follow"));
  WriteFile(path, head);
  const ToolResult none = BisectTool(path, path);
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.error, HasSubstr("they have no step in common"));
  const ToolResult kinds = BisectTool(path, Lenet());
  EXPECT_EQ(kinds.exit_code, 2);
  EXPECT_THAT(kinds.error, HasSubstr(Lenet() + " does not begin with the line"));
  EXPECT_THAT(BisectTool(path, Folder().File("none")).error, HasSubstr(Folder().File("none")));
}

TEST(Bisect, OutputThatIsLostLeavesNothingCompared) {
  const ToolResult result = RunTool("/bin/sh", {"-c", "exec \"$0\" --help > /dev/full", MPC_BISECT});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, HasSubstr("mpc-bisect: the standard output could not be written"));
}

TEST(Bisect, ChecksItsCommandLine) {
  const ToolResult one = RunTool(MPC_BISECT, {"x"});
  EXPECT_EQ(one.exit_code, 2);
  EXPECT_THAT(one.error, HasSubstr("or two of `mpc-train --capsule=FILE`, not 1: 'x'"));
  const ToolResult unknown = RunTool(MPC_BISECT, {"x", "y", "--thread=1"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.error, HasSubstr("did you mean --threads?"));
  EXPECT_THAT(RunTool(MPC_BISECT, {"--version"}).output, HasSubstr("mpc-bisect "));
  EXPECT_THAT(RunTool(MPC_BISECT, {"--help"}).output, HasSubstr("A B [flags]"));
}

TEST(PairInOrder, GivesALongestCommonSubsequence) {
  EXPECT_THAT(PairInOrder({"a", "b", "c"}, {"a", "b", "c"}), ElementsAre(Pair(0, 0), Pair(1, 1), Pair(2, 2)));
  EXPECT_THAT(PairInOrder({"a", "x", "b", "b"}, {"a", "b", "y", "b", "c"}),
              ElementsAre(Pair(0, 0), Pair(2, 1), Pair(3, 3)));
  EXPECT_THAT(PairInOrder({"c", "a", "b"}, {"a", "b", "c"}), ElementsAre(Pair(1, 0), Pair(2, 1)));
  EXPECT_THAT(PairInOrder({}, {"a"}), ElementsAre());
}

}  // namespace
}  // namespace mpc::tools
