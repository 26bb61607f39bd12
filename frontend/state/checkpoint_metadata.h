// What a training checkpoint says beside its tensors.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/tensor_spec.h"
#include "runtime/role.h"

namespace mpc {

/// Where training stands. Everything counts from 0 what is complete.
struct TrainPosition {
  std::int64_t data_epoch = 0;       ///< epoch of the data set that the next step reads, over all runs of Train
  std::int64_t run_epoch = 0;        ///< epochs of the present run of Train
  std::int64_t step_in_epoch = 0;    ///< steps of the present epoch
  std::int64_t steps_per_epoch = 0;  ///< steps of an epoch of the data set; 0: not known

  /// The next step is the first one of the next epoch.
  void CompleteEpoch() {
    ++data_epoch;
    ++run_epoch;
    step_in_epoch = 0;
  }
};

namespace internal {

using TextMap = std::map<std::string, std::string>;
using RoleMap = std::map<std::string, Role>;

/// The metadata of a training checkpoint. Each field is one JSON text of the file; see docs/checkpoints.md.
struct CheckpointMetadata {
  std::string model;      ///< the network's class
  std::string optimizer;  ///< empty: there was none
  std::int64_t global_step = 0;
  TrainPosition position;
  TextMap amp;                                             ///< options of mixed precision
  TextMap loss_scale;                                      ///< what the compiled step does with each scaler
  TextMap step;                                            ///< accumulation and clipping
  TextMap precision;                                       ///< the precision of each slot, where one was solved
  std::map<std::string, TextMap> choices;                  ///< a Program's choice table by its signature
  TextMap environment;                                     ///< versions, device, processor, threads
  RoleMap roles;                                           ///< role of every entry
  std::vector<std::pair<std::string, TensorSpec>> inputs;  ///< inputs of the training step; empty: none was compiled
  TextMap callbacks;                                       ///< the states of callbacks, where one has any
  TextMap last_step;                                       ///< what the last step told, where an epoch is under way
  std::vector<std::string> class_names;                    ///< what labels stand for; empty: the data set did not say
};

/// The metadata as it stands in a file, with the format's name and version.
TextMap FormatMetadata(const CheckpointMetadata& metadata);

/// Names as a JSON list, which stands in checkpoints and packages.
std::string FormatNames(const std::vector<std::string>& names);
/// None if `text` is no such list.
std::optional<std::vector<std::string>> ParseNames(const std::string& text);

/// True if `stored` is the metadata of a file that FormatMetadata's result was written to, of any version.
bool IsTrainingCheckpoint(const TextMap& stored);

/// Errors (INVALID_ARGUMENT), with `origin` in front: a newer version; a field that is missing or not what it should
/// be.
absl::StatusOr<CheckpointMetadata> ParseMetadata(const TextMap& stored, const std::string& origin);

/// The field `roles` alone; empty where there is none.
absl::StatusOr<RoleMap> ParseRoles(const TextMap& stored, const std::string& origin);

}  // namespace internal
}  // namespace mpc
