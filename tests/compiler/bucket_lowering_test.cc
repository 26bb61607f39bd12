// What lowering makes of collectives that travel as one message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/lowering/lowering.h"
#include "kernels/cpu/kernel.h"
#include "runtime/program_binding.h"
#include "runtime/program_check.h"
#include "runtime/step_groups.h"
#include "tests/compiler/op_case_module.h"

namespace mpc {
namespace {

/// A function of these operations, which returns %first and %second.
absl::StatusOr<runtime::Program> LowerBucket(const std::string& results, const std::string& operations) {
  const std::unique_ptr<mlir::MLIRContext> context = MakeContext();
  mlir::OwningOpRef<mlir::ModuleOp> module = ParseModule(
      *context, "func.func @step(%x: tensor<512xf32>, %y: tensor<256xf32>) -> (" + results +
                    ") attributes {mpc.step} {" + operations + "\n  return %first, %second : " + results + "\n}");
  EXPECT_TRUE(module);
  if (!module) return absl::InternalError("the test's module does not parse");
  absl::StatusOr<runtime::Program> program =
      compiler::lowerToProgram(*module->getOps<mlir::func::FuncOp>().begin(), **runtime::GetDevice("cpu"), {});
  const absl::Status check = program.ok() ? runtime::CheckProgram(*program) : absl::OkStatus();
  EXPECT_TRUE(check.ok()) << check;
  return program;
}

std::vector<std::size_t> RangesOf(const runtime::Program& program) {
  std::vector<std::size_t> sizes;
  for (const runtime::InstructionRange& range : runtime::GroupInstructions(program, cpu::MayGroup)) {
    sizes.push_back(range.count);
  }
  return sizes;
}

constexpr const char* kGathered = "tensor<2x512xf32>, tensor<2x256xf32>";
constexpr const char* kGathers = R"(
  %a = mpc.neg %x : tensor<512xf32>
  %b = mpc.neg %y : tensor<256xf32>
  %first = mpc.all_gather %a {BUCKET processes = 2} : (tensor<512xf32>) -> tensor<2x512xf32>
  %second = mpc.all_gather %b {BUCKET processes = 2} : (tensor<256xf32>) -> tensor<2x256xf32>)";

std::string Gathers(const std::string& bucket) {
  std::string text = kGathers;
  for (std::size_t at = text.find("BUCKET"); at != std::string::npos; at = text.find("BUCKET")) {
    text.replace(at, 6, bucket);
  }
  return text;
}

// %second would lie where %a lay, which the message still reads.
TEST(BucketLowering, OperandsAndResultsOfAMessageHaveStorageAtOnce) {
  const absl::StatusOr<runtime::Program> apart = LowerBucket(kGathered, Gathers(""));
  const absl::StatusOr<runtime::Program> together = LowerBucket(kGathered, Gathers("mpc.bucket = 0 : i64,"));
  ASSERT_TRUE(apart.ok() && together.ok()) << apart.status() << together.status();
  EXPECT_LT(apart->arena_bytes, together->arena_bytes);
  EXPECT_EQ(RangesOf(*together), (std::vector<std::size_t>{1, 1, 2}));
}

TEST(BucketLowering, SumsAreWrittenOverTheirOperands) {
  const absl::StatusOr<runtime::Program> program = LowerBucket("tensor<512xf32>, tensor<256xf32>", R"(
  %a = mpc.neg %x : tensor<512xf32>
  %b = mpc.neg %y : tensor<256xf32>
  %first = mpc.all_reduce %a {mpc.bucket = 0 : i64, processes = 2} : tensor<512xf32>
  %second = mpc.all_reduce %b {mpc.bucket = 0 : i64, processes = 2} : tensor<256xf32>)");
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(RangesOf(*program), (std::vector<std::size_t>{1, 1, 2}));
  for (const std::size_t sum : {2, 3}) {
    const runtime::Instruction& instruction = program->step().instructions[sum];
    EXPECT_TRUE(runtime::SamePlace(program->values[instruction.inputs[0]], program->values[instruction.outputs[0]]));
  }
}

// Written over %a, the first sum would change what the second one reads.
TEST(BucketLowering, AnOperandOfTwoSumsIsNotWrittenOver) {
  const absl::StatusOr<runtime::Program> program = LowerBucket("tensor<512xf32>, tensor<512xf32>", R"(
  %a = mpc.neg %x : tensor<512xf32>
  %first = mpc.all_reduce %a {mpc.bucket = 0 : i64, processes = 2} : tensor<512xf32>
  %second = mpc.all_reduce %a {mpc.bucket = 0 : i64, processes = 2} : tensor<512xf32>)");
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(RangesOf(*program), (std::vector<std::size_t>{1, 2}));
}

}  // namespace
}  // namespace mpc
