// Model::Eval and Model::Fit, and what callbacks may change of a Model that trains.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/distributed/activity.h"
#include "frontend/train/model_impl.h"

namespace mpc {

using internal::CompiledStep;
using internal::InferenceMode;
using internal::StepOptions;

bool ValidFrequency::Includes(std::int64_t epoch) const {
  if (!listed_) return epoch % every_ == 0;
  return std::find(epochs_.begin(), epochs_.end(), epoch) != epochs_.end();
}

std::string ValidFrequency::Description() const {
  return listed_ ? absl::StrCat("epochs ", absl::StrJoin(epochs_, ", ")) : absl::StrCat("every ", every_, " epochs");
}

absl::Status ValidFrequency::Validate() const {
  if (!listed_) {
    return every_ >= 1 ? absl::OkStatus()
                       : absl::InvalidArgumentError(absl::StrCat("valid_frequency must be at least 1, got ", every_));
  }
  if (!epochs_.empty() && *std::min_element(epochs_.begin(), epochs_.end()) >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("valid_frequency lists epochs, which are at least 1, got {", absl::StrJoin(epochs_, ", "), "}"));
}

absl::Status Model::Impl::CheckEvaluation(const data::Dataset& dataset,
                                          const std::vector<std::string>& trained_classes) const {
  if (!cells.has_loss()) {
    return absl::FailedPreconditionError(cells.user_step() == nullptr
                                             ? "Eval needs a Model with a loss"
                                             : "Eval needs a loss: Model(step, loss, options)");
  }
  const std::vector<std::string>& classes = dataset.class_names();
  const bool both_are_named = !classes.empty() && !trained_classes.empty();
  if (both_are_named && internal::FormatNames(classes) != internal::FormatNames(trained_classes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the classes of the evaluated data set are ", absl::StrJoin(classes, ", "),
                     ", but those of training are ", absl::StrJoin(trained_classes, ", "),
                     ": labels would mean other classes. WithClassNames gives a data set other names"));
  }
  return cells.CheckEvaluationColumns(dataset);
}

StepOptions Model::Impl::EvalOptions(const data::Dataset& dataset) const {
  StepOptions step_options = CommonOptions("eval_step");
  step_options.input_names = dataset.column_names();
  step_options.output_names = {"loss", "predictions"};
  return step_options;
}

absl::Status Model::Impl::CheckEvaluationFits(const data::Dataset& dataset) {
  const StepOptions step_options = EvalOptions(dataset);
  if (step_options.compile.memory_budget == 0) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<data::DatasetIterator>> rows = dataset.NewIterator(0);
  if (!rows.ok()) return rows.status();
  data::Row row;
  const absl::StatusOr<bool> any = (*rows)->Next(&row);
  if (!any.ok() || !*any) return any.status();
  const InferenceMode inference(*cells.evaluated());
  const absl::Status status = Program(cells.evaluated(), cells.EvalFunction(), row, step_options).status();
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("evaluation, before the first step: ", status.message()));
}

