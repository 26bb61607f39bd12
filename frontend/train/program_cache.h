// The Programs that a Model has compiled. Not part of the public API.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "frontend/graph/kept_steps.h"
#include "frontend/train/precision_decision.h"

namespace mpc::internal {

/// The Programs that a Model runs, and those that measure its training step, by their keys. A Program whose Cells,
/// Parameters or optimizers have been replaced is given up. While Train runs it stays alive, as it may not have
/// finished its steps.
class ProgramCache {
 public:
  /// A call of Train, for as long as it lives.
  class Run {
   public:
    explicit Run(ProgramCache& cache) : cache_(cache) { ++cache_.runs_; }
    ~Run() {
      if (--cache_.runs_ == 0) cache_.given_up_.clear();
    }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

   private:
    ProgramCache& cache_;
  };

  /// The key of a Program as its Cells and Parameters are now. Parameters that are stored low are part of it, and so is
  /// the decided precision.
  static std::string KeyOf(nn::Cell* root, const std::vector<Tensor>& inputs, const StepOptions& options,
                           const PrecisionDecision& decision);

  /// The Program of `asked`, a key from before or after a trace; null where there is none that is current.
  CompiledStep* Find(const std::string& asked) const { return programs_.Find(asked); }
  /// Keeps a Program that was asked for by `asked` and has the key `traced` after its trace.
  CompiledStep& Keep(const std::string& asked, const std::string& traced, std::unique_ptr<CompiledStep> program);

  // Programs that measure are not among compiled().
  CompiledStep* FindMeasuring(const std::string& key) const { return measuring_.Find(key); }
  CompiledStep& KeepMeasuring(const std::string& key, std::unique_ptr<CompiledStep> program);

  /// Gives up the Programs whose Cells, Parameters or optimizers have been replaced.
  void ForgetReplaced();

  /// What was compiled, in that order, without what was given up.
  const std::vector<const compiler::CompileResult*>& compiled() const { return compiled_; }
  /// The Programs that do not measure, in the order of their keys.
  std::vector<CompiledStep*> all() const { return programs_.all(); }
  /// What the largest of them plans for state, arena and constants.
  std::size_t peak_bytes() const;

 private:
  void GiveUp(std::unique_ptr<CompiledStep> program);

  KeptSteps programs_;
  KeptSteps measuring_;
  std::vector<const compiler::CompileResult*> compiled_;
  std::vector<std::unique_ptr<CompiledStep>> given_up_;  ///< while Train runs
  int runs_ = 0;                                         ///< calls of Train that have not returned
};

}  // namespace mpc::internal
