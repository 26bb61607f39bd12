// Finds the precisions of a Model's step between the fastest and the most exact one, and trains with one of them.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/driver/precision_frontier.h"
#include "frontend/graph/emit.h"
#include "frontend/graph/gradient_ops.h"
#include "frontend/train/model_impl.h"
#include "frontend/train/precision_frontier.h"

namespace mpc {
namespace {

using compiler::PrecisionMap;
using internal::CompiledStep;
using internal::StepOptions;

/// The seeds that gradients in f16 are tried with, the largest first: a small one loses gradients to zero.
constexpr double kFirstSeed = 32768;

absl::StatusOr<std::vector<data::Row>> FirstBatches(const data::Dataset& dataset, std::int64_t count) {
  absl::StatusOr<std::unique_ptr<data::DatasetIterator>> rows = dataset.NewIterator(0);
  if (!rows.ok()) return rows.status();
  std::vector<data::Row> batches;
  for (data::Row batch; static_cast<std::int64_t>(batches.size()) < count;) {
    const absl::StatusOr<bool> found = (*rows)->Next(&batch);
    if (!found.ok()) return found.status();
    if (!*found) break;
    // One Program runs all of them.
    if (!batches.empty() && batch.front().spec() != batches.front().front().spec()) break;
    batches.push_back(batch);
  }
  if (batches.empty()) return absl::InvalidArgumentError("the data set has no batch to measure gradients on");
  return batches;
}

/// |a - b| / |b| over all elements. Infinite where `a` is not finite.
double RelativeError(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double exact = b[i], d = a[i] - exact;
    difference += d * d;
    norm += exact * exact;
  }
  const double error = norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
  return std::isfinite(error) ? error : INFINITY;
}

std::int64_t CountLow(const PrecisionMap& slots) {
  return std::count_if(slots.begin(), slots.end(), [](const auto& slot) { return slot.second != "f32"; });
}

}  // namespace

/// The step without its update, compiled for one precision after the other.
class Model::Impl::GradientProbe {
 public:
  /// Loss and gradients of one batch, the seed divided out.
  struct LossAndGradients {
    double loss = 0;
    std::vector<float> gradients;

    bool IsFinite() const {
      return std::isfinite(loss) &&
             std::all_of(gradients.begin(), gradients.end(), [](float element) { return std::isfinite(element); });
    }
  };

  /// Errors: a step of the user's own, of which the network and its loss are not known.
  static absl::StatusOr<GradientProbe> Create(Model::Impl& model, const std::optional<compiler::DeviceRates>& rates) {
    const auto* step =
        model.own_step != nullptr ? model.own_step.get() : dynamic_cast<const nn::TrainOneStepCell*>(model.user_step);
    if (step == nullptr || model.precision.num_losses != 1) {
      return absl::UnimplementedError(
          "a frontier of precision is of one network with one loss: give Model network, loss and optimizer, or a "
          "TrainOneStepCell; this step is of your own");
    }
    GradientProbe probe(model, *step);
    model.step.cell()->SetTrain(true);
    StepOptions options = model.TrainOptions({});
    options.optimizers.clear();
    options.scaler.clear();
    options.records.clear();
    options.output_names.clear();
    options.pass_state = nullptr;
    options.divided_scale.reset();
    options.load.steps_per_launch = 1;
    options.load.communicator = nullptr;
    options.compile.loss_scale = "none";
    options.compile.processes = 1;
    options.compile.accumulation_steps = 1;
    options.compile.master_weights = true;
    options.compile.dtype = std::string(DTypeName(model.precision.dtype));
    // Rates that were given take the place of measuring.
    absl::StatusOr<StepOptions> precise = rates.has_value() ? options : model.WithPrecision(options);
    if (!precise.ok()) return precise.status();
    if (rates.has_value()) precise->compile.rates = *rates;
    precise->compile.assignment.clear();
    precise->compile.function = precise->name;
    probe.options_ = *std::move(precise);
    return probe;
  }

