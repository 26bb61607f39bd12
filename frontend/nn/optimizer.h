// The base of optimizers: they turn gradients into new parameter values, as operations of the traced step.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/graph/identity.h"
#include "frontend/graph/loss_scale.h"
#include "frontend/graph/parameter.h"
#include "frontend/graph/tensor.h"
#include "frontend/nn/learning_rate.h"
#include "kernels/attributes.h"

namespace mpc::amp::internal {
struct Session;
}  // namespace mpc::amp::internal

namespace mpc::nn {

/// Parameters that share a learning rate and a weight decay.
struct ParameterGroup {
  std::vector<Parameter> params;
  std::optional<LearningRate> learning_rate;  ///< left out: the optimizer's
  std::optional<double> weight_decay;         ///< left out: the optimizer's
};

/// What an optimizer trains: `net.TrainableParams()`, a list of Parameters, or groups:
///
///     nn::SGD opt({{.params = net.backbone.TrainableParams(), .learning_rate = 1e-3},
///                  {.params = net.head.TrainableParams(), .weight_decay = 0.0}},
///                 {.learning_rate = 1e-2, .weight_decay = 1e-4});
class ParameterGroups {
 public:
  ParameterGroups() = default;
  ParameterGroups(std::vector<Parameter> parameters)  // NOLINT: one group
      : groups_{{std::move(parameters), {}, {}}}, grouped_(false) {}
  ParameterGroups(std::initializer_list<Parameter> parameters)  // NOLINT
      : ParameterGroups(std::vector<Parameter>(parameters)) {}
  ParameterGroups(std::vector<ParameterGroup> groups) : groups_(std::move(groups)) {}  // NOLINT
  ParameterGroups(std::initializer_list<ParameterGroup> groups) : groups_(groups) {}   // NOLINT

  const std::vector<ParameterGroup>& groups() const { return groups_; }
  /// False for a plain list of Parameters.
  bool grouped() const { return grouped_; }

 private:
  std::vector<ParameterGroup> groups_;
  bool grouped_ = true;
};

/// Base of optimizers. Owns its state: learning rates, step counter and slots; copies share it, but not the session
/// that amp::Initialize gives one of them later. After an assignment, `opt = nn::SGD(...)`, steps are compiled anew.
/// They use the state of the new optimizer, as checkpoints do. Errors of construction (no parameters, a parameter given
/// twice, a value out of range) are kept and returned by the first use.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  const absl::Status& status() const { return status_; }
  /// The parameters of every group, in order.
  const std::vector<Parameter>& parameters() const { return parameters_; }
  std::size_t num_groups() const { return groups_.size(); }
  /// What gradients are divided by inside the optimizer (MindSpore's `loss_scale`); 1 where it has none.
  double loss_scale() const { return loss_scale_; }
  /// False for optimizers without a `loss_scale` option.
  virtual bool divides_by_loss_scale() const { return true; }
  virtual std::string TypeName() const = 0;
  /// Errors: a static scaler leaves the division to the optimizer, and its `loss_scale` differs or does not exist.
  /// Other modes pass.
  absl::Status CheckLossScale(const LossScaleConfig& config) const;

  /// Sets the learning rate of `group`, or of every group if none is given. The next step uses it, without a recompile.
  /// Errors: a negative or non-finite rate, no such group, a rate that a schedule computes. No rate changes then.
  absl::Status SetLearningRate(double learning_rate);
  absl::Status SetLearningRate(std::size_t group, double learning_rate);
  /// The rate as f32 holds it. Waits for steps that a device still runs. Errors: no such group; a schedule, which has
  /// no rate outside a step; those of Parameter::Value. A step that records "learning_rate" records the rate of the
  /// first group of its first optimizer, a schedule's too.
  absl::StatusOr<double> learning_rate(std::size_t group = 0) const;
  /// The rate that `group`, which exists, was made with: SetLearningRate and checkpoints do not change it.
  const LearningRate& configured_rate(std::size_t group = 0) const { return groups_[group].rate; }
  /// The weight decay of a group; 0 if there is no such group.
  double weight_decay(std::size_t group = 0) const;
  /// Number of updates done; skipped steps do not count. Waits like learning_rate(). Errors: those of Parameter::Value.
  absl::StatusOr<std::int64_t> step() const;

  /// In a training step: applies `gradients` (in the order of `parameters()`); after amp::ScaleLoss for this optimizer
  /// only where their check holds. Frozen parameters, and those that the loss does not use, stay as they are. Returns
  /// true, for ops::Depend; false outside a trace, which does nothing, and on an error. Errors end the trace: one of
  /// construction, another number of gradients, another loss scale, a parameter of two optimizers.
  bool operator()(const std::vector<Tensor>& gradients);
  /// The same where the rank-0 bool `predicate` holds; elsewhere no state of this optimizer changes. Undefined: always.
  bool Apply(const std::vector<Tensor>& gradients, const Tensor& predicate);

  /// Learning rates that no schedule computes, step and slots. Names them "optimizer.learning_rate",
  /// "optimizer.group1.learning_rate", "optimizer.step", and slots after the parameters,
  /// "optimizer.fc1.weight.velocity".
  std::vector<Parameter> State();

  /// The place among the optimizers of a step, from 0. The next State() names its state "optimizer", "optimizer2", ...
  /// by it. A trace that uses the optimizer sets the place of that step.
  void SetPlace(std::size_t place);
  /// Counts updates; identifies the optimizer in a step.
  const Parameter& step_counter() const { return step_; }