absl::Status Model::Impl::EvaluateBatches(const data::Dataset& dataset, const MetricList& metrics, bool shares) {
  if (absl::Status checked = CheckEvaluation(dataset, position.class_names()); !checked.ok()) return checked;
  const InferenceMode inference(*cells.evaluated());
  const StepOptions step_options = EvalOptions(dataset);
  absl::StatusOr<std::unique_ptr<data::DatasetIterator>> rows =
      shares ? OpenShare(dataset, 0, processes.size(), 0, data::PartialUpdate::kKeep) : dataset.NewIterator(0);
  if (!rows.ok()) return rows.status();
  data::Row row;
  for (;;) {
    absl::StatusOr<bool> more = (*rows)->Next(&row);
    if (!more.ok()) return more.status();
    if (!*more) break;
    absl::StatusOr<CompiledStep*> program = Program(cells.evaluated(), cells.EvalFunction(), row, step_options);
    if (!program.ok()) return program.status();
    if (absl::Status ran = (*program)->Run(row); !ran.ok()) return ran;
    absl::Status updated = metrics.Update((*program)->Output(0), (*program)->Output(1), row.back());
    if (!updated.ok()) return updated;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, double>> Model::Impl::Evaluate(const data::Dataset& dataset,
                                                                    const MetricList& metrics) {
  metrics.Clear();
  processes.NoteActivity("an evaluation");
  // A metric of the user's own may have no state that travels. Every process then evaluates all rows.
  const bool shares = processes.size() > 1 && metrics.SaveState().ok();
  absl::Status ran = EvaluateBatches(dataset, metrics, shares);
  if (shares) ran = processes.AgreeOnEvaluation(ran);
  if (!ran.ok()) return ran;
  if (shares) {
    if (absl::Status merged = processes.MergeMetrics(metrics); !merged.ok()) return merged;
  }
  absl::StatusOr<std::vector<std::pair<std::string, double>>> values = metrics.Eval();
  if (!values.ok()) return values.status();
  return std::map<std::string, double>(values->begin(), values->end());
}

absl::StatusOr<std::map<std::string, double>> Model::Eval(const data::Dataset& dataset) {
  const std::scoped_lock lock(impl_->mutex);
  if (!impl_->status.ok()) return impl_->status;
  absl::StatusOr<std::map<std::string, double>> values = impl_->Evaluate(dataset, impl_->options.metrics);
  impl_->processes.NoteActivity("what follows Eval");
  if (!values.ok()) return distributed::internal::ExplainWait(values.status());
  return values;
}

absl::Status Model::Impl::Validate(const internal::Validation& validation, const CallbackList& callbacks,
                                   internal::HookWrites& hooks, RunContext& context) {
  // A later run of another Program could take away what it is read from.
  context.loss();
  absl::Status begun = hooks.Share("OnEvalBegin", context, [&] { callbacks.OnEvalBegin(context); });
  if (!begun.ok()) return begun;
  absl::StatusOr<std::map<std::string, double>> values = Evaluate(validation.dataset(), validation.metrics());
  if (!values.ok()) {
    return absl::Status(values.status().code(),
                        absl::StrCat("evaluation after epoch ", context.epoch, ": ", values.status().message()));
  }
  context.set_eval_results(internal::Validation::Named(*values));
  return hooks.Share("OnEvalEnd", context, [&] { callbacks.OnEvalEnd(context); });
}

absl::Status Model::Fit(std::int64_t epochs, const data::Dataset& train, const data::Dataset& valid,
                        const FitOptions& options, const CallbackList& callbacks) {
  Impl& self = *impl_;
  const std::scoped_lock lock(self.mutex);
  if (!self.status.ok()) return self.status;
  if (absl::Status free = self.phase.CheckNoRun("Fit"); !free.ok()) return free;
  // Other processes hear of what is wrong with the arguments in this one.
  return self.processes.Run([&]() -> absl::Status {
    if (absl::Status status = options.valid_frequency.Validate(); !status.ok()) return status;
    const std::vector<std::string>& classes =
        train.class_names().empty() ? self.position.class_names() : train.class_names();
    if (absl::Status status = self.CheckEvaluation(valid, classes); !status.ok()) return status;
    const internal::Validation validation(valid, self.options.metrics, options);
    return self.Train(*this, epochs, train, &validation, callbacks);
  });
}

/// What callbacks reach of a Model in Train.
class Model::Impl::Trained : public TrainedModel {
 public:
  Trained(Model& model, data::Dataset dataset, std::int64_t steps_per_epoch)
      : model_(model), dataset_(std::move(dataset)), steps_per_epoch_(steps_per_epoch) {}

  absl::StatusOr<Weights> CopyWeights() const override {
    Weights weights;
    for (const auto& [name, parameter] : model_.impl_->cells.root()->ParametersAndNames()) {
      absl::StatusOr<Tensor> value = parameter.Value();
      if (!value.ok()) return value.status();
      weights.emplace_back(name, *std::move(value));
    }
    return weights;
  }

  absl::Status SetWeights(const Weights& weights) override {
    for (const auto& [name, value] : weights) {
      if (absl::Status set = model_.impl_->cells.root()->SetParameter(name, value); !set.ok()) return set;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<RateGroup>> LearningRates() const override {
    std::vector<RateGroup> groups;
    for (const nn::Optimizer* optimizer : model_.impl_->cells.optimizers()) {
      for (std::size_t group = 0; group < optimizer->num_groups(); ++group) {
        groups.push_back({absl::StrCat(optimizer->TypeName(), " group ", group), {}});
        const absl::StatusOr<double> rate = optimizer->learning_rate(group);
        if (rate.ok()) {
          groups.back().learning_rate = *rate;
        } else if (rate.status().code() != absl::StatusCode::kFailedPrecondition) {
          return rate.status();
        }
      }
    }
    for (const auto& [name, state] : TracedRates()) {
      groups.push_back({name, {}});
      if (!state.defined()) continue;
      const absl::StatusOr<Tensor> value = state.Value();
      if (!value.ok()) return value.status();
      const absl::StatusOr<double> rate = value->TryItem<double>();
      if (!rate.ok()) return rate.status();
      groups.back().learning_rate = *rate;
    }
    return groups;
  }

  absl::Status SetLearningRate(std::size_t group, double learning_rate) override {
    std::size_t before = 0;
    for (nn::Optimizer* optimizer : model_.impl_->cells.optimizers()) {
      if (group < before + optimizer->num_groups()) return optimizer->SetLearningRate(group - before, learning_rate);
      before += optimizer->num_groups();
    }
    const NamedRates traced = TracedRates();
    if (group >= before + traced.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("no group ", group, " of learning rates, there are ", before + traced.size()));
    }
    auto [name, state] = traced[group - before];
    if (!state.defined()) return absl::FailedPreconditionError("a schedule computes the learning rate of " + name);
    const nn::LearningRate rate(learning_rate);
    if (!rate.status().ok()) return rate.status();
    return state.SetData(Tensor::Scalar(static_cast<float>(learning_rate)));
  }

  absl::Status Resume(const std::string& path, RunContext& context) override {
    Impl& self = *model_.impl_;
    if (!self.phase.may_resume()) {
      return absl::FailedPreconditionError(absl::StrCat(path, " is resumed from in OnTrainBegin only"));
    }
    const internal::SetForAWhile resuming = self.phase.Resume();
    absl::StatusOr<ResumeReport> report = model_.LoadCheckpoint(path);
    if (!report.ok()) return report.status();
    if (absl::Status begun =
            self.position.Begin(context.epochs, dataset_.class_names(), steps_per_epoch_, self.remarks);
        !begun.ok())
      return begun;
    self.callback_states.BeginRun();
    context.global_step = self.position.global_step();
    context.epoch = self.position.in_run().run_epoch;
    self.scalers.TellScaling(context);
    return absl::OkStatus();
  }

 private:
  using NamedRates = internal::LearnedStep::NamedRates;
  /// The rates of a step that does not name its optimizers.
  NamedRates TracedRates() const {
    return model_.impl_->cells.optimizers().empty() ? model_.impl_->learned.rates() : NamedRates();
  }

  Model& model_;
  data::Dataset dataset_;
  std::int64_t steps_per_epoch_;
};

std::unique_ptr<TrainedModel> Model::Impl::MakeTrained(Model& model, const data::Dataset& dataset,
                                                       std::int64_t steps_per_epoch) {
  return std::make_unique<Trained>(model, dataset, steps_per_epoch);
}

}  // namespace mpc
