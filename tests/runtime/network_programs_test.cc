// The Programs of networks keep what whoever records them relies on: instructions stand in an order in which they can
// run, live values have bytes of their own, workspaces lie beside them and are large enough.
#include "tests/runtime/network_programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/flat_updates.h"
#include "tests/runtime/program_audit.h"

namespace mpc::testing {
namespace {

using runtime::AuditProgram;
using runtime::Instruction;
using runtime::kNoValue;
using runtime::Program;
using runtime::Storage;
using runtime::ValueId;
using ::testing::IsEmpty;
using ::testing::Not;

/// A device and what to compile for.
using Target = std::pair<std::string, std::string>;

std::vector<Target> Targets() {
  std::vector<Target> targets = {{"cpu", ""}};
#ifdef MPC_TEST_HAS_CUDA
  targets.emplace_back("cuda", "sm_80");
  targets.emplace_back("cuda", "sm_90");
#endif
  return targets;
}

class NetworkPrograms : public ::testing::TestWithParam<std::tuple<Target, std::string, std::string>> {
 protected:
  void SetUp() override {
    const auto& [device, arch] = std::get<0>(GetParam());
    const absl::Status status = SetContext({.device = device, .arch = arch});
    ASSERT_TRUE(status.ok()) << status;
  }
  void TearDown() override { ASSERT_TRUE(SetContext({}).ok()); }
};

std::string ParamName(const ::testing::TestParamInfo<NetworkPrograms::ParamType>& info) {
  const Target& target = std::get<0>(info.param);
  return target.first + target.second + "_" + std::get<1>(info.param) + "_" + std::get<2>(info.param);
}

INSTANTIATE_TEST_SUITE_P(All, NetworkPrograms,
                         ::testing::Combine(::testing::ValuesIn(Targets()), ::testing::ValuesIn(SmallNetworks()),
                                            ::testing::Values("O0", "O2")),
                         ParamName);

TEST_P(NetworkPrograms, HaveAnOrderAndBytesOfTheirOwn) {
  const auto& [target, network, level] = GetParam();
  const auto programs = ProgramsOf(network, level);
  ASSERT_TRUE(programs.ok()) << programs.status();
  ASSERT_EQ(programs->size(), 3u);
  const auto device = runtime::GetTarget(target.first, target.second);
  ASSERT_TRUE(device.ok()) << device.status();
  for (const Program& program : *programs) {
    EXPECT_EQ(program.arch, target.second);
    EXPECT_THAT(AuditProgram(program, **device), IsEmpty()) << program.name;
  }
}

TEST_P(NetworkPrograms, UpdateFlatBuffers) {
  const auto& [target, network, level] = GetParam();
  const auto programs = ProgramsOf(network, level);
  ASSERT_TRUE(programs.ok()) << programs.status();
  for (const Program& program : *programs) {
    std::size_t updates = 0, flat = 0;
    for (const Instruction& instruction : program.step().instructions) {
      updates += runtime::IsElementwiseUpdate(instruction.kernel);
    }
    for (const runtime::FlatUpdate& update : program.flat_updates) flat += update.offsets.size();
    EXPECT_EQ(flat, updates) << program.name;
    EXPECT_TRUE(updates > 1 || program.name != "train_step");
  }
}

/// The training step of LeNet-5 at O2 on the CPU, and what an audit says after damage.
class AuditOfDamage : public ::testing::Test {
 protected:
  void SetUp() override {
    auto programs = ProgramsOf("lenet5", "O2");
    ASSERT_TRUE(programs.ok()) << programs.status();
    program_ = programs->front();
    device_ = *runtime::GetDevice("cpu");
    ASSERT_THAT(AuditProgram(program_, *device_), IsEmpty());
  }
  std::vector<std::string> After(const std::function<void(Program&)>& damage) const {
    Program damaged = program_;
    damage(damaged);
    return AuditProgram(damaged, *device_);
  }
  static bool Reads(const Instruction& instruction, ValueId id) {
    return std::find(instruction.inputs.begin(), instruction.inputs.end(), id) != instruction.inputs.end();
  }
  /// The last instruction that reads `id`; -1: none.
  int LastReader(ValueId id) const {
    for (int i = static_cast<int>(program_.step().instructions.size()) - 1; i >= 0; --i) {
      if (Reads(program_.step().instructions[i], id)) return i;
    }
    return -1;
  }
  /// `instruction` runs right before `other`, which stood before it.
  static void MoveBefore(Program& program, int instruction, int other) {
    const auto begin = program.step().instructions.begin();
    std::rotate(begin + other, begin + instruction, begin + instruction + 1);
  }

