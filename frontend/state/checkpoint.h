// Saving the weights of a network and loading them: MindSpore's functions. A Model saves all of its state with
// Model::SaveCheckpoint.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/graph/cell.h"
#include "frontend/state/name_map.h"

namespace mpc {

struct SaveOptions {
  NameMap names;  ///< what the file calls the Parameters; NameMap::PyTorch() for PyTorch
  /// The floating type in the file: f16, bf16. Left out: each Parameter's own. Values that become infinite are an
  /// error.
  std::optional<DType> dtype;
};

/// Writes every Parameter of `net` (running statistics included) under its dotted path as safetensors. Parameters
/// without a value draw their initial one first. The file is written beside `path`, synced and renamed. It replaces an
/// older one; its folder must exist. Errors: the path and the reason, as where two Parameters get one name; those of
/// Parameter::Value.
absl::Status SaveCheckpoint(nn::Cell& net, const std::string& path, const SaveOptions& options = {});
/// With the names of NameMap::Preset(preset): SaveCheckpoint(net, "model.safetensors", "huggingface/gpt2").
absl::Status SaveCheckpoint(nn::Cell& net, const std::string& path, std::string_view preset);

/// The parameters and statistics in a file, by the file's names. The file may be a checkpoint of weights or another
/// program's safetensors. It may also be a checkpoint of a Model's training, whose optimizer and counters are left out.
/// An index of shards ("model.safetensors.index.json") stands for them, and a folder for what it has of Hugging Face's
/// names. Errors: a file that is missing, truncated or damaged; a pickle; all that is wrong with an index and shards.
absl::StatusOr<std::map<std::string, Tensor>> LoadCheckpoint(const std::string& path);

struct LoadOptions {
  /// Strict: every Parameter must be in the file and every entry must fit one, unless `names` ignores it; otherwise
  /// nothing is loaded. Partial: what fits is loaded and the report names the rest. An entry that is misshapen, has no
  /// floating type or no value, or stands for two Parameters is an error in both.
  bool strict = true;
  NameMap names;  ///< what the file calls the Parameters; NameMap::PyTorch() for PyTorch
  /// Parameters at and below these paths keep their values, whatever the file has for them: {"fc"} for a new head. A
  /// path ends where a name ends, a dot behind it or not: {"layer"} is no part of "layer1". One at or below which the
  /// network has no Parameter is an error. A tied Parameter is left out by any of its paths.
  std::vector<std::string> filter_prefix;
};

struct LoadReport {
  std::vector<std::string> loaded;   ///< Parameters, by the network's names
  std::vector<std::string> missing;  ///< Parameters that the file does not have, by the network's names
  /// Entries that the network does not have, by the file's names. Those that LoadOptions::names ignores are left out.
  std::vector<std::string> unexpected;
};

/// Loads the weights of LoadCheckpoint into `net`. Everything is checked first: on an error, which lists every problem,
/// the network is as it was. Floating entries of another type are converted to the Parameter's. NaN is refused.
absl::StatusOr<LoadReport> LoadParamIntoNet(nn::Cell& net, const std::string& path, const LoadOptions& options = {});
/// As above, from the map that LoadCheckpoint returns.
absl::StatusOr<LoadReport> LoadParamIntoNet(nn::Cell& net, const std::map<std::string, Tensor>& parameters,
                                            const LoadOptions& options = {});
/// With the names of NameMap::Preset(preset), from the published files: LoadParamIntoNet(net, "model.safetensors",
/// "huggingface/gpt2"). Errors: an unknown preset, too.
absl::StatusOr<LoadReport> LoadParamIntoNet(nn::Cell& net, const std::string& path, std::string_view preset);

}  // namespace mpc
