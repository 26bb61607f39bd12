// Whether two packages say the same, field by field.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <variant>
#include <vector>

#include "runtime/program_file.h"

namespace mpc::runtime {

template <typename T, typename Same>
bool SameList(const std::vector<T>& a, const std::vector<T>& b, Same same) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

inline bool SameBits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

/// NaN, and zeros of both signs, as what they are.
inline bool SameAttribute(const Attributes::Entry& a, const Attributes::Entry& b) {
  if (a.first != b.first || a.second.index() != b.second.index()) return false;
  if (const auto* number = std::get_if<double>(&a.second)) return SameBits(*number, std::get<double>(b.second));
  if (const auto* numbers = std::get_if<std::vector<double>>(&a.second)) {
    return SameList(*numbers, std::get<std::vector<double>>(b.second), SameBits);
  }
  return a.second == b.second;
}

inline bool SameInstruction(const Instruction& a, const Instruction& b) {
  return a.kernel == b.kernel && a.inputs == b.inputs && a.outputs == b.outputs &&
         SameList(a.attributes.entries(), b.attributes.entries(), SameAttribute) &&
         a.workspace_offset == b.workspace_offset && a.workspace_bytes == b.workspace_bytes && a.scope == b.scope &&
         a.sequence == b.sequence && a.phase == b.phase;
}

inline bool SameCopy(const ValueCopy& a, const ValueCopy& b) {
  return a.from == b.from && a.to == b.to && a.reason == b.reason;
}

inline bool SameSequence(const Sequence& a, const Sequence& b) {
  return a.name == b.name && SameList(a.instructions, b.instructions, SameInstruction) &&
         SameList(a.copies, b.copies, SameCopy);
}

inline bool SameNamed(const NamedValue& a, const NamedValue& b) { return a.name == b.name && a.value == b.value; }

inline bool SameProgram(const Program& a, const Program& b) {
  return a.name == b.name && a.device == b.device && a.arch == b.arch &&
         SameList(a.values, b.values,
                  [](const Value& x, const Value& y) {
                    return x.spec == y.spec && x.storage == y.storage && x.index == y.index && x.offset == y.offset;
                  }) &&
         SameList(a.sequences, b.sequences, SameSequence) &&
         SameList(a.state, b.state,
                  [](const StateBinding& x, const StateBinding& y) {
                    return x.name == y.name && x.role == y.role && x.spec == y.spec && x.written == y.written;
                  }) &&
         SameList(a.refreshes, b.refreshes,
                  [](const StateRefresh& x, const StateRefresh& y) {
                    return x.derived == y.derived && x.source == y.source &&
                           SameInstruction(x.instruction, y.instruction);
                  }) &&
         SameList(a.inputs, b.inputs, SameNamed) && SameList(a.outputs, b.outputs, SameNamed) &&
         a.constants == b.constants && a.arena_bytes == b.arena_bytes && a.choices == b.choices &&
         a.allow_tf32 == b.allow_tf32 && a.required_cpu_features == b.required_cpu_features &&
         SameList(a.code, b.code,
                  [](const CodeBlob& x, const CodeBlob& y) {
                    return x.name == y.name && x.format == y.format && x.bytes == y.bytes && x.kernels == y.kernels;
                  }) &&
         SameList(a.flat_updates, b.flat_updates,
                  [](const FlatUpdate& x, const FlatUpdate& y) {
                    return x.first == y.first && x.offsets == y.offsets && x.elements == y.elements;
                  }) &&
         SameList(a.fills, b.fills, [](const ConstantFill& x, const ConstantFill& y) {
           return x.bytes == y.bytes && x.element == y.element;
         });
}

inline bool SamePackage(const Package& a, const Package& b) {
  return a.metadata == b.metadata && SameList(a.programs, b.programs, SameProgram) &&
         SameList(a.draws, b.draws,
                  [](const InitialDraw& x, const InitialDraw& y) {
                    return SameProgram(x.program, y.program) && x.seed == y.seed;
                  }) &&
         SameList(a.initial_values, b.initial_values, [](const InitialValue& x, const InitialValue& y) {
           return x.name == y.name && x.role == y.role && x.spec == y.spec && x.bytes == y.bytes;
         });
}

}  // namespace mpc::runtime