  Program program_;
  const runtime::Device* device_ = nullptr;
};

TEST_F(AuditOfDamage, FindsEveryReaderBeforeItsWriter) {
  int damages = 0;
  for (int writer = 0; writer < static_cast<int>(program_.step().instructions.size()); ++writer) {
    for (const ValueId id : program_.step().instructions[writer].outputs) {
      const int reader = id == kNoValue ? -1 : LastReader(id);
      if (reader <= writer) continue;
      ++damages;
      EXPECT_THAT(After([&](Program& program) { MoveBefore(program, reader, writer); }), Not(IsEmpty()))
          << "instruction " << reader << " before " << writer;
    }
  }
  EXPECT_GT(4 * damages, 3 * static_cast<int>(program_.step().instructions.size()));
}

TEST_F(AuditOfDamage, FindsStateThatIsWrittenBeforeItsLastReader) {
  int damages = 0;
  for (int writer = 0; writer < static_cast<int>(program_.step().instructions.size()); ++writer) {
    for (const ValueId id : program_.step().instructions[writer].outputs) {
      if (id == kNoValue || program_.values[id].storage != Storage::kState) continue;
      for (int reader = 0; reader < writer; ++reader) {
        const bool reads_old = std::any_of(program_.step().instructions[reader].inputs.begin(),
                                           program_.step().instructions[reader].inputs.end(), [&](ValueId in) {
                                             return program_.values[in].storage == Storage::kState &&
                                                    program_.values[in].index == program_.values[id].index;
                                           });
        if (!reads_old) continue;
        ++damages;
        EXPECT_THAT(After([&](Program& program) { MoveBefore(program, writer, reader); }), Not(IsEmpty()))
            << "instruction " << writer << " before " << reader;
      }
    }
  }
  EXPECT_GT(damages, 5);
}

TEST_F(AuditOfDamage, FindsEveryValueThatIsPutOverALiveOne) {
  int damages = 0;
  for (int first = 0; first < static_cast<int>(program_.step().instructions.size()); ++first) {
    for (const ValueId live : program_.step().instructions[first].outputs) {
      if (live == kNoValue || program_.values[live].storage != Storage::kTemporary) continue;
      for (int second = first + 1; second < LastReader(live); ++second) {
        for (const ValueId other : program_.step().instructions[second].outputs) {
          if (other == kNoValue || program_.values[other].storage != Storage::kTemporary) continue;
          const std::size_t place = program_.values[live].offset;
          if (place + program_.values[other].spec.bytes() > program_.arena_bytes) continue;
          ++damages;
          EXPECT_THAT(After([&](Program& program) { program.values[other].offset = place; }), Not(IsEmpty()))
              << "value " << other << " over " << live;
        }
      }
    }
  }
  EXPECT_GT(damages, 100);
}

TEST_F(AuditOfDamage, FindsWorkspacesOverOperandsAndTooSmallOnes) {
  int damages = 0;
  for (std::size_t i = 0; i < program_.step().instructions.size(); ++i) {
    const Instruction& instruction = program_.step().instructions[i];
    if (instruction.workspace_bytes == 0) continue;
    ++damages;
    // What generated code needs is known to its instruction alone.
    if (instruction.kernel.rfind("generated.", 0) != 0) {
      EXPECT_THAT(After([i](Program& program) { program.step().instructions[i].workspace_bytes = 0; }), Not(IsEmpty()));
    }
    for (const ValueId id : instruction.inputs) {
      const runtime::Value& value = program_.values[id];
      if (value.storage != Storage::kTemporary) continue;
      if (value.offset + instruction.workspace_bytes > program_.arena_bytes) continue;
      EXPECT_THAT(After([&](Program& program) { program.step().instructions[i].workspace_offset = value.offset; }),
                  Not(IsEmpty()));
    }
  }
  EXPECT_GT(damages, 0);
}

TEST_F(AuditOfDamage, FindsOutputsThatDoNotLast) {
  const ValueId loss = program_.outputs[0].value;
  ASSERT_EQ(program_.values[loss].storage, Storage::kTemporary);
  const Instruction& last = program_.step().instructions.back();
  EXPECT_THAT(After([&](Program& program) {
                program.step().instructions.back().workspace_offset = program.values[loss].offset;
                program.step().instructions.back().workspace_bytes = std::max<std::size_t>(last.workspace_bytes, 64);
              }),
              Not(IsEmpty()));
}

}  // namespace
}  // namespace mpc::testing
