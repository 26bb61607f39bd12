// One step of a run as a file: what it began from, what it ran, and what came of it. Needs no compiler.
// A step that accumulates runs its Program once for each micro-batch. A capsule holds all of these runs. Of a step that
// several processes share it holds the runs of all.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "frontend/graph/tensor.h"
#include "frontend/state/safetensors.h"
#include "runtime/executable.h"
#include "runtime/observable_step.h"
#include "runtime/program.h"
#include "runtime/state_store.h"

namespace mpc {

/// Everything that a step needs to be repeated elsewhere, bit for bit. It holds rows of the training data and the whole
/// state of the training: treat the file as those.
struct StepCapsule {
  using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

  std::int64_t step = 0;     ///< number of the step in its run, from 1: Model::global_step after it
  std::string reason;        ///< why it was written: "not finite", "asked for"
  runtime::Program program;  ///< with choices, constants and linked code
  /// The Program of each rank's runs before its last one. None: they run `program`, too.
  std::optional<runtime::Program> accumulating = std::nullopt;
  std::int64_t ranks = 1;  ///< processes that shared the step; their sums were those of Communicator::AllReduce
  /// The micro-batches of the step, one a run, numbered from 0. Each rank has runs / ranks of them in a row: rank 0 the
  /// first ones.
  std::int64_t runs = 1;
  /// The step before any pass, as IR text. Empty: this capsule cannot be compiled anew.
  std::string traced;
  /// What it was compiled with: compiler::OptionTexts. For compiling anew alone.
  std::map<std::string, std::string> options;
  NamedTensors state;   ///< before the step: each entry that a Program binds and that is not derived, seeds included
  NamedTensors batch;   ///< the inputs in the order of Program::inputs, of each run in turn, under NameInRun
  NamedTensors record;  ///< every output of the Program: losses, records of loss scaling, norms, taps; as `batch`
  /// After the step: CRC-32 in eight hexadecimal digits, of each entry that a Program writes.
  std::map<std::string, std::string> after;
  /// What another rank had that differs from `state` and `after`, which are those of rank 0. Accumulators do.
  struct OtherRank {
    NamedTensors state;
    std::map<std::string, std::string> after;
  };
  std::vector<OtherRank> other_ranks;  ///< ranks 1, 2, ...
  /// Where it was made: "mpc", "processor", "threads", "model", ...; for people alone.
  std::map<std::string, std::string> origin;
};

/// What StepCapsule::batch and record call the input or output `name` of run `run`, from 0: "data", "data@2", "data@3".
std::string NameInRun(const std::string& name, std::int64_t run);

/// The rank that ran run `run`.
std::int64_t RankOfRun(const StepCapsule& capsule, std::int64_t run);
/// The Program of run `run`.
const runtime::Program& ProgramOfRun(const StepCapsule& capsule, std::int64_t run);

/// "micro-batch 3 of 4", with " (rank 1)" where there are several ranks.
std::string DescribeRun(const StepCapsule& capsule, std::int64_t run);
/// "4 micro-batches", "4 micro-batches of 2 ranks".
std::string DescribeRuns(const StepCapsule& capsule);

/// Bytes of the parts of the file that WriteStepCapsule would write.
struct CapsuleSizes {
  std::size_t state = 0;
  std::size_t batch = 0;
  std::size_t program = 0;
  std::size_t rest = 0;  ///< the record and the traced step

