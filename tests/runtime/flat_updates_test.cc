#include "runtime/flat_updates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "runtime/program_check.h"
#include "runtime/step_groups.h"
#include "tests/runtime/flat_program.h"

namespace mpc::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Device& Cpu() { return **GetDevice("cpu"); }

/// The first momentum of MomentumOfThree.
constexpr std::size_t kFirst = 4;

/// Every temporary has a place of its own.
const PlaceOf kApart = [](ValueId id) { return id; };

TEST(FlatUpdates, AreUpdatesThatAgreeWithPaddingBetweenTheirTensors) {
  const std::vector<FlatUpdate> updates = FindFlatUpdates(MomentumOfThree().program, kApart);
  ASSERT_EQ(updates.size(), 1u);
  EXPECT_EQ(updates[0].first, kFirst);
  EXPECT_THAT(updates[0].offsets, ElementsAre(0, 32, 192));
  EXPECT_EQ(updates[0].elements, 207);
}

TEST(FlatUpdates, AreLaidOutInTheOrderThatIsAskedFor) {
  const Program program = MomentumOfThree().program;
  ASSERT_EQ(program.flat_updates.size(), 1u);
  EXPECT_THAT(program.flat_updates[0].offsets, ElementsAre(32, 64, 0));
  EXPECT_EQ(program.flat_updates[0].elements, 194);
  EXPECT_EQ(&FirstOfFlat(program, program.flat_updates[0]), &program.step().instructions[kFirst + 2]);
}

TEST(FlatUpdates, HaveOneBufferForEachOperandAndForShadows) {
  const Program program = MomentumOfThree().program;
  const std::vector<FlatTensors> buffers = FlatTensorsOf(program, program.flat_updates.at(0));
  std::vector<DType> types;
  for (const FlatTensors& tensors : buffers) types.push_back(tensors.dtype);
  EXPECT_THAT(types, ElementsAre(DType::kF32, DType::kF32, DType::kBF16, DType::kBF16));
  const std::vector<FlatStateBuffer> state = FlatStateBuffers(program);
  ASSERT_EQ(state.size(), 3u);
  EXPECT_EQ(program.state[state[2].state[1]].name, "weight1.bf16");
  EXPECT_THAT(state[0].offsets, ElementsAre(128, 256, 0));
  EXPECT_THAT(state[2].offsets, ElementsAre(64, 128, 0));
  EXPECT_EQ(state[0].bytes, 4u * 224);
}

struct Change {
  const char* what;
  std::function<void(Program&)> make;
  std::vector<std::size_t> counts;  ///< of the updates that are left
};

TEST(FlatUpdates, LeaveOutWhatDiffersOrIsShared) {
  const std::vector<Change> changes = {
      {"attributes of the last",
       [](Program& p) { p.step().instructions[kFirst + 2].attributes.Set("momentum", 0.9); },
       {2}},
      {"attributes of the second",
       [](Program& p) { p.step().instructions[kFirst + 1].attributes.Set("momentum", 0.9); },
       {}},
      {"a type", [](Program& p) { p.values[p.step().instructions[kFirst].inputs[2]].spec.dtype = DType::kF16; }, {2}},
      {"a rate of its own",
       [](Program& p) {
         p.values.push_back(p.values[0]);
         p.step().instructions[kFirst].inputs[3] = static_cast<ValueId>(p.values.size() - 1);
       },
       {2}},
      {"one gradient for two parameters",
       [](Program& p) {
         for (ValueId id : {p.step().instructions[kFirst + 1].inputs[0], p.step().instructions[kFirst + 1].inputs[1],
                            p.step().instructions[kFirst + 1].outputs[2]}) {
           p.values[id].spec.shape = {6};
         }
         p.step().instructions[kFirst + 1].inputs[2] = p.step().instructions[kFirst].inputs[2];
       },
       {2}},
      {"a gradient that is an input",
       [](Program& p) { p.values[p.step().instructions[kFirst].inputs[2]].storage = Storage::kInput; },
       {2}},
      {"a parameter that is a scalar",
       [](Program& p) {
         for (ValueId id : p.step().instructions[kFirst].inputs) p.values[id].spec.shape = {};
       },
       {2}},
      {"a result beside its parameter",
       [](Program& p) {
         p.values.push_back({p.values[p.step().instructions[kFirst].outputs[0]].spec});
         p.step().instructions[kFirst].outputs[0] = static_cast<ValueId>(p.values.size() - 1);
       },
       {2}},
      {"a result that nothing reads", [](Program& p) { p.step().instructions[kFirst].outputs[2] = kNoValue; }, {2}},
      {"another instruction in between",
       [](Program& p) {
         p.step().instructions.insert(p.step().instructions.begin() + kFirst + 2, p.step().instructions[0]);
       },
       {2}},
      {"norms of each parameter",
       [](Program& p) {
         for (std::size_t i = 0; i < 3; ++i) p.step().instructions[kFirst + i].kernel = "lamb";
       },
       {}},
  };
  for (const Change& change : changes) {
    Program program = MomentumOfThree().program;
    change.make(program);
    std::vector<std::size_t> counts;
    for (const FlatUpdate& update : FindFlatUpdates(program, kApart)) counts.push_back(update.offsets.size());
    EXPECT_EQ(counts, change.counts) << change.what;
  }
}

