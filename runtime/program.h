// A compiled step as plain data: no pointers, no compiler types, made to be saved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attributes.h"
#include "kernels/tensor_spec.h"
#include "runtime/phase.h"
#include "runtime/role.h"

namespace mpc::runtime {

/// Index of a Value in Program::values; kNoValue marks an unused result.
using ValueId = std::int32_t;
inline constexpr ValueId kNoValue = -1;

enum class Storage : std::uint8_t {
  kState,      ///< an entry of the StateStore; `index` into Program::state
  kInput,      ///< copied in before the step; `index` into Program::inputs, at `offset` in the arena
  kTemporary,  ///< at `offset` in the arena
  kConstant,   ///< at `offset` of the constants: in Program::constants, or behind them in one of Program::fills
};

struct Value {
  TensorSpec spec;
  Storage storage = Storage::kTemporary;
  std::int32_t index = -1;
  std::size_t offset = 0;
};

/// One kernel call, or a run of another sequence. `kernel` is the IR mnemonic without "mpc.".
struct Instruction {
  std::string kernel;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Attributes attributes;
  std::size_t workspace_offset = 0;
  std::size_t workspace_bytes = 0;
  std::string scope;          ///< Cell path, for messages and traces
  std::int32_t sequence = 0;  ///< the sequence that it runs, see Sequence; 0: none
  Phase phase = Phase::kUnknown;
};

/// The kernel of an instruction that runs a sequence, and its attribute: how many times, an integer of 1 at least.
inline constexpr const char* kRepeat = "repeat";
inline constexpr const char* kRepeatCount = "count";
/// Limits of a Program: the number of its sequences, their depth below the step, and the number of their runs in a
/// step, all together. They bound its memory, stack and time.
inline constexpr std::size_t kMostSequences = 4096;
inline constexpr int kDeepestSequence = 64;
inline constexpr std::int64_t kMostRuns = std::int64_t{1} << 20;

/// A state entry that the Program reads or writes.
struct StateBinding {
  std::string name;              ///< "conv1.weight", "optimizer.conv1.weight.velocity", "scaler.scale"
  Role role = Role::kParameter;  ///< a role of state
  TensorSpec spec;
  bool written = false;
};

struct NamedValue {
  std::string name;
  ValueId value = kNoValue;
};

/// A new value that could not be made in the place of the old one and is copied there. The report names it with the
/// reason.
struct ValueCopy {
  ValueId from = kNoValue;
  ValueId to = kNoValue;
  std::string reason;
};

/// Instructions that run one after another, then copies.
///
/// Program::sequences begins with the step. Each of the others was lowered from a function that the step calls. One
/// instruction of a sequence in front of it runs it. First the input at the position of each output is copied to this
/// output. Then the sequence runs kRepeatCount times. A run reads the instruction's operands and gives its outputs new
/// values. All sequences share the arena; lowering puts temporaries of a sequence into the instruction's workspace.
struct Sequence {
  std::string name;  ///< name of the function; empty for the step, which has the name of its Program
  std::vector<Instruction> instructions;
  std::vector<ValueCopy> copies;  ///< done after the last instruction of each run
};

/// How a derived state entry is rebuilt from the one that it follows, before a step that finds it stale.
struct StateRefresh {
  std::int32_t derived = -1;  ///< indices into Program::state
  std::int32_t source = -1;
  Instruction instruction;  ///< reads only the source, writes only the derived entry
};

/// Instructions [first, first + offsets.size()) that update the tensors of flat buffers; see flat_updates.h.
struct FlatUpdate {
  std::size_t first = 0;
  std::vector<std::int64_t> offsets;  ///< for each instruction, the elements from the buffer's beginning to its tensors
  std::int64_t elements = 0;          ///< elements up to the end of the last tensor, padding included
};

/// Constants that repeat one element throughout. A Program holds only that element. Devices fill the memory when the
/// Program is loaded.
struct ConstantFill {
  std::size_t bytes = 0;              ///< a multiple of 64
  std::vector<std::uint8_t> element;  ///< 1, 2, 4 or 8 bytes
};

/// Machine code that a Program carries: kernels that were generated for it.
struct CodeBlob {
  std::string name;
  /// "cubin" or "ptx" for a GPU. "elf": a shared object for the CPU. "object": relocatable code for the CPU that is
  /// loaded where it was made and never saved.
  std::string format;
  std::vector<std::uint8_t> bytes;
  /// Functions: the stages "<name>_0", "<name>_1", ... of instructions whose kernel is "generated.<name>".
  std::vector<std::string> kernels;
};

struct Program {
  std::string name;    ///< "train_step", "eval_step", "predict", "init_state"
  std::string device;  ///< "cpu" or "cuda"
  std::string arch;    ///< the architecture it was planned for: "sm_90"; empty on the CPU
  std::vector<Value> values;
  std::vector<Sequence> sequences = std::vector<Sequence>(1);  ///< the step, and the sequences that it calls
  std::vector<StateBinding> state;
  std::vector<StateRefresh> refreshes;  ///< one for each binding of Role::kDerived
  std::vector<NamedValue> inputs;
  std::vector<NamedValue> outputs;
  std::vector<std::uint8_t> constants;  ///< given byte by byte; offsets are 64-byte aligned
  std::size_t arena_bytes = 0;          ///< temporaries, inputs and workspaces: the planned peak without state
  std::vector<std::pair<std::string, std::string>> choices;  ///< the choice table
  bool allow_tf32 = false;                                   ///< CUDA: f32 products may be TF32
  std::vector<std::string> required_cpu_features;
  std::vector<CodeBlob> code;
  std::vector<FlatUpdate> flat_updates;  ///< flat updates of the step
  std::vector<ConstantFill> fills;       ///< their memory lies behind `constants`, one behind the other

  Sequence& step() { return sequences.front(); }
  const Sequence& step() const { return sequences.front(); }
  /// Bytes of state entries.
  std::size_t state_bytes() const {
    std::size_t bytes = 0;
    for (const StateBinding& binding : state) bytes += binding.spec.bytes();
    return bytes;
  }
  /// Bytes of constants on a device, both the given ones and the filled ones.
  std::size_t constant_bytes() const {
    std::size_t bytes = constants.size();
    for (const ConstantFill& fill : fills) bytes += fill.bytes;
    return bytes;
  }
  /// Bytes that the Program takes on its device, which a memory budget limits: arena, state and constants.
  std::size_t planned_bytes() const { return arena_bytes + state_bytes() + constant_bytes(); }
};

}  // namespace mpc::runtime
