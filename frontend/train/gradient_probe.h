// Loss and gradients of a Model's step in one precision after the other. Not part of the public API.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/driver/precision_frontier.h"
#include "frontend/train/model_impl.h"

namespace mpc {

/// The step without its update, compiled for one precision after the other. Every run starts from the same state. A
/// step with its update is timed alone.
class Model::Impl::GradientProbe {
 public:
  /// Loss and gradients of one batch, the seed divided out.
  struct LossAndGradients {
    double loss = 0;
    std::vector<float> gradients;

    bool IsFinite() const;
  };

  /// A random direction of all parameters, each element +1 or -1, and how far to go along it.
  struct Move {
    std::uint64_t seed = 0;
    double distance = 0;
  };

  /// `rates` take the place of those that are measured on this device. Errors: a step of the user's own, of which the
  /// network and its loss are not known.
  static absl::StatusOr<GradientProbe> Create(Model::Impl& model, const std::optional<compiler::DeviceRates>& rates);

  const compiler::CompileOptions& compile_options() const { return options_.compile; }
  absl::StatusOr<compiler::Module> Trace(const data::Row& batch);

  /// Compiles the step at O0. It comes before every other one.
  absl::Status CompileExact(const data::Row& batch);
  /// Compiles the step with the precision of `slots`, its loss scaled by `seed`. `fused`: as it would train.
  absl::Status CompileWith(const data::Row& batch, const compiler::PrecisionMap& slots, double seed, bool fused);
  /// Compiles the step at O0 with the probes of those of `slots` that can be probed.
  absl::StatusOr<SlotProbes> CompileProbes(const data::Row& batch, const std::vector<std::string>& slots);

  /// Runs what was compiled last.
  absl::StatusOr<LossAndGradients> Run(const data::Row& batch);
  /// Runs it with parameters moved along a direction.
  absl::Status RunMoved(const data::Row& batch, const Move& move);
  /// After a run of probes: the value, or the cotangent, of a point.
  Tensor PointValue(std::int64_t place) const { return ProbeOutput(2 * place); }
  Tensor PointCotangent(std::int64_t place) const { return ProbeOutput(2 * place + 1); }

  /// The median seconds of `steps` >= 1 training steps with the precision of `slots`, update included. They begin where
  /// a dynamic loss scale no longer skips. Afterwards the state is as it was. The step is that of one process, without
  /// accumulation.
  absl::StatusOr<double> TimeTraining(const data::Row& batch, const compiler::PrecisionMap& slots, std::int64_t steps);
  /// The root of the mean square of all elements of the parameters.
  double ParameterSize() const;
  /// The state is as it was before the first run.
  absl::Status Restore();

 private:
  GradientProbe(Model::Impl& model, const nn::TrainOneStepCell& step);

  std::vector<Parameter> State() const;
  internal::StepOptions ExactOptions() const;
  internal::TensorFunction Function(double seed) const;
  absl::Status Compile(const data::Row& batch, const internal::StepOptions& options, double seed);
  Tensor ProbeOutput(std::int64_t place) const;

  Model::Impl& model_;
  nn::CellFunction network_;
  std::vector<Parameter> weights_;
  std::vector<std::pair<Parameter, Tensor>> kept_;  ///< the state before the first run; empty before CompileExact
  internal::StepOptions training_;                  ///< options of the step with its update
  internal::StepOptions options_;
  std::unique_ptr<internal::CompiledStep> step_run_;
  double seed_ = 1;
};

}  // namespace mpc
