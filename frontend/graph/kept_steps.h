// Compiled steps by their keys. Not part of the public API.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "frontend/graph/compiled_step.h"

namespace mpc::internal {

/// The steps that an owner, a Model or a Cell, has compiled, by StepKey and what the owner adds to it.
///
/// A step is asked for by the key from before its trace. Tracing may change that key: Construct sets a mode, and
/// parameters are stored low from then on. A step is therefore kept by the key from after its trace, and is found by
/// both. No step is found of which a part has been replaced since.
class KeptSteps {
 public:
  using Owned = std::unique_ptr<CompiledStep>;

  /// The step of `asked`, which is a key from before or after a trace; null where there is none that is current.
  CompiledStep* Find(const std::string& asked) const;
  /// Keeps `step`, which was asked for by `asked` and has the key `traced` after its trace. `earlier` receives the step
  /// that has had this key; null: there was none.
  CompiledStep& Keep(const std::string& asked, const std::string& traced, Owned step, Owned* earlier = nullptr);
  /// Gives up the steps whose Cells, Parameters or optimizers have been replaced, and returns them.
  std::vector<Owned> TakeReplaced();
  /// Gives up `step`, if it is kept.
  void Forget(const CompiledStep* step);
  void Clear() { steps_.clear(); }

  /// Every step that is kept, in the order of the keys.
  std::vector<CompiledStep*> all() const;

 private:
  std::map<std::string, Owned> steps_;
  std::map<std::string, std::string> keys_after_tracing_;  ///< by the key that a step was asked for with
};

}  // namespace mpc::internal