  const compiler::CompileOptions& compile_options() const { return options_.compile; }

  absl::StatusOr<compiler::Module> Trace(const data::Row& batch) {
    return internal::TraceStep(model_.step.cell(), Function(1), internal::SpecsOf(batch), options_, nullptr);
  }

  /// Compiles the step at O0.
  absl::Status CompileExact(const data::Row& batch) {
    StepOptions options = options_;
    options.compile.level = "O0";
    options.compile.dtype = "f16";
    for (auto* list : {&options.compile.allow, &options.compile.deny, &options.compile.infer, &options.compile.clear})
      list->clear();
    if (absl::Status status = Compile(batch, options, 1); !status.ok()) return status;
    // Initial values have been drawn by now.
    absl::StatusOr<StateKeeper> kept = StateKeeper::Keep(State(model_));
    if (!kept.ok()) return kept.status();
    kept_ = *std::move(kept);
    return absl::OkStatus();
  }

  /// Compiles the step with the precision of `slots`, its loss scaled by `seed`. `fused`: as it would train.
  absl::Status CompileWith(const data::Row& batch, const PrecisionMap& slots, double seed, bool fused) {
    StepOptions options = options_;
    options.compile.assignment = slots;
    if (!fused) options.compile.fusion = false;
    return Compile(batch, options, seed);
  }

  /// Runs what was compiled last, from the same state each time.
  absl::StatusOr<LossAndGradients> Run(const data::Row& batch) {
    if (absl::Status status = Restore(); !status.ok()) return status;
    if (absl::Status status = step_run_->Run(batch); !status.ok()) return status;
    LossAndGradients result;
    const absl::StatusOr<double> loss = step_run_->Output(0).TryItem<double>();
    if (!loss.ok()) return loss.status();
    result.loss = *loss;
    for (std::size_t i = 1; i < step_run_->num_outputs(); ++i) {
      const Tensor gradient = step_run_->Output(i);
      if (!gradient.status().ok()) return gradient.status();
      for (const float element : gradient.data<float>())
        result.gradients.push_back(static_cast<float>(element / seed_));
    }
    return result;
  }

  /// The median seconds of a run.
  absl::StatusOr<double> Time(const data::Row& batch, std::int64_t steps) {
    std::vector<double> seconds;
    for (std::int64_t i = 0; i < steps; ++i) {
      const auto start = std::chrono::steady_clock::now();
      if (absl::Status status = step_run_->Run(batch); !status.ok()) return status;
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    std::nth_element(seconds.begin(), seconds.begin() + steps / 2, seconds.end());
    return seconds[static_cast<std::size_t>(steps / 2)];
  }

  /// The state is as it was before the first run.
  absl::Status Restore() { return kept_.Restore(); }

 private:
  /// Puts state back to what it was.
  class StateKeeper {
   public:
    static absl::StatusOr<StateKeeper> Keep(std::vector<Parameter> state) {
      StateKeeper keeper;
      for (Parameter& parameter : state) {
        absl::StatusOr<Tensor> value = parameter.Value();
        if (!value.ok()) return value.status();
        keeper.kept_.emplace_back(std::move(parameter), *std::move(value));
      }
      return keeper;
    }
    absl::Status Restore() {
      for (auto& [parameter, value] : kept_) {
        if (absl::Status status = parameter.SetData(value); !status.ok()) return status;
      }
      return absl::OkStatus();
    }

   private:
    std::vector<std::pair<Parameter, Tensor>> kept_;
  };

  GradientProbe(Model::Impl& model, const nn::TrainOneStepCell& step)
      : model_(model), network_(step.trained_network()), weights_(step.trained_by().parameters()) {}

  static std::vector<Parameter> State(const Model::Impl& model) {
    std::vector<Parameter> state{model.rng.step};
    for (const auto& [name, parameter] : model.root()->ParametersAndNames()) state.push_back(parameter);
    return state;
  }

  internal::TensorFunction Function(double seed) const {
    return [this, seed](const std::vector<Tensor>& columns) {
      const Tensor cotangent = seed == 1.0 ? Tensor() : ops::Fill(DType::kF32, {}, seed);
      ops::ValueAndGradResult result = ops::ValueAndGrad(network_, weights_, columns, cotangent);
      std::vector<Tensor> outputs{result.value};
      outputs.insert(outputs.end(), result.gradients.begin(), result.gradients.end());
      return outputs;
    };
  }

  absl::Status Compile(const data::Row& batch, const StepOptions& options, double seed) {
    absl::StatusOr<std::unique_ptr<CompiledStep>> fresh =
        internal::CompileStep(model_.step.cell(), Function(seed), internal::SpecsOf(batch), options);
    if (!fresh.ok()) return fresh.status();
    step_run_ = *std::move(fresh);
    seed_ = seed;
    return absl::OkStatus();
  }

  Model::Impl& model_;
  nn::CellFunction network_;
  std::vector<Parameter> weights_;
  StateKeeper kept_;  ///< empty before CompileExact
  StepOptions options_;
  std::unique_ptr<CompiledStep> step_run_;
  double seed_ = 1;
};

/// Measures errors against the step at O0.
class Model::Impl::FrontierSearch {
 public:
  FrontierSearch(GradientProbe& probe, std::vector<data::Row> batches, const PrecisionFrontierOptions& options)
      : probe_(probe), batches_(std::move(batches)), options_(options) {}