  std::size_t total() const { return state + batch + program + rest; }
  /// "1.9 MB (state 1.2 MB, batch 98.4 kB, Program 500.1 kB, the rest 100.2 kB)".
  std::string ToString() const;
};

/// Errors: those of runtime::SerializePackage.
absl::StatusOr<CapsuleSizes> SizesOf(const StepCapsule& capsule);

/// The version of the format, in the metadata entry "mpc_capsule". Steps of several ranks have the second one.
inline constexpr char kStepCapsuleVersion[] = "1";
inline constexpr char kStepCapsuleVersionOfRanks[] = "2";

/// Errors (INVALID_ARGUMENT) list everything. A Program is one that runtime::CheckProgram refuses. There is no run,
/// there are more than tensors, or ranks do not divide them. State, an input or an output of a Program is missing or of
/// another type, or there are tensors that it does not have. A state entry that it writes has no checksum. A rank is
/// missing, or has state that no Program has.
absl::Status CheckStepCapsule(const StepCapsule& capsule);

/// Writes a safetensors file that is guarded by a checksum. It is written beside `path`, synced and renamed: a full
/// disk or a killed process leaves what was there. Tensors are called "state.NAME", "batch.NAME", "record.NAME",
/// "program" (the bytes of an .mpcx file) and "traced". Errors: those of CheckStepCapsule, SerializePackage and
/// SaveSafetensors.
absl::Status WriteStepCapsule(const std::string& path, const StepCapsule& capsule);

/// Reads and checks a whole file. Errors (INVALID_ARGUMENT) name `path` and the reason: no safetensors file, no
/// capsule, another version, a checksum that differs, or what CheckStepCapsule says. Errors also: NOT_FOUND,
/// UNAVAILABLE.
absl::StatusOr<StepCapsule> ReadStepCapsule(const std::string& path);

/// The capsule that the tensors and metadata of a file make. `path` is for errors, which are those of ReadStepCapsule
/// but for a checksum that differs.
absl::StatusOr<StepCapsule> ParseStepCapsule(const Safetensors& content, const std::string& path);

/// The checksum of a state entry as StepCapsule::after has it. Errors: those of StateEntry::Read.
absl::StatusOr<std::string> StateChecksum(const runtime::StateEntry& entry);

/// The state that the step begins from in a rank: every entry that its Programs bind. Derived entries have no value;
/// the step rebuilds them. `capsule` has been checked.
absl::StatusOr<runtime::StateStore> MakeCapsuleState(const StepCapsule& capsule, std::int64_t rank = 0);

/// Whether the outputs of the step of `capsule`, or of one that is compiled like it, say that it is finite. They are
/// the loss of each run, which is its first output, and what scalers have found.
bool IsFinite(const StepCapsule& capsule, const StepCapsule::NamedTensors& record);

/// The inputs of run `run` of the step, from 0. `capsule` has been checked and outlives them.
std::vector<absl::Span<const std::uint8_t>> InputsOfRun(const StepCapsule& capsule, std::int64_t run);

/// Is given each result of run `run` of the step, from 0.
using ReplayObserver = std::function<void(std::int64_t run, const runtime::ObservedResult&)>;

/// What looks at the runs of a step, never two at a time. Members may be null.
struct CapsuleWatch {
  ReplayObserver observe = nullptr;  ///< sees every result
  /// Is called at the end of each run: its outputs can be read. Errors end the step.
  std::function<absl::Status(std::int64_t run, runtime::Executable& step)> ended = nullptr;
  /// Is given the state that each rank leaves. Errors end the step.
  std::function<absl::Status(std::int64_t rank, const runtime::StateStore& state)> left = nullptr;
};

/// Runs the step on the Program's device. Ranks are threads of this process that take turns
/// (runtime/distributed/rank_turns.h): each runs up to its next exchange. So what `watch` sees has one order. `record`
/// and `after` are not looked at. Each rank has memory for its state and its arena. Errors: those of Device::Load (no
/// such device here, a missing processor feature) and of the step. UNIMPLEMENTED where the device does not let
/// `observe` look, or runs no ranks in turns.
absl::Status RunCapsule(const StepCapsule& capsule, const CapsuleWatch& watch);

/// What a replay found.
struct StepReplay {
  StepCapsule::NamedTensors record;          ///< as StepCapsule::record, of the replay
  std::map<std::string, std::string> after;  ///< as StepCapsule::after, of the replay
  /// One line for each output and each state entry whose bits differ, in the order of the Program, by rank. Empty: all
  /// are equal.
  std::vector<std::string> differences;
};

/// Runs the step and compares every bit. Needs neither compiler nor data nor other processes. `observe` sees every
/// result. Errors: those of RunCapsule.
absl::StatusOr<StepReplay> ReplayStep(const StepCapsule& capsule, const ReplayObserver& observe = nullptr);

}  // namespace mpc
