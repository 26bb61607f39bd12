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

/// A weight that the Program updates is packed in every run, in front of the instruction that reads it. One that it
/// only reads is packed once: the packed weight is derived state, rebuilt when the weight has changed.
class WeightPacker {
 public:
  /// `updated` says for each state of `program` whether the step writes it. `keeps` says that packed weights may be
  /// state.
  WeightPacker(Program& program, std::vector<bool> updated, bool keeps)
      : program_(program), updated_(std::move(updated)), keeps_(keeps) {}

  /// Makes `instruction` read its weight packed. Returns the instruction that belongs in front of it, if any.
  std::optional<Instruction> Pack(const WeightPacking& packing, Instruction& instruction);

  /// The refreshes that pack the kept weights, without workspaces. A weight may follow derived state. Its refresh then
  /// comes behind the one that rebuilds that state.
  std::vector<StateRefresh> TakeRefreshes() { return std::move(refreshes_); }

 private:
  void Keep(const WeightPacking& packing, Instruction pack, Instruction& instruction);

  Program& program_;
  std::vector<bool> updated_;
  bool keeps_;
  std::vector<StateRefresh> refreshes_;
};

/// True if something in `program` packs a weight.
bool HasPackedWeights(const Program& program);

/// Undoes what a WeightPacker kept. Instructions read the weights themselves again, and packed weights are no longer
/// state.
void UnpackKeptWeights(Program& program);

}  // namespace mpc::runtime