  absl::StatusOr<PrecisionFrontier> Run(const std::string& network) {
    absl::StatusOr<compiler::Module> traced = probe_.Trace(batches_.front());
    if (!traced.ok()) return traced.status();
    absl::StatusOr<std::vector<std::string>> open = compiler::OpenPrecisionSlots(*traced, probe_.compile_options());
    if (!open.ok()) return open.status();
    if (open->empty()) {
      return absl::FailedPreconditionError(
          "no slot of this step is open at level auto: lists, ToFloat and casts decide all of them");
    }
    if (absl::Status status = RunExact(); !status.ok()) return status;
    if (absl::Status status = ChooseSeed(*open); !status.ok()) return status;
    std::map<std::string, double> errors;
    for (const std::string& slot : *open) {
      const absl::StatusOr<double> error = ErrorOfSlot(*open, slot);
      if (!error.ok()) return error.status();
      errors[slot] = *error;
    }
    absl::StatusOr<std::vector<compiler::PredictedPrecision>> hull =
        compiler::PredictPrecisionFrontier(*traced, probe_.compile_options(), errors);
    if (!hull.ok()) return hull.status();
    PrecisionFrontier frontier;
    frontier.open_slots = static_cast<std::int64_t>(open->size());
    frontier.corners = static_cast<std::int64_t>(hull->size());
    for (const std::size_t corner : PlacesToRun(*hull)) {
      absl::StatusOr<PrecisionFrontier::Point> point = RunPoint(network, (*hull)[corner]);
      if (!point.ok()) return point.status();
      frontier.points.push_back(*std::move(point));
    }
    Choose(frontier);
    return frontier;
  }

 private:
  static PrecisionMap AllSlots(const std::vector<std::string>& open, const std::string& type) {
    PrecisionMap slots;
    for (const std::string& slot : open) slots[slot] = type;
    return slots;
  }

  const std::string& low() const { return probe_.compile_options().dtype; }

  absl::Status RunExact() {
    if (absl::Status status = probe_.CompileExact(batches_.front()); !status.ok()) return status;
    for (const data::Row& batch : batches_) {
      absl::StatusOr<GradientProbe::LossAndGradients> run = probe_.Run(batch);
      if (!run.ok()) return run.status();
      if (!run->IsFinite()) {
        return absl::FailedPreconditionError(
            "the loss or a gradient is not finite at O0, so that no error of a lower precision can be told");
      }
      exact_.push_back(*std::move(run));
    }
    return absl::OkStatus();
  }

