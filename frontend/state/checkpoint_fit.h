// Whether the entries of a checkpoint fit the state of a Model. Not part of the public API.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "frontend/graph/parameter.h"
#include "frontend/state/checkpoint_metadata.h"
#include "frontend/state/safetensors.h"

namespace mpc::internal {

/// What the file and the Model have in common.
struct CheckpointSetting {
  bool same_level = true;   ///< else parameters may be stored in another floating type
  bool same_scaler = true;  ///< else each keeps its own loss-scale state
  /// Optimizers divide by the scale that they were made with. The Model's scale stays then, whatever the file's is.
  bool optimizer_divides = false;
  bool same_accumulation = true;  ///< else what has been accumulated is dropped
  /// Parameters without masters: they become low when a step is compiled, in the file or here first.
  bool stores_low = false;
  bool trains = true;  ///< else the Model has no use for what only training reads
};

/// The comparison, without any effect. Nothing may be written unless `problems` is empty.
struct CheckpointFit {
  std::vector<std::pair<Parameter, Tensor>> assignments;            ///< the Model's entries, with the file's values
  std::vector<std::pair<std::string, const Tensor*>> accumulators;  ///< that the Model will have once it compiles
  std::vector<std::string> loaded;
  std::vector<std::string> differences;  ///< what is not as it was, in words
  std::vector<std::string> problems;     ///< unknown, missing, misshapen, of another type
  // Where every problem is a slot of a Parameter that the file and the Model have, and that only one of them trains.
  bool lacks_slots = false;   ///< the file has it frozen
  bool leaves_slots = false;  ///< it is frozen here
  bool weights_only = false;  ///< the Model has an optimizer's state, the file none of it
};

/// Every entry of `state` is looked for in `content` and every entry of `content` in `state`.
///
/// A file may lack accumulators of the Model: from before the first step it has none, and Programs of frozen Parameters
/// have none for these. They become zero. In a file from between two updates they hold nothing of use. Inside an update
/// the gradient of a frozen Parameter is zero, and a statistic that the run has not moved is what it was before. What
/// else an update needs cannot be told from there: without it all that was gathered is dropped, and an update begins.
CheckpointFit FitCheckpoint(absl::Span<const Parameter> state, const Safetensors& content, const RoleMap& roles,
                            const CheckpointSetting& setting);

/// One line for each key whose values differ: "threads: 1 in the file, 2 here".
std::vector<std::string> Differences(const TextMap& file, const TextMap& here);

}  // namespace mpc::internal
