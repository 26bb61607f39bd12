// What a checkpoint says of the compilation of the run that it continues. Not
// part of the public API.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/options/compile_options.h"
#include "frontend/state/checkpoint_metadata.h"
#include "runtime/program.h"

namespace mpc::internal {

/// "train_step(tensor<8x6xf32>, tensor<8x3xf32>)": what a Program is known by from one process to the next.
std::string ProgramSignature(const runtime::Program& program);

/// The inputs, the precision and the kernels' choices of the last checkpoint that a Model has loaded. They stand for
/// what has not been compiled again. All are empty before.
class ResumedCompilation {
 public:
  /// Takes what `metadata` says. Another precision than the Model's solves its own assignment and makes its own
  /// choices, so that `same_level` = false keeps the inputs alone.
  void Take(const CheckpointMetadata& metadata, bool same_level);

  const TextMap& precision() const { return precision_; }
  /// The rates of the device that level auto decided with; none where the file has none.
  std::optional<compiler::DeviceRates> Rates() const;
  /// A warning where the choices of `program` are not those of the file; else empty.
  std::string WarningOf(const runtime::Program& program) const;
  /// Begins the description of what is compiled.
  void AddTo(CheckpointMetadata& metadata) const;

 private:
  std::vector<std::pair<std::string, TensorSpec>> inputs_;
  TextMap precision_;
  std::map<std::string, TextMap> choices_;  ///< by the signatures of Programs
};

}  // namespace mpc::internal