  /// In f16 gradients need a scale. It is the largest power of 8 below 2^16 with which all of them are finite where
  /// every open slot is low.
  absl::Status ChooseSeed(const std::vector<std::string>& open) {
    if (low() != "f16") return absl::OkStatus();
    for (seed_ = kFirstSeed; seed_ > 1; seed_ /= 8) {
      if (absl::Status status = probe_.CompileWith(batches_.front(), AllSlots(open, low()), seed_, false); !status.ok())
        return status;
      const absl::StatusOr<GradientProbe::LossAndGradients> run = probe_.Run(batches_.front());
      if (!run.ok()) return run.status();
      if (run->IsFinite()) return absl::OkStatus();
    }
    seed_ = 1;
    return absl::OkStatus();
  }

  /// The root of the mean square over the batches.
  absl::StatusOr<double> ErrorOfSlot(const std::vector<std::string>& open, const std::string& slot) {
    PrecisionMap slots = AllSlots(open, "f32");
    slots[slot] = low();
    if (absl::Status status = probe_.CompileWith(batches_.front(), slots, seed_, false); !status.ok()) return status;
    double squares = 0;
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      const absl::StatusOr<GradientProbe::LossAndGradients> run = probe_.Run(batches_[i]);
      if (!run.ok()) return run.status();
      // What is not finite is as bad as a gradient of nothing but errors.
      const double error = std::min(RelativeError(run->gradients, exact_[i].gradients), 1.0);
      squares += error * error;
    }
    return std::sqrt(squares / static_cast<double>(batches_.size()));
  }

  /// The places of the corners to run, the fastest first. The most exact one is always among them.
  std::vector<std::size_t> PlacesToRun(const std::vector<compiler::PredictedPrecision>& hull) const {
    std::vector<std::size_t> places(hull.size());
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
    const auto wanted = static_cast<std::size_t>(options_.points);
    if (wanted >= places.size()) return places;
    std::set<std::size_t> run{places.back()};
    if (options_.max_gradient_error.has_value()) {
      const auto distance = [&](std::size_t place) {
        return std::abs(std::log(std::max(hull[place].error, 1e-30) / *options_.max_gradient_error));
      };
      std::stable_sort(places.begin(), places.end(),
                       [&](std::size_t a, std::size_t b) { return distance(a) < distance(b); });
      for (std::size_t i = 0; run.size() < wanted; ++i) run.insert(places[i]);
    } else {
      for (std::size_t i = 0; i + 1 < wanted; ++i) run.insert(i * (places.size() - 1) / (wanted - 1));
    }
    return {run.begin(), run.end()};
  }

  absl::StatusOr<PrecisionFrontier::Point> RunPoint(const std::string& network,
                                                    const compiler::PredictedPrecision& corner) {
    PrecisionFrontier::Point point;
    point.precision = {network, low(), corner.slots};
    point.low_slots = CountLow(corner.slots);
    point.predicted_seconds = corner.seconds;
    point.predicted_error = corner.error;
    if (absl::Status status = probe_.CompileWith(batches_.front(), corner.slots, seed_, true); !status.ok())
      return status;
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      const absl::StatusOr<GradientProbe::LossAndGradients> run = probe_.Run(batches_[i]);
      if (!run.ok()) return run.status();
      const double loss = exact_[i].loss;
      point.measured_error = std::max(point.measured_error, RelativeError(run->gradients, exact_[i].gradients));
      point.loss_error = std::max(point.loss_error, std::abs(run->loss - loss) / std::max(std::abs(loss), 1e-30));
    }
    const absl::StatusOr<double> seconds = probe_.Time(batches_.front(), options_.steps);
    if (!seconds.ok()) return seconds.status();
    point.measured_seconds = *seconds;
    return point;
  }

  void Choose(PrecisionFrontier& frontier) const {
    if (!options_.max_gradient_error.has_value()) return;
    for (std::size_t i = 0; i < frontier.points.size(); ++i) {
      if (frontier.points[i].measured_error > *options_.max_gradient_error) continue;
      frontier.chosen = i;
      return;
    }
  }

  GradientProbe& probe_;
  std::vector<data::Row> batches_;
  PrecisionFrontierOptions options_;
  std::vector<GradientProbe::LossAndGradients> exact_;
  double seed_ = 1;
};

