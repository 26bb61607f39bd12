// What a precision lock holds of a step, its text, and what is told about another one.
#include "compiler/report/precision_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/driver/lock_precision.h"
#include "compiler/module/parse_module.h"
#include "compiler/report/precision_lock_difference.h"
#include "compiler/report/precision_lock_text.h"

namespace mpc::compiler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

PrecisionRow LockRow(const std::string& path, const std::string& op, const std::string& type, std::int64_t bytes) {
  PrecisionRow row;
  row.op = op;
  row.path = path;
  row.inputs = row.outputs = type;
  row.reason = "level O2";
  row.bytes = bytes;
  return row;
}

std::vector<LockedOperation> LockRows(const std::vector<PrecisionRow>& few, const std::vector<PrecisionRow>& more) {
  PrecisionTable first, second;
  first.rows = few;
  second.rows = more;
  absl::StatusOr<std::vector<LockedOperation>> lines = LockOperations({&first, 4}, {&second, 8});
  EXPECT_TRUE(lines.ok()) << lines.status();
  return lines.ok() ? *std::move(lines) : std::vector<LockedOperation>();
}

PrecisionLock SmallLock() {
  PrecisionLock lock;
  lock.subject = {"Net", "train_step", "cpu", "O2", "f16", "dynamic", 2, 15};
  lock.operations = {{"net/a",
                      "matmul",
                      "forward",
                      1,
                      "f16 -> f16",
                      {24, 14},
                      {{CastKind::Loss, "f16", "f32", 1, {0, 18}}},
                      "level O2"},
                     {"net/a", "relu", "forward", 2, "1 x f16 -> f16 / 1 x f32 -> f32", {0, 36}, {}, "cut"},
                     {"net/b", "softmax", "backward", 1, "f32 -> f32", {0, 0, false}, {}, "backward"}};
  return lock;
}

TEST(PrecisionLock, TellsBytesASampleFromOthers) {
  const std::vector<LockedOperation> lines =
      LockRows({LockRow("net", "matmul", "f16", 100 + 4 * 7)}, {LockRow("net", "matmul", "f16", 100 + 8 * 7)});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].bytes, (SampleBytes{100, 7}));
}

TEST(PrecisionLock, BytesThatGrowWithTheSquareOfTheBatchAreNotLinear) {
  const std::vector<LockedOperation> lines =
      LockRows({LockRow("net", "matmul", "f16", 4 * 4)}, {LockRow("net", "matmul", "f16", 8 * 8)});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_FALSE(lines[0].bytes.linear);
  EXPECT_EQ(PrintSampleBytes(lines[0].bytes), "not linear");
}

TEST(PrecisionLock, NumbersOfCellsAreInTheOrderOfNumbers) {
  const std::vector<PrecisionRow> rows = {LockRow("net/10/a", "relu", "f16", 0), LockRow("net/2/a", "relu", "f16", 0),
                                          LockRow("net/2", "relu", "f16", 0), LockRow("net/2/a", "add", "f16", 0)};
  std::vector<std::string> names;
  for (const LockedOperation& line : LockRows(rows, rows)) names.push_back(line.cell + " " + line.operation);
  EXPECT_THAT(names, ElementsAre("net/2 relu", "net/2/a add", "net/2/a relu", "net/10/a relu"));
}

TEST(PrecisionLock, OperationsOfOneNameInOneCellAreOneLine) {
  const std::vector<PrecisionRow> rows = {LockRow("net", "relu", "f32", 8), LockRow("net", "relu", "f16", 4),
                                          LockRow("net", "relu", "f16", 4)};
  const std::vector<LockedOperation> lines = LockRows(rows, rows);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].count, 3);
  EXPECT_EQ(lines[0].types, "2 x f16 -> f16 / 1 x f32 -> f32");
  EXPECT_EQ(lines[0].bytes, (SampleBytes{16, 0}));
}

TEST(PrecisionLock, AStepWhosePrecisionDependsOnTheBatchHasNone) {
  PrecisionTable few, more;
  few.rows = {LockRow("net/a", "relu", "f16", 4)};
  more.rows = {LockRow("net/a", "relu", "f32", 16)};
  const absl::StatusOr<std::vector<LockedOperation>> lines = LockOperations({&few, 4}, {&more, 8});
  EXPECT_THAT(std::string(lines.status().message()),
              HasSubstr("the precision of relu in net/a (forward) is one on 4 samples and another one on 8"));
}

