// Lowers one function of final IR to one sequence of a Program.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/analysis/phases.h"
#include "compiler/codegen/code_generator.h"
#include "compiler/dialect/step_signature.h"
#include "compiler/lowering/storage_assignment.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/executable.h"
#include "runtime/packed_weights.h"
#include "runtime/program.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mpc::compiler {

/// What the functions of one Program share.
struct ProgramParts {
  const runtime::Device &Target;
  const runtime::PlanOptions &Options;
  codegen::GeneratedCode Code;
  runtime::Program Program = {};
  /// Offsets among the Program's constants.
  llvm::DenseMap<mlir::Operation *, std::size_t> Constants = llvm::DenseMap<mlir::Operation *, std::size_t>();
  std::optional<runtime::WeightPacker> Packer = std::nullopt;
  /// Remarks on what was measured to choose kernels.
  std::vector<std::string> Remarks = {};
  std::int64_t AllRuns = 0; ///< runs of all sequences in a step

  /// Gives an instruction its workspace, and the Program what was chosen for it.
  absl::StatusOr<runtime::InstructionPlan> planned(runtime::Instruction &Instruction);
};

/// Lowers a function. Functions that it calls become further sequences. First all arguments are bound, then it runs,
/// then it adds copies, then it plans.
class FunctionLowering {
public:
  /// Lowers the step.
  FunctionLowering(mlir::func::FuncOp Function, ProgramParts &Parts)
      : Function(Function), Parts(Parts), Program(Parts.Program), Signature(Function), Storage(Function, &Parts.Target),
        Phases(Function) {}
  /// Lowers what \p Caller calls \p Count times, in phase \p PhaseOfCall, to a new sequence of the Program.
  FunctionLowering(mlir::func::FuncOp Function, FunctionLowering &Caller, std::int64_t Count, Phase PhaseOfCall);

  /// A value of the Program that lies in no other value's place.
  runtime::ValueId addValue(runtime::Value Record);
  /// Says which value \p Argument is.
  void bind(mlir::BlockArgument Argument, runtime::ValueId Id) { Ids[Argument] = Id; }
  /// Gives the value of an argument of the step a place in the arena. Arguments of a sequence have a place where the
  /// sequence is called.
  void placeInArena(mlir::BlockArgument Argument) { ArenaValues[Argument].push_back(Ids.lookup(Argument)); }

  /// Adds the instructions. Errors: what the device says; more sequences, deeper ones or more runs than a Program has.
  absl::Status run();
  /// Adds the copies to what could not be updated in place.
  void addCopies();
  /// The record of a value: its own shape, the storage of its root.
  runtime::ValueId valueId(mlir::Value V);
  /// The same of a result. What leaves the function, or becomes another state, must not change when state is updated in
  /// place. So an old value, or a view of one, is copied before the first instruction.
  runtime::ValueId keptId(mlir::Value Operand);
  /// The state, or the argument of a sequence, whose new value a result is; none for data.
  std::optional<runtime::ValueId> oldValue(unsigned Result);

  /// Gives everything a place in an arena of its own. Returns its bytes.
  std::size_t plan();
  /// Moves the places by \p Offset, what this function calls along with it.
  void moveBy(std::size_t Offset);

private:
  struct CalledFunction {
    std::size_t Instruction; ///< the instruction that runs it
    std::unique_ptr<FunctionLowering> Callee;
  };

  runtime::Sequence &sequence() { return Program.sequences[SequenceIndex]; }
  std::size_t instructionCount() const { return Program.sequences[SequenceIndex].instructions.size(); }

  /// Makes \p Next the last instruction of the sequence.
  void append(runtime::Instruction Next) { sequence().instructions.push_back(std::move(Next)); }
  absl::Status addInstruction(mlir::Operation *Op);
  absl::Status addRegion(FusionOp Fusion);
  absl::Status addRepeat(RepeatOp Repeat);
  absl::Status checkLimits(RepeatOp Repeat) const;
  absl::Status addPacking(const WeightPacking &Packing, runtime::Instruction &Instruction);
  bool isOldValue(mlir::BlockArgument Argument);
  std::pair<std::size_t, std::size_t> instructionsOf(std::size_t Position) const;
  void addPrologue();

  mlir::func::FuncOp Function;
  ProgramParts &Parts;
  runtime::Program &Program;
  std::size_t SequenceIndex = 0;
  int Depth = 0;         ///< levels of calls below the step
  std::int64_t Runs = 1; ///< runs of this sequence in a step
  std::optional<Phase> PhaseOfCall;
  StepSignature Signature;
  StorageAssignment Storage;
  StepPhases Phases;
  llvm::DenseMap<mlir::Value, runtime::ValueId> Ids;
  /// Roots in the arena in the order of their first appearance, with the values that live in them.
  llvm::MapVector<mlir::Value, llvm::SmallVector<runtime::ValueId>> ArenaValues;
  /// Which instructions share flat buffers.
  llvm::DenseMap<std::size_t, std::int64_t> FlatGroups;
  /// The first and the last instruction of each operation, in the order of Storage.instructions().
  std::vector<std::pair<std::size_t, std::size_t>> InstructionsOf;
  /// Packed weights with the instructions that write them; the next one reads them.
  std::vector<std::pair<runtime::ValueId, std::size_t>> PackedWeights;
  /// Copies of old values: done before the first instruction, kept to the end.
  std::vector<runtime::Instruction> Prologue;
  std::vector<runtime::ValueId> PinnedValues;
  std::vector<CalledFunction> Called;
  std::vector<runtime::ValueId> Placed; ///< the values that plan() gave offsets
};

} // namespace mpc::compiler