absl::StatusOr<PrecisionFrontier> Model::FindPrecisionFrontier(const data::Dataset& dataset,
                                                               const PrecisionFrontierOptions& options) {
  if (!impl_->status.ok()) return impl_->status;
  if (!impl_->step.defined()) return absl::FailedPreconditionError("this Model has no training step");
  if (impl_->precision.level != "auto") {
    return absl::InvalidArgumentError(absl::StrCat("a frontier of precision is for level auto, not ",
                                                   impl_->precision.level, ": the other levels decide without times"));
  }
  for (const auto& [name, value] : {std::pair<const char*, std::int64_t>{"points", options.points},
                                    {"steps", options.steps},
                                    {"batches", options.batches}}) {
    if (value < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("PrecisionFrontierOptions::", name, " is at least 1, not ", value));
    }
  }
  if (options.max_gradient_error.has_value() &&
      !(*options.max_gradient_error > 0 && std::isfinite(*options.max_gradient_error))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "PrecisionFrontierOptions::max_gradient_error is a number above 0, not ", *options.max_gradient_error));
  }
  absl::StatusOr<std::vector<data::Row>> batches = FirstBatches(dataset, options.batches);
  if (!batches.ok()) return batches.status();
  absl::StatusOr<Impl::GradientProbe> probe = Impl::GradientProbe::Create(*impl_, options.rates);
  if (!probe.ok()) return probe.status();
  absl::StatusOr<PrecisionFrontier> frontier =
      Impl::FrontierSearch(*probe, *std::move(batches), options).Run(impl_->network.cell()->TypeName());
  if (absl::Status status = probe->Restore(); !status.ok()) return status;
  return frontier;
}

absl::Status Model::UsePrecision(const compiler::ChosenPrecision& chosen, const data::Dataset& dataset) {
  Impl& self = *impl_;
  if (!self.status.ok()) return self.status;
  if (!self.step.defined()) return absl::FailedPreconditionError("this Model has no training step");
  if (self.precision.level != "auto") {
    return absl::InvalidArgumentError(absl::StrCat("a chosen precision is for level auto, not ", self.precision.level));
  }
  const std::string network = self.network.cell()->TypeName();
  if (chosen.network != network) {
    return absl::InvalidArgumentError(
        absl::StrCat("the precision is of the network ", chosen.network, ", this one is ", network));
  }
  const std::string low(DTypeName(self.precision.dtype));
  if (chosen.low != low) {
    return absl::InvalidArgumentError(absl::StrCat("the precision has the low type ", chosen.low, ", this Model has ",
                                                   low, "; give it dtype = ", chosen.low));
  }
  const absl::StatusOr<std::vector<data::Row>> batches = FirstBatches(dataset, 1);
  if (!batches.ok()) return batches.status();
  absl::StatusOr<compiler::Module> traced = TraceTrainStep(internal::SpecsOf(batches->front()));
  if (!traced.ok()) return traced.status();
  compiler::CompileOptions options = compile_options(/*training=*/true);
  options.dtype = low;
  const absl::StatusOr<std::vector<std::string>> open = compiler::OpenPrecisionSlots(*traced, options);
  if (!open.ok()) return open.status();
  for (const std::string& slot : *open) {
    if (!chosen.slots.contains(slot)) {
      return absl::InvalidArgumentError(absl::StrCat("the precision does not have ", slot, ", which this ", network,
                                                     " has: another variant of the network wrote it"));
    }
  }
  for (const auto& [slot, type] : chosen.slots) {
    if (std::find(open->begin(), open->end(), slot) == open->end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the precision has ", slot, ", which is no open slot of this ", network));
    }
  }
  self.KeepAssignment(chosen.slots, /*training=*/true);
  return absl::OkStatus();
}

}  // namespace mpc