TEST(FlatUpdates, TakeNoGradientWhosePlaceAnotherOneHas) {
  const Program program = MomentumOfThree().program;
  const auto gradient = [&](std::size_t i) { return program.step().instructions[kFirst + i].inputs[2]; };
  const auto firsts = [&](ValueId view, ValueId of) {
    std::vector<std::size_t> firsts;
    for (const FlatUpdate& update : FindFlatUpdates(program, [&](ValueId id) { return id == view ? of : id; })) {
      firsts.push_back(update.first);
    }
    return firsts;
  };
  EXPECT_THAT(firsts(gradient(2), gradient(0)), ElementsAre(kFirst)) << "the first two";
  EXPECT_THAT(firsts(gradient(1), gradient(0)), ElementsAre(kFirst + 1)) << "the last two";
}

TEST(FlatUpdates, ThatDoNotLieAsTheySayAreErrors) {
  const Program good = MomentumOfThree().program;
  ASSERT_TRUE(CheckProgram(good).ok()) << CheckProgram(good);
  struct Defect {
    const char* message;
    std::function<void(Program&)> damage;
  };
  const std::vector<Defect> defects = {
      {"flat update 0: it has 0 instructions from 4 on, of 7", [](Program& p) { p.flat_updates[0].offsets.clear(); }},
      {"it has 3 instructions from 5 on, of 7", [](Program& p) { p.flat_updates[0].first = 5; }},
      {"it has 3 instructions from 18446744073709551615 on, of 7",
       [](Program& p) { p.flat_updates[0].first = std::numeric_limits<std::size_t>::max(); }},
      {"instruction 3 cannot be part of it: \"cast\" is no element-wise update",
       [](Program& p) { p.flat_updates[0].first = 3; }},
      {"instruction 5 cannot be part of it: kernel, attributes, types or results are others",
       [](Program& p) { p.step().instructions[5].attributes.Set("momentum", 0.9); }},
      {"a tensor begins at element 16, not at 0, behind the one before it",
       [](Program& p) { p.flat_updates[0].offsets[2] = 16; }},
      {"a tensor begins at element -32", [](Program& p) { p.flat_updates[0].offsets[0] = -32; }},
      {"a tensor begins at element 9223372036854775807",
       [](Program& p) { p.flat_updates[0].offsets[1] = std::numeric_limits<std::int64_t>::max(); }},
      {"its tensors end at element 194, it says 4096", [](Program& p) { p.flat_updates[0].elements = 4096; }},
      {"of the arena, not at ", [](Program& p) { p.values[p.step().instructions[4].inputs[2]].offset += 64; }},
      {"flat update 1 begins in the one before it", [](Program& p) { p.flat_updates.push_back(p.flat_updates[0]); }},
  };
  for (const Defect& defect : defects) {
    Program program = good;
    defect.damage(program);
    const absl::Status status = CheckProgram(program);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << defect.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(defect.message));
  }
  // Each tensor lies inside the arena, the padding between them does not.
  Program outside = good;
  for (std::size_t i = 0; i < 3; ++i) {
    outside.values[outside.step().instructions[kFirst + i].inputs[2]].offset =
        outside.arena_bytes - 64 + 2 * static_cast<std::size_t>(outside.flat_updates[0].offsets[i]);
  }
  EXPECT_THAT(std::string(CheckProgram(outside).message()), HasSubstr("outside the arena"));
}

using Content = std::map<std::string, std::vector<std::uint8_t>>;

Content ContentOf(const StateStore& store) {
  Content content;
  for (const std::shared_ptr<StateEntry>& entry : store.entries()) {
    std::vector<std::uint8_t>& bytes = content[entry->name()];
    bytes.resize(entry->spec().bytes());
    EXPECT_TRUE(entry->Read(absl::MakeSpan(bytes)).ok());
  }
  return content;
}

