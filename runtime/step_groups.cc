#include "runtime/step_groups.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "kernels/collective.h"
#include "runtime/program_binding.h"

namespace mpc::runtime {
namespace {

/// The storage that a unit of work reads and writes.
struct Uses {
  std::vector<const Value*> reads, writes;

  bool IndependentOf(const Uses& other) const {
    return !AnyOverlap(writes, other.writes) && !AnyOverlap(writes, other.reads) && !AnyOverlap(reads, other.writes);
  }
  void Add(const Uses& other) {
    reads.insert(reads.end(), other.reads.begin(), other.reads.end());
    writes.insert(writes.end(), other.writes.begin(), other.writes.end());
  }

 private:
  static bool AnyOverlap(const std::vector<const Value*>& some, const std::vector<const Value*>& others) {
    return std::any_of(some.begin(), some.end(), [&](const Value* a) {
      return std::any_of(others.begin(), others.end(), [&](const Value* b) { return ShareStorage(*a, *b); });
    });
  }
};

Uses UsesOf(const Program& program, const Instruction& instruction) {
  Uses uses;
  for (ValueId id : instruction.inputs) uses.reads.push_back(&program.values[id]);
  for (ValueId id : instruction.outputs) {
    if (id != kNoValue) uses.writes.push_back(&program.values[id]);
  }
  return uses;
}

bool SameTypes(const Program& program, const std::vector<ValueId>& some, const std::vector<ValueId>& others) {
  return std::equal(some.begin(), some.end(), others.begin(), others.end(), [&](ValueId a, ValueId b) {
    if (a == kNoValue || b == kNoValue) return a == b;
    return program.values[a].spec.dtype == program.values[b].spec.dtype;
  });
}

/// Ranges of neighbours among `count` units that are independent. uses(i) says what unit i touches. joins(first, i)
/// says whether i may stand in a range that begins with `first`.
template <typename UsesFunction, typename JoinsFunction>
std::vector<InstructionRange> GroupNeighbours(std::size_t count, const UsesFunction& uses, const JoinsFunction& joins) {
  std::vector<InstructionRange> ranges;
  Uses group;
  for (std::size_t i = 0; i < count; ++i) {
    Uses each = uses(i);
    if (!ranges.empty() && joins(ranges.back().first, i) && each.IndependentOf(group)) {
      ++ranges.back().count;
      group.Add(each);
    } else {
      ranges.push_back({i});
      group = std::move(each);
    }
  }
  return ranges;
}

/// For each instruction of a sequence the flat update that it is part of, or null.
std::vector<const FlatUpdate*> FlatUpdateOfEach(const Program& program, std::size_t sequence) {
  assert(sequence < program.sequences.size());
  std::vector<const FlatUpdate*> of(program.sequences[sequence].instructions.size(), nullptr);
  if (sequence != 0) return of;
  for (const FlatUpdate& update : program.flat_updates) {
    assert(update.first + update.offsets.size() <= of.size() && "a flat update is part of the first sequence");
    std::fill_n(of.begin() + static_cast<std::ptrdiff_t>(update.first), update.offsets.size(), &update);
  }
  return of;
}

}  // namespace

bool MayShareKernel(const Program& program, const Instruction& a, const Instruction& b) {
  if (a.attributes != b.attributes) return false;
  if (MayShareMessage(a.kernel, b.kernel)) return true;
  return a.kernel == b.kernel && SameTypes(program, a.inputs, b.inputs) && SameTypes(program, a.outputs, b.outputs);
}

std::vector<InstructionRange> GroupInstructions(const Program& program, bool (*may_group)(std::string_view),
                                                std::size_t sequence) {
  const std::vector<Instruction>& instructions = program.sequences[sequence].instructions;
  const std::vector<const FlatUpdate*> flat = FlatUpdateOfEach(program, sequence);
  std::vector<InstructionRange> ranges = GroupNeighbours(
      instructions.size(), [&](std::size_t i) { return UsesOf(program, instructions[i]); },
      [&](std::size_t first, std::size_t i) {
        return may_group(instructions[i].kernel) && flat[first] == flat[i] &&
               MayShareKernel(program, instructions[first], instructions[i]);
      });
  for (InstructionRange& range : ranges) {
    const FlatUpdate* update = flat[range.first];
    if (update != nullptr && update->first == range.first && update->offsets.size() == range.count) range.flat = update;
  }
  return ranges;
}

absl::StatusOr<GroupParts> PartsOf(const Program& program, const InstructionRange& range, const AddressOf& address,
                                   std::size_t sequence) {
  const std::vector<Instruction>& instructions = program.sequences[sequence].instructions;
  GroupParts parts;
  if (range.flat != nullptr && LiesFlat(program, *range.flat, address)) {
    absl::StatusOr<KernelSpec> spec = FlatSpec(program, *range.flat);
    if (!spec.ok()) return spec.status();
    parts.instructions.push_back(&FirstOfFlat(program, *range.flat));
    parts.specs.push_back(*std::move(spec));
    return parts;
  }
  assert(range.first + range.count <= instructions.size() && "the range is one of this sequence");
  for (std::size_t i = range.first; i < range.first + range.count; ++i) {
    absl::StatusOr<KernelSpec> spec = MakeKernelSpec(program, instructions[i]);
    if (!spec.ok()) return spec.status();
    parts.instructions.push_back(&instructions[i]);
    parts.specs.push_back(*std::move(spec));
  }
  return parts;
}

std::vector<InstructionRange> GroupCopies(const Program& program, const std::vector<ValueCopy>& copies) {
  const auto uses = [&](std::size_t i) {
    return Uses{{&program.values[copies[i].from]}, {&program.values[copies[i].to]}};
  };
  return GroupNeighbours(copies.size(), uses, [](std::size_t, std::size_t) { return true; });
}

}  // namespace mpc::runtime
