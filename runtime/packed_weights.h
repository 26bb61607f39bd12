// Instructions and state that hold the packed weights of a Program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/weight_packing.h"
#include "runtime/program.h"

namespace mpc::runtime {

inline bool PacksWeight(const Instruction& instruction) { return instruction.kernel == kPackWeight; }

/// True if `pack` packs a weight and `instruction` reads what it writes as its weight.
bool PacksWeightOf(const Instruction& pack, const Instruction& instruction);

/// Makes `instruction` of `program` read its weight packed. Adds the packed value, a temporary that has no place yet,
/// and returns the instruction that writes it. The new instruction belongs in front of `instruction`. Neither has a
/// workspace yet.
Instruction PackWeight(const WeightPacking& packing, Program& program, Instruction& instruction);

/// Undoes PackWeight: `instruction` reads the weight itself again.
void UnpackWeight(const Instruction& pack, Instruction& instruction);

/// How often the runs of a step change a state.
enum class StateChange : std::uint8_t {
  kNever,
  kSeldom,  ///< an optimizer updates it in one of several accumulated batches
  kAlways,
};

/// How often the runs of `program`, a whole Program, change each of its states.
std::vector<StateChange> FindStateChanges(const Program& program);

/// Whether `program` gathers gradients over several runs.
bool Accumulates(const Program& program);

/// A weight that every run of the Program changes is packed in every run, in front of the instruction that reads it.
/// Any other is packed once: the packed weight is derived state, rebuilt when the weight has changed.
class WeightPacker {
 public:
  /// `changes` has one element for each state of `program`. `keeps` says that packed weights may be state.
  WeightPacker(Program& program, std::vector<StateChange> changes, bool keeps)
      : program_(program), changes_(std::move(changes)), keeps_(keeps) {}

  /// Makes `instruction` read its weight packed. Returns the instruction that belongs in front of it, if any.
  /// `position` says how many instructions of the step run before it. It is nothing within another sequence.
  std::optional<Instruction> Pack(const WeightPacking& packing, std::optional<std::size_t> position,
                                  Instruction& instruction);

  /// The refreshes that pack the kept weights, without workspaces. A weight may follow derived state. Its refresh then
  /// comes behind the one that rebuilds that state.
  std::vector<StateRefresh> TakeRefreshes() { return std::move(refreshes_); }

 private:
  bool Keeps(const Value& weight, std::optional<std::size_t> position) const;
  void Keep(const WeightPacking& packing, Instruction pack, Instruction& instruction);

  Program& program_;
  std::vector<StateChange> changes_;
  bool keeps_;
  std::vector<StateRefresh> refreshes_;
};

/// True if something in `program` packs a weight.
bool HasPackedWeights(const Program& program);

/// Undoes what a WeightPacker kept. Instructions read the weights themselves again, and packed weights are no longer
/// state.
void UnpackKeptWeights(Program& program);

}  // namespace mpc::runtime