/// What three steps make of the state, and how many kernels update it.
Content Train(const Program& program, StateStore& store) {
  auto executable = Cpu().Load(std::make_shared<const Program>(program), store);
  EXPECT_TRUE(executable.ok()) << executable.status();
  if (!executable.ok()) return {};
  const FlatInputs inputs;
  for (int step = 0; step < 3; ++step) EXPECT_TRUE((*executable)->Run(inputs).ok());
  return ContentOf(store);
}

/// Bytes from `name` of tensor 2, the first one of the layout, to that of tensor `i`.
std::ptrdiff_t Distance(const StateStore& store, const std::string& name, int i, const std::string& type = "") {
  const auto address = [&](int tensor) {
    return static_cast<const std::byte*>(store.Find(name + std::to_string(tensor) + type)->data());
  };
  return address(i) - address(2);
}

Content ContentWithoutFlatUpdate() {
  Program apart = MomentumOfThree().program;
  apart.flat_updates.clear();
  StateStore store;
  AddFlatState(store);
  return Train(apart, store);
}

TEST(FlatUpdates, GiveTheBitsOfSingleOnesWhateverLiesInThePadding) {
  StateStore store;
  AddFlatState(store);
  EXPECT_EQ(Train(MomentumOfThree().program, store), ContentWithoutFlatUpdate());
  for (const char* name : {"weight", "velocity"}) {
    EXPECT_EQ(Distance(store, name, 0), 4 * 32);
    EXPECT_EQ(Distance(store, name, 1), 4 * 64);
  }
  EXPECT_EQ(Distance(store, "weight", 1, ".bf16"), 2 * 64);
}

TEST(FlatUpdates, AreOneCallOfOneTensor) {
  const Program program = MomentumOfThree().program;
  const auto ranges = GroupInstructions(program, [](std::string_view name) { return name == "momentum"; });
  ASSERT_EQ(ranges.size(), kFirst + 1);
  ASSERT_EQ(ranges.back().flat, &program.flat_updates[0]);
  // Where everything lies as in the arena: state too.
  std::map<const Value*, std::int64_t> places;
  for (const FlatTensors& tensors : FlatTensorsOf(program, program.flat_updates[0])) {
    for (std::size_t i = 0; i < 3; ++i) {
      places[&program.values[tensors.values[i]]] =
          program.flat_updates[0].offsets[i] * static_cast<std::int64_t>(ElementSize(tensors.dtype));
    }
  }
  std::vector<std::byte> memory(1 << 16);
  const auto flat = PartsOf(program, ranges.back(), [&](const Value& value) { return &memory[places[&value]]; });
  ASSERT_TRUE(flat.ok()) << flat.status();
  ASSERT_EQ(flat->specs.size(), 1u);
  EXPECT_EQ(flat->specs[0].inputs[2].ToString(), "tensor<194xbf16>");
  EXPECT_EQ(flat->specs[0].outputs[2].ToString(), "tensor<194xbf16>");
  EXPECT_EQ(flat->specs[0].inputs[3].ToString(), "tensor<f32>");
  EXPECT_EQ(flat->instructions[0], &program.step().instructions[kFirst + 2]);
  places[&program.values[program.step().instructions[kFirst].inputs[0]]] += 64;
  const auto apart = PartsOf(program, ranges.back(), [&](const Value& value) { return &memory[places[&value]]; });
  ASSERT_TRUE(apart.ok()) << apart.status();
  EXPECT_EQ(apart->specs.size(), 3u) << "a tensor lies elsewhere";
}

TEST(FlatUpdates, GiveTheSameBitsWhereStateStaysWhereAnotherProgramFoundIt) {
  StateStore store;
  AddFlatState(store);
  ProgramBuilder reader("predict");
  const ValueId y = reader.Temporary({DType::kF32, {6}});
  reader.Call("neg", {reader.State("weight0", {DType::kF32, {6}}, false)}, {y});
  reader.Output("y", y);
  auto predict = Cpu().Load(reader.Build(), store);
  ASSERT_TRUE(predict.ok()) << predict.status();
  const void* const before = store.Find("weight0")->data();
  const Content content = Train(MomentumOfThree().program, store);
  EXPECT_EQ(content, ContentWithoutFlatUpdate());
  EXPECT_EQ(store.Find("weight0")->data(), before);
  EXPECT_EQ(Distance(store, "velocity", 1), 4 * 64) << "what nothing else uses lies together";
  ASSERT_TRUE((*predict)->Run({}).ok());
  std::vector<float> weight(6);
  std::memcpy(weight.data(), content.at("weight0").data(), content.at("weight0").size());
  for (float& value : weight) value = -value;
  EXPECT_EQ(ValuesOf<float>((*predict)->output(0)), weight) << "it reads what training writes";
}

}  // namespace
}  // namespace mpc::runtime
