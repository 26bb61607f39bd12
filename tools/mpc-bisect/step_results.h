// The results of a capsule's step, operation by operation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "frontend/graph/tensor.h"
#include "frontend/state/step_capsule.h"
#include "tools/support/program_results.h"

namespace mpc::tools {

/// A capsule, and how it is called and replayed.
struct CapsuleFile {
  std::string path;
  StepCapsule capsule;
  int threads = 0;  ///< 0: as many as the capsule says that it was made with
};

/// A result of an instruction. One of a sequence that runs several times is there as often.
struct StepResult : ResultPlace {
  std::uint64_t hash = 0;    ///< HashBytes of its bits
  std::size_t position = 0;  ///< among all results of the step
};

struct StepResults {
  std::vector<StepResult> results;  ///< in the order in which the step computes them
  StepReplay replay;
};

/// Replays the step with the threads of `file`. Errors: those of ReplayStep, with the path.
absl::StatusOr<StepResults> ComputeResults(const CapsuleFile& file);

/// The value of result `position` of ComputeResults, by another replay.
absl::StatusOr<Tensor> ComputeResult(const CapsuleFile& file, std::size_t position);

/// Whether the result is the same in any number of ranks that share the micro-batches of the step. Floating results of
/// forward and backward passes are, and the state that the last micro-batch leaves. Sums over some of the micro-batches
/// are not.
bool IsOfAnyRanks(const StepCapsule& capsule, const StepResult& result);

/// Operation, Cell, phase, type, place and run of a result. Results of two steps are compared where these are equal.
/// `with_sequence`: and the sequence of its Program.
std::string IdentityOf(const StepCapsule& capsule, const StepResult& result, bool with_sequence);

}  // namespace mpc::tools
