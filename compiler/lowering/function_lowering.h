// Lowers one function of final IR to one sequence of a Program.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/analysis/phases.h"
#include "compiler/codegen/code_generator.h"
#include "compiler/dialect/step_signature.h"
#include "compiler/lowering/sequence_values.h"
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
  const runtime::Device &target;
  const runtime::PlanOptions &options;
  codegen::GeneratedCode code; ///< has a call for every FusionOp of the functions
  runtime::Program program = {};
  /// Offsets among the Program's constants, in bytes.
  llvm::DenseMap<mlir::Operation *, std::size_t> constants = llvm::DenseMap<mlir::Operation *, std::size_t>();
  /// Set before FunctionLowering::define(), when the Program's state is known.
  std::optional<runtime::WeightPacker> packer = std::nullopt;
  /// Remarks on what was measured to choose kernels.
  std::vector<std::string> remarks = {};
  std::int64_t allRuns = 0; ///< runs in a step of all sequences but the step itself

  /// Asks the device for the plan of an instruction and returns it. Gives the instruction its workspace. The choice of
  /// its kernel moves from the plan to the Program, unless the Program has it. A plan with a `packing` is asked for
  /// again once the weight is packed. Errors: the device's, behind the scope and the kernel.
  absl::StatusOr<runtime::InstructionPlan> planned(runtime::Instruction &instruction);
};

/// Lowers a function to a sequence of the Program, in two phases and an end. Functions that it calls become further
/// sequences.
///
/// 1. declare() says what the sequence needs: constants, values and called sequences. It adds no instruction, asks the
///    device nothing, and refuses what no instruction is made of.
/// 2. define() adds the instructions, operation by operation. The copies to what could not be updated in place follow.
/// 3. plan() gives what lies in the arena its place.
///
/// Sequences are numbered in the first phase. Values get their numbers in the second, as SequenceValues says.
class FunctionLowering {
public:
  /// Lowers the step. The caller declares its arguments.
  FunctionLowering(mlir::func::FuncOp function, ProgramParts &parts);
  /// Lowers what \p caller calls \p count times, in phase \p phaseOfCall, to a new sequence of the Program.
  FunctionLowering(mlir::func::FuncOp function, FunctionLowering &caller, std::int64_t count, Phase phaseOfCall);

  //===-- Declare ------------------------------------------------------------------------------------------------===//

  /// Declares an argument, before declare().
  void declareArgument(mlir::BlockArgument argument, runtime::Value record) {
    values.declare(argument, std::move(record));
  }
  /// Declares constants, results and, by their functions, the sequences that this one calls. Errors: a FusionOp without
  /// code; an operation whose results nothing reads; more sequences, deeper ones or more runs than a Program has.
  absl::Status declare();

  //===-- Define -------------------------------------------------------------------------------------------------===//

  /// Adds the instructions. Errors: what the device says.
  absl::Status define();
  /// Adds the copies to what could not be updated in place. They run after the last instruction.
  void defineCopies();
  /// The Program's value that \p v is. The first call adds it to the Program.
  runtime::ValueId valueId(mlir::Value v) { return values.idOf(v); }
  /// The same of \p operand of the terminator, a result, between define() and plan(). What leaves the function, or
  /// becomes another state, must not change when state is updated in place. So an old value, or a view of one, is
  /// copied before the first instruction.
  runtime::ValueId keptId(mlir::Value operand);
  /// The state, or the argument of a sequence, whose new value a result is; none for data.
  std::optional<runtime::ValueId> oldValue(unsigned result);

  //===-- Plan ---------------------------------------------------------------------------------------------------===//

  /// Gives all temporaries, workspaces and packed weights, and the inputs of the step, a place in an arena of its own.
  /// Returns the arena's bytes. Puts the copies of keptId() in front of the instructions, so it comes last.
  std::size_t plan();
  /// Moves the places by \p offset bytes, those of workspaces and of called functions too. Comes after plan().
  void moveBy(std::size_t offset);

private:
  struct CalledFunction {
    std::unique_ptr<FunctionLowering> callee;
    std::size_t instruction = 0; ///< the instruction that runs it, once that is defined
  };

  runtime::Sequence &sequence() { return program.sequences[sequenceIndex]; }
  std::size_t instructionCount() const { return program.sequences[sequenceIndex].instructions.size(); }
  Phase phaseOf(mlir::Operation *op) const { return phaseOfCall.value_or(phases.phaseOf(op)); }

  absl::Status declareOperation(mlir::Operation *op);
  absl::Status declareSequence(RepeatOp repeat);
  absl::Status checkLimits(RepeatOp repeat) const;

  /// Makes \p next the last instruction of the sequence.
  void append(runtime::Instruction next) { sequence().instructions.push_back(std::move(next)); }
  absl::Status defineOperation(mlir::Operation *op);
  absl::Status defineRegion(FusionOp fusion);
  absl::Status defineRepeat(RepeatOp repeat);
  absl::Status definePacking(const WeightPacking &packing, runtime::Instruction &instruction);
  bool isOldValue(mlir::BlockArgument argument) const;

  std::pair<std::size_t, std::size_t> instructionsOf(std::size_t position) const;
  void addPrologue();

  mlir::func::FuncOp function;
  ProgramParts &parts;
  runtime::Program &program;
  std::size_t sequenceIndex = 0;
  int depth = 0;         ///< levels of calls below the step
  std::int64_t runs = 1; ///< runs of this sequence in a step
  std::optional<Phase> phaseOfCall;
  StepSignature signature;
  StorageAssignment storage;
  StepPhases phases;

  // What declare() leaves.
  SequenceValues values;
  llvm::MapVector<mlir::Operation *, CalledFunction> called;

  // What define() leaves beside the instructions.
  /// Which instructions share flat buffers.
  llvm::DenseMap<std::size_t, std::int64_t> flatGroups;
  /// The first and the last instruction of each operation, in the order of StorageAssignment::getInstructions(). Of a
  /// wait the last is the one in front of it.
  std::vector<std::pair<std::size_t, std::size_t>> instructionRanges;
  /// Packed weights with the instructions that write them; the next one reads them.
  std::vector<std::pair<runtime::ValueId, std::size_t>> packedWeights;
  /// Copies of old values: done before the first instruction, kept to the end.
  std::vector<runtime::Instruction> prologue;
  std::vector<runtime::ValueId> pinnedValues;

  // What plan() leaves.
  std::vector<runtime::ValueId> placed; ///< the values that have offsets
};

} // namespace mpc::compiler