TEST(PrecisionLock, TextAndLockAreTheSame) {
  PrecisionLock lock = SmallLock();
  lock.operations[1].reason = "list entry 'a | b\\c'";
  const std::string text = PrintPrecisionLock(lock);
  const absl::StatusOr<PrecisionLock> read = ParsePrecisionLock(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->subject, lock.subject);
  EXPECT_EQ(read->operations, lock.operations);
  EXPECT_EQ(PrintPrecisionLock(*read), text);
}

/// The error about the text with `from` in place of `to`.
std::string ErrorWith(const std::string& from, const std::string& to) {
  const std::string text = PrintPrecisionLock(SmallLock());
  EXPECT_THAT(text, HasSubstr(from));
  return std::string(ParsePrecisionLock(absl::StrReplaceAll(text, {{from, to}})).status().message());
}

TEST(PrecisionLock, DamageIsNamedWithItsLine) {
  EXPECT_THAT(ErrorWith("level: O2", "level: O1"), HasSubstr("line 11: it has 'checksum: "));
  EXPECT_THAT(ErrorWith("level: O2", "level: "), HasSubstr("line 5: 'level: ' has no value"));
  EXPECT_THAT(ErrorWith("level: O2\n", ""), HasSubstr("line 5: expected 'level: ...', found 'low type: f16'"));
  EXPECT_THAT(ErrorWith("2 tensors", "two tensors"), HasSubstr("line 8: expected 'parameters: N tensors, N elements'"));
  EXPECT_THAT(ErrorWith("| 2 |", "| 02 |"), HasSubstr("line 15: the count '02' is no whole number"));
  EXPECT_THAT(ErrorWith("24 + 14 a sample | 1", "24 + 14 | 1"),
              HasSubstr("line 14: the bytes '24 + 14' are not of the"));
  EXPECT_THAT(ErrorWith("operations move: ", "operations move: 1"), HasSubstr("line 9: 'operations move: 1"));
  EXPECT_THAT(ErrorWith("not linear | -", "many | -"), HasSubstr("line 16: the bytes 'many' are not of the form"));
  EXPECT_THAT(ErrorWith("1 loss f16", "1 lost f16"), HasSubstr("line 14: the casts '1 lost f16 -> f32, 18 a sample'"));
  EXPECT_THAT(ErrorWith(" | cut", ""), HasSubstr("line 15: expected 8 columns, found 7"));
  EXPECT_THAT(ErrorWith("net/b", "net/A"), HasSubstr("line 16: 'net/A' softmax is not in the order"));
  EXPECT_THAT(ErrorWith("cut", "cut\\9"), HasSubstr("line 15: a backslash stands before no octal digits"));
  EXPECT_THAT(ErrorWith("lock 1", "lock 2"), HasSubstr("version '2' of precision locks is unknown"));
  EXPECT_THAT(ErrorWith("mpc precision", "a precision"), HasSubstr("it is no precision lock"));
}

TEST(PrecisionLock, EveryTruncationIsAnError) {
  const std::string text = PrintPrecisionLock(SmallLock());
  // Without its last line break the text is whole.
  for (std::size_t size = 0; size + 1 < text.size(); ++size) {
    EXPECT_FALSE(ParsePrecisionLock(text.substr(0, size)).ok()) << size << " bytes";
  }
}

TEST(PrecisionLock, EveryDamagedByteIsAnError) {
  const std::string text = PrintPrecisionLock(SmallLock());
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (char damage : {'\0', 'x', '|', '\n', '9'}) {
      std::string damaged = text;
      if (damaged[i] == damage) continue;
      damaged[i] = damage;
      EXPECT_FALSE(ParsePrecisionLock(damaged).ok()) << "byte " << i << ": " << damaged;
    }
  }
}

TEST(PrecisionLockDifference, EqualLocksHaveNone) { EXPECT_EQ(PrecisionLockDifference(SmallLock(), SmallLock()), ""); }

TEST(PrecisionLockDifference, TellsOperationsCastsAndBytesByCell) {
  PrecisionLock present = SmallLock();
  present.operations[0].types = "f32 -> f32";
  present.operations[0].bytes = {48, 28};
  present.operations[0].casts = {};
  present.operations[0].reason = "list entry 'net/a'";
  present.operations.pop_back();
  EXPECT_EQ(PrecisionLockDifference(SmallLock(), present),
            "operations (2 differ)\n"
            "  Cell   operation          in the lock  now         bytes in the lock  bytes now         why\n"
            "  net/a  matmul             f16 -> f16   f32 -> f32  24 + 14 a sample   48 + 28 a sample  list entry "
            "'net/a' (was: level O2)\n"
            "  net/b  softmax, backward  f32 -> f32   none        not linear         -                 backward\n"
            "casts (1 differ)\n"
            "  of      in Cell  kind  types       in the lock  now  bytes in the lock  bytes now\n"
            "  matmul  net/a    loss  f16 -> f32  1            0    18 a sample        -\n"
            "totals (1 casts in the lock, 0 now)\n"
            "  bytes moved    in the lock  now\n"
            "  by operations  not linear   48 + 64 a sample\n"
            "  by casts       18 a sample  0\n");
}

