#include "runtime/program_check.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "tests/runtime/program_builder.h"

namespace mpc::runtime {
namespace {

const TensorSpec kVector{DType::kF32, {4}};

/// sum = weight + x, weight = sum through a copy.
Program GoodProgram() {
  ProgramBuilder builder("good");
  const ValueId weight = builder.State("weight", kVector, true);
  const ValueId x = builder.Input("x", kVector);
  const ValueId sum = builder.Temporary(kVector);
  builder.Call("add", {weight, x}, {sum});
  builder.program.step().copies.push_back({sum, weight, "test"});
  builder.Output("sum", sum);
  return builder.program;
}

TEST(ProgramCheck, AcceptsAWellFormedProgram) { EXPECT_TRUE(CheckProgram(GoodProgram()).ok()); }

/// y = x + weight four times over, through a temporary that the sequence copies to what it carries.
Program RepeatingProgram() {
  ProgramBuilder builder("repeating");
  const ValueId weight = builder.State("weight", kVector, true);
  const ValueId x = builder.Input("x", kVector);
  const ValueId y = builder.Temporary(kVector);
  const ValueId sum = builder.Temporary(kVector);
  builder.Repeat(4, {x, weight}, {y}, {{"add", {y, weight}, {sum}, {}, 0, 0, "test"}}, {{sum, y, "test"}});
  builder.program.step().copies.push_back({y, weight, "test"});
  builder.Output("y", y);
  return builder.program;
}

struct Defect {
  const char* message;
  std::function<void(Program&)> damage;
};

/// Each defect of what `make` gives is an error that names it.
void ExpectErrors(Program (*make)(), const std::vector<Defect>& defects) {
  for (const Defect& defect : defects) {
    Program program = make();
    defect.damage(program);
    const absl::Status status = CheckProgram(program);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << defect.message;
    EXPECT_NE(status.message().find(defect.message), absl::string_view::npos)
        << "expected \"" << defect.message << "\" in\n"
        << status.message();
  }
}

TEST(ProgramCheck, EveryDefectOfASequenceIsAnErrorThatNamesIt) {
  EXPECT_TRUE(CheckProgram(RepeatingProgram()).ok()) << CheckProgram(RepeatingProgram());
  const auto call = [](Program& p) -> Instruction& { return p.step().instructions[0]; };
  ExpectErrors(
      RepeatingProgram,
      {{"it has no sequence; the first is the step", [](Program& p) { p.sequences.clear(); }},
       {"instruction 0 (repeat in test) runs sequence 2 of 2 from sequence 0; it may run those behind its own",
        [&](Program& p) { call(p).sequence = 2; }},
       {"runs sequence -1 of 2 from sequence 0", [&](Program& p) { call(p).sequence = -1; }},
       {"sequence 1 (@body), instruction 0 (add in test) runs sequence 1 of 2 from sequence 1",
        [](Program& p) { p.sequences[1].instructions[0].sequence = 1; }},
       {"sequence 1 (@body) is run by no sequence in front of it", [&](Program& p) { call(p).sequence = 0; }},
       {"instruction 1 (repeat in test) runs sequence 1, which another instruction runs too",
        [&](Program& p) { p.step().instructions.push_back(call(p)); }},
       {"runs sequence 1 0 times, 1 times in a step; 1 is the least, and 1048576 runs of all ",
        [&](Program& p) { call(p).attributes.Set(kRepeatCount, std::int64_t{0}); }},
       {"runs sequence 1 1048577 times, 1 times in a step",
        [&](Program& p) { call(p).attributes.Set(kRepeatCount, std::int64_t{1048577}); }},
       {"instruction 0 (relu in test) runs sequence 1; \"repeat\" runs one, no other kernel does",
        [&](Program& p) { call(p).kernel = "relu"; }},
       {"it has 4097 sequences; 4096 are the most", [](Program& p) { p.sequences.resize(4097); }},
       {"sequence 1 (@body), copy 0 copies bytes to a place that they overlap",
        [](Program& p) {
          for (ValueId id : {1, 2, 3}) p.values[id].spec.shape = {40};
          p.values[0].spec.shape = p.state[0].spec.shape = {40};
          p.values[3].offset = p.values[2].offset + 64;
          p.arena_bytes = 4096;
        }},
       {"has 1 outputs and 0 inputs; each output begins as the input at its position",
        [&](Program& p) { call(p).inputs.clear(); }},
       {"output 0 is tensor<4xf32> and begins as tensor<4xi32>",
        [&](Program& p) { p.values[call(p).inputs[0]].spec.dtype = DType::kI32; }},
       {"output 1 has no value, and the sequence writes it", [&](Program& p) { call(p).outputs.push_back(kNoValue); }},
       {"sequence 1 (@body), instruction 0 (add in test), input 0 is value 17 of 4",
        [](Program& p) { p.sequences[1].instructions[0].inputs[0] = 17; }},
       {"sequence 1 (@body), instruction 0 (add in test), output 0 writes state \"weight\", which what runs its "
        "sequence does not",
        [](Program& p) { p.sequences[1].instructions[0].outputs[0] = 0; }},
       {"sequence 1 (@body), copy 0 writes value 3, which is no output of what runs its sequence",
        [](Program& p) { p.sequences[1].copies[0].to = 3; }},
       {"refresh 0 runs a sequence; a refresh is one kernel call", [](Program& p) {
          p.state.push_back({"low", Role::kDerived, {DType::kF16, {4}}, false});
          p.values.push_back({p.state[1].spec, Storage::kState, 1, 0});
          p.refreshes.push_back({1, 0, {"cast", {0}, {4}, {}, 0, 0, "test", 1}});
        }}});
}

TEST(ProgramCheck, FindsStateThatASequenceReads) {
  Program program = RepeatingProgram();
  EXPECT_TRUE(FindStateUses(program)[0].read_before_written);
  program.step().instructions[0].inputs.pop_back();  // which names the state
  ASSERT_TRUE(CheckProgram(program).ok()) << CheckProgram(program);
  EXPECT_TRUE(FindStateUses(program)[0].read_before_written);
}

// One sequence in the other, so that running them needs little of a stack.
TEST(ProgramCheck, LimitsHowDeepSequencesLie) {
  const auto nested = [](std::size_t depth) {
    Program program = RepeatingProgram();
    Instruction call = program.step().instructions[0];
    for (std::size_t i = 1; i < depth; ++i) {
      call.sequence = static_cast<std::int32_t>(i + 1);
      call.attributes.Set(kRepeatCount, std::int64_t{1});
      program.sequences[i].instructions.push_back(call);
      program.sequences.push_back({"deeper", {}, {}});
    }
    return CheckProgram(program);
  };
  EXPECT_TRUE(nested(64).ok()) << nested(64);
  EXPECT_NE(nested(65).message().find("runs a sequence that lies more than 64 deep"), absl::string_view::npos);
}

TEST(ProgramCheck, EveryDefectIsAnErrorThatNamesIt) {
  const std::vector<Defect> defects = {
      {"value 0 is state 5 of 1", [](Program& p) { p.values[0].index = 5; }},
      {"value 0 is state -1 of 1", [](Program& p) { p.values[0].index = -1; }},
      {"value 0 is tensor<5xf32>, its state \"weight\" is tensor<4xf32>",
       [](Program& p) { p.values[0].spec.shape = {5}; }},
      {"value 0 is tensor<4xi32>, its state \"weight\" is tensor<4xf32>",
       [](Program& p) { p.values[0].spec.dtype = DType::kI32; }},
      {"value 1 is input 3 of 1", [](Program& p) { p.values[1].index = 3; }},
      {"end outside the arena", [](Program& p) { p.values[2].offset = 128; }},
      {"end outside the arena",
       [](Program& p) { p.values[2].offset = std::numeric_limits<std::size_t>::max() / 64 * 64; }},
      {"offset 4 is not a multiple of 64", [](Program& p) { p.values[2].offset = 4; }},
      {"end outside the constants", [](Program& p) { p.values[2].storage = Storage::kConstant; }},
      {"writes a constant", [](Program& p) { p.values[2].storage = Storage::kConstant; }},
      {"value 2 has no valid type", [](Program& p) { p.values[2].spec.shape = {-4}; }},
      {"value 2 is tensor<4x0xf32>; every tensor has at least one element",
       [](Program& p) {
         p.values[2].spec.shape = {4, 0};
       }},
      {"state \"weight\" is tensor<0xf32>; every tensor has at least one element",
       [](Program& p) { p.state[0].spec.shape = p.values[0].spec.shape = {0}; }},
      {"value 2 has no valid type",
       [](Program& p) {
         p.values[2].spec.shape = {std::int64_t{1} << 40, std::int64_t{1} << 40};
       }},
      {"value 2 has no valid type", [](Program& p) { p.values[2].spec.dtype = static_cast<DType>(99); }},
      {"value 2 has no valid storage", [](Program& p) { p.values[2].storage = static_cast<Storage>(9); }},
      {"instruction 0 (add in test), input 1 is value 17 of 3",
       [](Program& p) { p.step().instructions[0].inputs[1] = 17; }},
      {"input 0 is value -1 of 3", [](Program& p) { p.step().instructions[0].inputs[0] = kNoValue; }},
      {"output 0 is value -2 of 3", [](Program& p) { p.step().instructions[0].outputs[0] = -2; }},
      {"instruction 0 (add in test): no output has a value",
       [](Program& p) { p.step().instructions[0].outputs[0] = kNoValue; }},
      {"writes an input", [](Program& p) { p.step().instructions[0].outputs[0] = 1; }},
      {"writes state \"weight\", which is bound as read only", [](Program& p) { p.state[0].written = false; }},
      {"workspace: 1024 bytes", [](Program& p) { p.step().instructions[0].workspace_bytes = 1024; }},
      {"state copy 0 does not write state", [](Program& p) { p.step().copies[0].to = 2; }},
      {"state copy 0 copies tensor<2x2xf32> to tensor<4xf32>",
       [](Program& p) {
         p.values[2].spec.shape = {2, 2};
       }},
      {"input 0 \"x\" is value 1, which is not stored as that input",
       [](Program& p) { p.values[1].storage = Storage::kTemporary; }},
      {"state copy 0, source is value 3 of 3", [](Program& p) { p.step().copies[0].from = 3; }},
      {"state \"weight\" is bound twice", [](Program& p) { p.state.push_back(p.state[0]); }},
      {"a state binding has no name", [](Program& p) { p.state[0].name.clear(); }},
      {"input 0 \"x\" is value 2, which is not stored as that input", [](Program& p) { p.inputs[0].value = 2; }},
      {"output 0 \"sum\" is value -1 of 3", [](Program& p) { p.outputs[0].value = kNoValue; }},
      {"larger than any address space",
       [](Program& p) { p.arena_bytes = std::numeric_limits<std::size_t>::max() - 10; }},
  };
  ExpectErrors(GoodProgram, defects);
}

/// A given constant of 4 elements, then fills of 64 bytes of f32 and of 128 bytes of f16.
Program ProgramWithFills() {
  ProgramBuilder builder("filled");
  const float given[] = {1, 2, 3, 4};
  builder.Constant(kVector, given);
  builder.Filled({DType::kF32, {16}}, 2.5f);
  builder.Filled({DType::kF16, {40}}, std::uint16_t{0x3c00});
  return builder.program;
}

TEST(ProgramCheck, AConstantLiesAmongTheGivenOnesOrInOneFill) {
  const absl::Status good = CheckProgram(ProgramWithFills());
  EXPECT_TRUE(good.ok()) << good;
  const std::vector<Defect> defects = {
      {"value 2: 80 bytes at offset 256 end outside the constants of 256 bytes",
       [](Program& p) { p.values[2].offset = 256; }},
      {"value 1: 128 bytes at offset 64 of the constants reach into a fill that begins at 128",
       [](Program& p) { p.values[1].spec.shape = {32}; }},
      {"value 0: 68 bytes at offset 0 of the constants reach into a fill that begins at 64",
       [](Program& p) { p.values[0].spec.shape = {17}; }},
      {"fill 0 has an element of 3 bytes; an element has 1, 2, 4 or 8",
       [](Program& p) { p.fills[0].element.pop_back(); }},
      {"fill 1 has an element of 0 bytes", [](Program& p) { p.fills[1].element.clear(); }},
      {"fill 0 has 63 bytes, which is no positive multiple of 64", [](Program& p) { p.fills[0].bytes = 63; }},
      {"fill 1 has 0 bytes", [](Program& p) { p.fills[1].bytes = 0; }},
      {"fill 1 of 18446744073709551552 bytes makes the constants larger than any address space",
       [](Program& p) { p.fills[1].bytes = std::numeric_limits<std::size_t>::max() / 64 * 64; }},
      {"fills begin behind 65 bytes of given constants", [](Program& p) { p.constants.push_back(0); }},
  };
  ExpectErrors(ProgramWithFills, defects);
}

/// A program whose one instruction is code that it carries.
Program ProgramWithCode() {
  ProgramBuilder builder("fused");
  const ValueId x = builder.Input("x", kVector);
  const ValueId y = builder.Temporary(kVector);
  builder.Call("generated.region", {x}, {y},
               {{"blocks", std::vector<std::int64_t>{2, 1}},
                {"threads", std::vector<std::int64_t>{1, 1}},
                {"shared_bytes", std::vector<std::int64_t>{0, 64}}});
  builder.program.code.push_back({"code", "elf", {1, 2, 3}, {"region_0", "region_1"}});
  builder.Output("y", y);
  return builder.program;
}

TEST(ProgramCheck, CodeHasTheFunctionsThatInstructionsCall) {
  const absl::Status good = CheckProgram(ProgramWithCode());
  EXPECT_TRUE(good.ok()) << good;
  const auto set = [](const char* name, std::vector<std::int64_t> values) {
    return [name, values](Program& p) { p.step().instructions[0].attributes.Set(name, values); };
  };
  const std::vector<Defect> defects = {
      {"no code of the program has a function \"region_1\"", [](Program& p) { p.code[0].kernels.pop_back(); }},
      {"no code of the program has a function \"other_0\"",
       [](Program& p) { p.step().instructions[0].kernel = "generated.other"; }},
      {"code \"code\": another blob has a kernel \"region_0\" too", [](Program& p) { p.code.push_back(p.code[0]); }},
      {"code \"code\" is in format \"a.out\"; known are cubin, elf, object, ptx",
       [](Program& p) { p.code[0].format = "a.out"; }},
      {"code \"code\" has no bytes", [](Program& p) { p.code[0].bytes.clear(); }},
      {"generated code stores every output, and one has no value",
       [](Program& p) { p.step().instructions[0].outputs[0] = kNoValue; }},
      {"blocks = [2, 0]", set("blocks", {2, 0})},
      {"blocks = []", set("blocks", {})},
      {"threads = [1]", set("threads", {1})},
      {"threads = [1025, 1]", set("threads", {1025, 1})},
      {"shared_bytes = [0, -1]", set("shared_bytes", {0, -1})},
      {"shared_bytes = [0, 262144]", set("shared_bytes", {0, 262144})},
  };
  ExpectErrors(ProgramWithCode, defects);
}

/// A program that reads the low copy of a weight.
Program ProgramWithDerivedState() {
  ProgramBuilder builder("shadowed");
  const ValueId weight = builder.State("weight", kVector, false);
  const ValueId other = builder.State("other", kVector, false);
  const ValueId low = builder.Derived(weight, DType::kF16, false);
  const ValueId y = builder.Temporary({DType::kF16, {4}});
  builder.Call("add", {low, other}, {y});
  builder.Output("y", y);
  return builder.program;
}

TEST(ProgramCheck, DerivedStateHasOneRefreshFromItsSource) {
  EXPECT_TRUE(CheckProgram(ProgramWithDerivedState()).ok());
  const std::vector<Defect> defects = {
      {"derived state \"weight.f16\" has 0 refreshes", [](Program& p) { p.refreshes.clear(); }},
      {"derived state \"weight.f16\" has 2 refreshes", [](Program& p) { p.refreshes.push_back(p.refreshes[0]); }},
      {"refresh 0 makes state 7 from state 0 of 3", [](Program& p) { p.refreshes[0].derived = 7; }},
      {"refresh 0 makes state 2 from state -1 of 3", [](Program& p) { p.refreshes[0].source = -1; }},
      {"refresh 0 writes state \"other\", which is no derived state", [](Program& p) { p.refreshes[0].derived = 1; }},
      {"refresh 0 reads derived state \"weight.f16\"", [](Program& p) { p.refreshes[0].source = 2; }},
      {"refresh 0 (cast) must read \"weight\" alone and write \"weight.f16\" alone",
       [](Program& p) { p.refreshes[0].instruction.inputs.push_back(1); }},
      {"refresh 0 (cast) must read \"weight\" alone", [](Program& p) { p.refreshes[0].instruction.inputs = {1}; }},
      {"refresh 0 (cast) must read \"weight\" alone", [](Program& p) { p.refreshes[0].instruction.outputs = {99}; }},
      {"refresh 0, workspace: 64 bytes",
       [](Program& p) {
         p.refreshes[0].instruction.workspace_offset = 1 << 20;
         p.refreshes[0].instruction.workspace_bytes = 64;
       }},
  };
  ExpectErrors(ProgramWithDerivedState, defects);
}

TEST(ProgramCheck, DerivedStateNeedsNoValueButItsSourceDoes) {
  const std::vector<StateUse> uses = FindStateUses(ProgramWithDerivedState());
  EXPECT_TRUE(uses[0].read_before_written) << "the source";
  EXPECT_FALSE(uses[2].read_before_written) << "the derived state";
}

TEST(ProgramCheck, ListsEveryProblem) {
  Program program = GoodProgram();
  program.values[0].index = 5;
  program.outputs[0].value = 99;
  const absl::Status status = CheckProgram(program);
  EXPECT_NE(status.message().find("value 0 is state 5 of 1"), absl::string_view::npos);
  EXPECT_NE(status.message().find("output 0 \"sum\" is value 99 of 3"), absl::string_view::npos);
}

TEST(StateUses, AnEntryThatIsWrittenFirstIsNotRead) {
  ProgramBuilder builder("init_state");
  const ValueId weight = builder.State("weight", kVector, true);
  const ValueId bias = builder.State("bias", kVector, false);
  builder.Call("neg", {bias}, {weight});
  builder.Call("neg", {weight}, {weight});
  const std::vector<StateUse> uses = FindStateUses(builder.program);
  EXPECT_FALSE(uses[0].read_before_written);
  EXPECT_TRUE(uses[0].written);
  EXPECT_TRUE(uses[1].read_before_written);
  EXPECT_FALSE(uses[1].written);
}

}  // namespace
}  // namespace mpc::runtime
