#include "frontend/train/gradient_probe.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "frontend/graph/emit.h"
#include "frontend/graph/gradient_ops.h"
#include "kernels/scalar/philox.h"

namespace mpc {

using internal::CompiledStep;
using internal::StepOptions;

namespace {

using ParameterValues = std::vector<std::pair<Parameter, Tensor>>;

/// A dynamic loss scale of 2^24 is below 1 after so many steps that were skipped.
constexpr int kMostSkips = 25;

absl::StatusOr<ParameterValues> CopyState(const std::vector<Parameter>& state) {
  ParameterValues values;
  for (const Parameter& parameter : state) {
    absl::StatusOr<Tensor> value = parameter.Value();
    if (!value.ok()) return value.status();
    values.emplace_back(parameter, *std::move(value));
  }
  return values;
}

absl::Status SetState(ParameterValues& values) {
  for (auto& [parameter, value] : values) {
    if (absl::Status status = parameter.SetData(value); !status.ok()) return status;
  }
  return absl::OkStatus();
}

/// The median of `steps` runs, after those that a dynamic loss scale skips.
absl::StatusOr<double> MedianSeconds(CompiledStep& step, const data::Row& batch, std::int64_t steps) {
  for (int skipped = 0; skipped < kMostSkips; ++skipped) {
    if (absl::Status status = step.Run(batch); !status.ok()) return status;
    if (step.Record("finite").value_or(1) != 0) break;
  }
  std::vector<double> seconds;
  for (std::int64_t i = 0; i < steps; ++i) {
    const auto start = std::chrono::steady_clock::now();
    if (absl::Status status = step.Run(batch); !status.ok()) return status;
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + steps / 2, seconds.end());
  return seconds[static_cast<std::size_t>(steps / 2)];
}

}  // namespace

bool Model::Impl::GradientProbe::LossAndGradients::IsFinite() const {
  return std::isfinite(loss) &&
         std::all_of(gradients.begin(), gradients.end(), [](float element) { return std::isfinite(element); });
}

Model::Impl::GradientProbe::GradientProbe(Model::Impl& model, const nn::TrainOneStepCell& step)
    : model_(model), network_(step.trained_network()), weights_(step.trained_by().parameters()) {}

absl::StatusOr<Model::Impl::GradientProbe> Model::Impl::GradientProbe::Create(
    Model::Impl& model, const std::optional<compiler::DeviceRates>& rates) {
  const auto* step = model.cells.own_step() != nullptr
                         ? model.cells.own_step()
                         : dynamic_cast<const nn::TrainOneStepCell*>(model.cells.user_step());
  if (step == nullptr || model.precision.num_losses != 1) {
    return absl::UnimplementedError(
        "a frontier of precision is of one network with one loss: give Model network, loss and optimizer, or a "
        "TrainOneStepCell; this step is of your own");
  }
  GradientProbe probe(model, *step);
  model.cells.step()->SetTrain(true);
  StepOptions training = model.TrainOptions({});
  training.pass_state = nullptr;
  training.load.steps_per_launch = 1;
  training.load.communicator = nullptr;
  training.compile.processes = 1;
  training.compile.accumulation_steps = 1;
  training.compile.master_weights = true;
  training.compile.dtype = std::string(DTypeName(model.precision.dtype));
  // Rates that were given take the place of measuring.
  absl::StatusOr<StepOptions> precise = rates.has_value() ? training : model.WithPrecision(training);
  if (!precise.ok()) return precise.status();
  if (rates.has_value()) precise->compile.rates = *rates;
  precise->compile.assignment.clear();
  precise->compile.function = precise->name;
  probe.training_ = *precise;
  probe.options_ = *std::move(precise);
  probe.options_.optimizers.clear();
  probe.options_.scaler.clear();
  probe.options_.records.clear();
  probe.options_.output_names.clear();
  probe.options_.divided_scale.reset();
  probe.options_.compile.loss_scale = "none";
  return probe;
}

absl::StatusOr<compiler::Module> Model::Impl::GradientProbe::Trace(const data::Row& batch) {
  return internal::TraceStep(model_.cells.step(), Function(1), internal::SpecsOf(batch), options_, nullptr);
}

StepOptions Model::Impl::GradientProbe::ExactOptions() const {
  StepOptions options = options_;
  options.compile.level = "O0";
  options.compile.dtype = "f16";
  for (auto* list : {&options.compile.allow, &options.compile.deny, &options.compile.infer, &options.compile.clear})
    list->clear();
  return options;
}

absl::Status Model::Impl::GradientProbe::CompileExact(const data::Row& batch) {
  if (absl::Status status = Compile(batch, ExactOptions(), 1); !status.ok()) return status;
  // What is written back below is no new value: see PassState::KeepWritten. What was written before is one.
  if (absl::Status kept = model_.pass_state->KeepWritten(1); !kept.ok()) return kept;
  // Initial values have been drawn by now.
  absl::StatusOr<ParameterValues> values = CopyState(State());
  if (!values.ok()) return values.status();
  kept_ = *std::move(values);
  return absl::OkStatus();
}

absl::Status Model::Impl::GradientProbe::CompileWith(const data::Row& batch, const compiler::PrecisionMap& slots,
                                                     double seed, bool fused) {
  StepOptions options = options_;
  options.compile.assignment = slots;
  if (!fused) options.compile.fusion = false;
  return Compile(batch, options, seed);
}

absl::StatusOr<SlotProbes> Model::Impl::GradientProbe::CompileProbes(const data::Row& batch,
                                                                     const std::vector<std::string>& slots) {
  SlotProbes probes;
  StepOptions options = ExactOptions();
  options.compile.fusion = false;
  options.edit = [&](compiler::Module& traced) { probes = compiler::ProbePrecisionSlots(traced, slots); };
  if (absl::Status status = Compile(batch, options, 1); !status.ok()) return status;
  return probes;
}

absl::StatusOr<Model::Impl::GradientProbe::LossAndGradients> Model::Impl::GradientProbe::Run(const data::Row& batch) {
  if (absl::Status status = Restore(); !status.ok()) return status;
  if (absl::Status status = step_run_->Run(batch); !status.ok()) return status;
  LossAndGradients result;
  const absl::StatusOr<double> loss = step_run_->Output(0).TryItem<double>();
  if (!loss.ok()) return loss.status();
  result.loss = *loss;
  for (std::size_t i = 1; i < step_run_->num_outputs(); ++i) {
    const Tensor gradient = step_run_->Output(i);
    if (!gradient.status().ok()) return gradient.status();
    for (const float element : gradient.data<float>()) result.gradients.push_back(static_cast<float>(element / seed_));
  }
  return result;
}

absl::Status Model::Impl::GradientProbe::RunMoved(const data::Row& batch, const Move& move) {
  if (absl::Status status = Restore(); !status.ok()) return status;
  std::uint32_t number = 0;
  for (Parameter& parameter : weights_) {
    absl::StatusOr<Tensor> value = parameter.Value();
    if (!value.ok()) return value.status();
    std::vector<float> moved = value->ToFloats();
    std::array<std::uint32_t, 4> words = {};  // a bit for each of 128 elements
    for (std::size_t i = 0; i < moved.size(); ++i) {
      if (i % 128 == 0) words = PhiloxBlock(move.seed, 0, number, i / 128);
      const bool ahead = (words[i / 32 % 4] >> i % 32 & 1U) != 0;
      moved[i] = static_cast<float>(moved[i] + (ahead ? move.distance : -move.distance));
    }
    if (absl::Status status = parameter.SetData(Tensor::From(moved, parameter.shape())); !status.ok()) return status;
    ++number;
  }
  return step_run_->Run(batch);
}

Tensor Model::Impl::GradientProbe::ProbeOutput(std::int64_t place) const {
  return step_run_->Output(step_run_->num_outputs() + static_cast<std::size_t>(place));
}

absl::StatusOr<double> Model::Impl::GradientProbe::TimeTraining(const data::Row& batch,
                                                                const compiler::PrecisionMap& slots,
                                                                std::int64_t steps) {
  if (absl::Status status = Restore(); !status.ok()) return status;
  StepOptions options = training_;
  options.compile.assignment = slots;
  const absl::StatusOr<std::unique_ptr<CompiledStep>> fresh =
      internal::CompileStep(model_.cells.step(), model_.cells.StepFunction(), internal::SpecsOf(batch), options);
  if (!fresh.ok()) return fresh.status();
  CompiledStep& training = **fresh;
  absl::StatusOr<ParameterValues> before = CopyState(training.state());
  if (!before.ok()) return before.status();
  const absl::StatusOr<double> seconds = MedianSeconds(training, batch, steps);
  if (absl::Status status = SetState(*before); !status.ok()) return status;
  model_.pass_state->NoteVersions();
  return seconds;
}

double Model::Impl::GradientProbe::ParameterSize() const {
  double squares = 0, count = 0;
  for (const auto& [parameter, value] : kept_) {
    if (std::find(weights_.begin(), weights_.end(), parameter) == weights_.end()) continue;
    for (const float element : value.ToFloats()) squares += static_cast<double>(element) * element;
    count += static_cast<double>(value.size());
  }
  return count > 0 ? std::sqrt(squares / count) : 0;
}

absl::Status Model::Impl::GradientProbe::Restore() {
  absl::Status restored = SetState(kept_);
  model_.pass_state->NoteVersions();
  return restored;
}

std::vector<Parameter> Model::Impl::GradientProbe::State() const {
  std::vector<Parameter> state{model_.rng.step};
  for (const auto& [name, parameter] : model_.cells.root()->ParametersAndNames()) state.push_back(parameter);
  return state;
}

internal::TensorFunction Model::Impl::GradientProbe::Function(double seed) const {
  return [this, seed](const std::vector<Tensor>& columns) {
    const Tensor cotangent = seed == 1.0 ? Tensor() : ops::Fill(DType::kF32, {}, seed);
    ops::ValueAndGradResult result = ops::ValueAndGrad(network_, weights_, columns, cotangent);
    std::vector<Tensor> outputs{result.value};
    outputs.insert(outputs.end(), result.gradients.begin(), result.gradients.end());
    return outputs;
  };
}

absl::Status Model::Impl::GradientProbe::Compile(const data::Row& batch, const StepOptions& options, double seed) {
  absl::StatusOr<std::unique_ptr<CompiledStep>> fresh =
      internal::CompileStep(model_.cells.step(), Function(seed), internal::SpecsOf(batch), options);
  if (!fresh.ok()) return fresh.status();
  step_run_ = *std::move(fresh);
  seed_ = seed;
  return absl::OkStatus();
}

}  // namespace mpc