TEST(PrecisionLockDifference, ReasonsOfAnEarlierRunAreNotCompared) {
  PrecisionLock present = SmallLock();
  present.operations[1].reason = "stored assignment";
  EXPECT_EQ(PrecisionLockDifference(SmallLock(), present), "");
  present.operations[1].reason = "loss";
  EXPECT_THAT(PrecisionLockDifference(SmallLock(), present), HasSubstr("loss (was: cut)"));
}

TEST(PrecisionLockDifference, OtherParametersAreTold) {
  PrecisionLock present = SmallLock();
  present.subject.elements = 1500;
  EXPECT_THAT(PrecisionLockDifference(SmallLock(), present),
              HasSubstr("parameters: 15 elements in 2 parameters in the lock, 1,500 elements in 2 parameters now"));
}

TEST(PrecisionLockDifference, LongOnesAreCut) {
  PrecisionLock locked, present;
  for (int i = 0; i < 100; ++i) {
    locked.operations.push_back({absl::StrCat("net/", i), "relu", "forward", 1, "f16 -> f16", {}, {}, "cut"});
  }
  EXPECT_THAT(PrecisionLockDifference(locked, present), HasSubstr("operations (100 differ)"));
  EXPECT_THAT(PrecisionLockDifference(locked, present), HasSubstr("  ... and 40 more\n"));
}

/// One product on `samples` rows.
Module DenseOn(int samples) {
  absl::StatusOr<Module> module = ParseModule(absl::StrReplaceAll(R"(
#dense = #mpc.scope<"net/dense", network>
func.func @predict(%x: tensor<Nx4xf32> {mpc.state = #mpc.state<input, "x">},
                   %w: tensor<4x3xf32> {mpc.state = #mpc.state<parameter, "dense.weight">})
    -> (tensor<Nx3xf32> {mpc.state = #mpc.state<output, "y">}) attributes {mpc.step} {
  %y = mpc.matmul %x, %w {mpc.scope = #dense} : (tensor<Nx4xf32>, tensor<4x3xf32>) -> tensor<Nx3xf32>
  return %y : tensor<Nx3xf32>
})",
                                                                  {{"N", absl::StrCat(samples)}}));
  EXPECT_TRUE(module.ok()) << module.status();
  return *std::move(module);
}

TEST(LockPrecision, IsTheSameOnEveryBatch) {
  CompileOptions options;
  options.function = "predict";
  options.level = "O2";
  std::string first;
  for (int samples : {1, 2, 7, 32}) {
    const absl::StatusOr<PrecisionLock> lock =
        LockPrecision("Net", {DenseOn(samples), samples}, {DenseOn(3 * samples), 3 * samples}, options);
    ASSERT_TRUE(lock.ok()) << lock.status();
    const std::string text = PrintPrecisionLock(*lock);
    if (first.empty()) first = text;
    EXPECT_EQ(text, first) << samples;
  }
  EXPECT_THAT(first, HasSubstr("\nparameters: 1 tensors, 12 elements\n"));
  EXPECT_THAT(first, HasSubstr("\n- | input | forward | 0 | - | 0 | 1 input f32 -> f16, 24 a sample | -\n"));
  EXPECT_THAT(first, HasSubstr("\nnet/dense | matmul | forward | 1 | f16 -> f16 | 24 + 14 a sample | 1 widening f16 -> "
                               "f32, 18 a sample | level O2\n"));
}

TEST(LockPrecision, FusionAndProcessesDoNotChangeIt) {
  CompileOptions options;
  options.function = "predict";
  options.level = "O2";
  const absl::StatusOr<PrecisionLock> plain = LockPrecision("Net", {DenseOn(2), 2}, {DenseOn(4), 4}, options);
  options.fusion = true;
  options.processes = 4;
  options.memory_budget = 1;
  const absl::StatusOr<PrecisionLock> other = LockPrecision("Net", {DenseOn(2), 2}, {DenseOn(4), 4}, options);
  ASSERT_TRUE(plain.ok() && other.ok()) << plain.status() << other.status();
  EXPECT_EQ(PrintPrecisionLock(*plain), PrintPrecisionLock(*other));
}

}  // namespace
}  // namespace mpc::compiler