  /// What amp::Initialize has given this optimizer; null without it.
  const std::shared_ptr<amp::internal::Session>& amp_session() const { return amp_session_; }
  void set_amp_session(std::shared_ptr<amp::internal::Session> session) { amp_session_ = std::move(session); }

 protected:
  /// Options that every optimizer has.
  struct Common {
    LearningRate learning_rate;
    double weight_decay = 0.0;
    double loss_scale = 1.0;
    /// No weight decay for names with "beta" or "gamma". Groups have their own weight decay and ignore this.
    bool skip_decay_of_norms = false;

    /// The part that `options` of an optimizer have in common with those of every other.
    template <typename Options>
    static Common Of(const Options& options) {
      return {options.learning_rate, options.weight_decay, options.loss_scale, options.skip_decay_of_norms};
    }
  };

  /// One parameter's update.
  struct Operands {
    Tensor parameter;
    std::vector<Tensor> slots;  ///< in the order of `slot_names`
    Tensor gradient;
    Tensor learning_rate;  ///< f32, rank 0
    Tensor step;           ///< updates done before this one: i32, rank 0
    Tensor predicate;      ///< may be undefined
    double weight_decay;
    std::size_t index;  ///< place of the parameter among `parameters()`
  };
  /// State of each parameter: the last part of its name, and the number that it starts from.
  struct Slot {
    std::string name;
    double initial;
    Slot(const char* name, double initial = 0.0) : name(name), initial(initial) {}  // NOLINT: a name stands for a slot
  };
  /// Each parameter has a slot for each of `slots`: f32 of its shape.
  Optimizer(const ParameterGroups& groups, const Common& common, std::vector<Slot> slots);
  Optimizer(const Optimizer& other) = default;
  Optimizer& operator=(const Optimizer& other) = default;

  /// Emits the operation and returns the new values of parameter and slots.
  virtual std::vector<Tensor> Update(const Operands& operands) = 0;
  /// For `Update`: parameter, slots, gradient, learning rate, the step where the operation has it, the predicate if it
  /// is defined. `attributes` get weight_decay too.
  static std::vector<Tensor> Emit(std::string_view op, const Operands& operands, bool with_step,
                                  const Attributes& attributes);

  // For rules that are written in operations of the graph, around one update operation. That operation writes the
  // parameter, so guards, low copies and accumulation work as for any other. Slots are chosen at the end of the step.

  /// The gradient as f32, divided by the loss scale.
  Tensor Unscaled(const Operands& operands) const;
  /// The same with the coupled weight decay added.
  Tensor Decayed(const Operands& operands) const;
  /// parameter - learning_rate * (direction + weight_decay * parameter).
  static Tensor Descend(const Operands& operands, const Tensor& direction, double weight_decay);
  /// The new value of a slot: `updated`, or `old` where the predicate of `operands` does not hold.
  static Tensor Held(const Operands& operands, const Tensor& updated, const Tensor& old);

  // For optimizers that change what another one does. A copy of it shares its state.

  /// What `optimizer` makes of one parameter.
  static std::vector<Tensor> UpdateOf(Optimizer& optimizer, const Operands& operands) {
    return optimizer.Update(operands);
  }
  /// Adds a slot of each parameter, behind the others. Rejects a name that another slot has.
  void AddSlot(const Slot& slot);
  /// Adds a count of the updates done since then, named "optimizer." and `name`. A skipped step does not count.
  Parameter AddCounter(const char* name);
  /// Called in a step for a parameter that no update reaches: a frozen one, or one that the loss does not use.
  virtual void LeaveOut(std::size_t /*index*/) {}
  /// What `optimizer` does with a parameter that no update reaches. Wrappers pass it on.
  static void LeaveOutOf(Optimizer& optimizer, std::size_t index) { optimizer.LeaveOut(index); }
  const std::vector<Parameter>& slots(std::size_t index) const { return slots_[index]; }

  /// Keeps the first error.
  void Reject(const std::string& message);
  /// Rejects what a check has found wrong, if anything.
  void RejectIf(const absl::Status& error);
  /// Rejects decay rates of moments outside [0, 1), in f32 too.
  void CheckBetas(double beta1, double beta2);

 private:
  struct Group {
    LearningRate rate;
    Parameter state;  ///< the rate, where it is no schedule
    double weight_decay;
  };
  /// Errors: no such group, a schedule.
  absl::Status CheckSettable(std::size_t group) const;
  void AddParameter(const Parameter& parameter, std::size_t group, bool grouped);
  static Parameter MakeSlot(const Parameter& parameter, const Slot& slot);
  double DecayOf(std::size_t index) const;
  std::vector<Tensor> Rates(const Tensor& step) const;

  std::vector<Parameter> parameters_;
  std::vector<std::size_t> group_of_;  ///< by parameter
  std::vector<Group> groups_;
  std::string prefix_ = "optimizer";  ///< prefix of state names; the second optimizer of a step is "optimizer2"
  Parameter step_;
  std::vector<std::pair<std::string, Parameter>> counters_;  ///< those of AddCounter, by name
  std::vector<Slot> slot_kinds_;
  std::vector<std::vector<Parameter>> slots_;  ///< by parameter
  double loss_scale_;
  bool skip_decay_of_norms_;
  std::shared_ptr<amp::internal::Session> amp_session_;
  mpc::internal::Identity identity_;  ///< what compiled steps know this optimizer by
  absl::Status status_;
};

}  // namespace mpc::nn
