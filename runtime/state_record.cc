#include "runtime/state_record.h"

#include <map>
#include <utility>

#include "kernels/state_hash.h"
#include "runtime/aligned_buffer.h"

namespace mpc::runtime {
namespace {

ValueId AddValue(Value value, Program& program) {
  program.values.push_back(std::move(value));
  return static_cast<ValueId>(program.values.size() - 1);
}

/// By index into Program::state: the new values that are copied into their places behind the last instruction.
std::map<std::int32_t, ValueId> CopiedValues(const Program& program) {
  std::map<std::int32_t, ValueId> copied;
  for (const ValueCopy& copy : program.step().copies) {
    const Value& to = program.values[copy.to];
    if (to.storage == Storage::kState) copied[to.index] = copy.from;
  }
  return copied;
}

}  // namespace

void AddStateHash(Program& program) {
  const std::map<std::int32_t, ValueId> copied = CopiedValues(program);
  Instruction hash{.kernel = kStateHash, .phase = Phase::kUpdate};
  std::vector<std::int64_t> keys;
  for (std::size_t i = 0; i < program.state.size(); ++i) {
    const StateBinding& binding = program.state[i];
    if (binding.role == Role::kDerived || binding.role == Role::kAccumulator) continue;
    const auto index = static_cast<std::int32_t>(i);
    const auto found = copied.find(index);
    hash.inputs.push_back(found != copied.end() ? found->second
                                                : AddValue({binding.spec, Storage::kState, index, 0}, program));
    keys.push_back(static_cast<std::int64_t>(HashKey(binding.name)));
  }
  hash.attributes.Set(kHashKeys, std::move(keys));
  const TensorSpec spec{DType::kI64, {}};
  const ValueId result = AddValue({spec, Storage::kTemporary, -1, program.arena_bytes}, program);
  program.arena_bytes += AlignedBuffer::Padded(spec.bytes());
  hash.outputs = {result};
  program.step().instructions.push_back(std::move(hash));
  program.outputs.push_back({kStateHashOutput, result});
}

}  // namespace mpc::runtime
