// Replays of a Model's training step that measure its values and change nothing.
#include <algorithm>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "frontend/inspect/overflow_diagnosis.h"
#include "frontend/train/model_impl.h"

namespace mpc {
namespace {

/// Gives a state entry another value for a while.
class Temporarily {
 public:
  Temporarily(Parameter entry, const Tensor& value) : entry_(std::move(entry)) {
    absl::StatusOr<Tensor> now = entry_.Value();
    status_ = now.status();
    if (!status_.ok()) return;
    now_ = *std::move(now);
    status_ = entry_.SetData(value);
  }
  ~Temporarily() {
    if (now_.defined()) entry_.SetData(now_).IgnoreError();
  }
  Temporarily(const Temporarily&) = delete;
  Temporarily& operator=(const Temporarily&) = delete;
  const absl::Status& status() const { return status_; }

 private:
  Parameter entry_;
  Tensor now_;
  absl::Status status_;
};

bool HasBadValue(const std::vector<ValueStatistics>& values) {
  return std::any_of(values.begin(), values.end(), [](const ValueStatistics& value) { return value.not_finite() > 0; });
}

}  // namespace

using internal::CompiledStep;
using internal::StepOptions;

absl::StatusOr<std::vector<ValueStatistics>> Model::Measure(const std::vector<Tensor>& columns,
                                                            const MeasureOptions& options) {
  const std::scoped_lock lock(impl_->mutex);
  if (!impl_->status.ok()) return impl_->status;
  if (impl_->cells.step() == nullptr) return absl::FailedPreconditionError("Measure needs a Model that trains");
  return impl_->Measure(columns, options);
}

absl::StatusOr<std::vector<ValueStatistics>> Model::Impl::Measure(const std::vector<Tensor>& columns,
                                                                  const MeasureOptions& measure) {
  cells.step()->SetTrain(true);
  StepOptions options = TrainOptions({});
  options.compile.instrument = true;
  // A process measures what it computes of its own rows. The others may not measure.
  options.compile.processes = 1;
  if (updates.have_own_program()) options.compile.accumulation_steps = 1;
  options.load.communicator = nullptr;
  if (measure.full_precision) {
    options.compile.level = "O0";
    options.compile.keep_batchnorm_fp32.clear();
  }
  absl::StatusOr<StepOptions> precise = WithPrecision(options);
  if (!precise.ok()) return precise.status();
  const std::string key = internal::ProgramCache::KeyOf(cells.step(), columns, *precise, decision);
  CompiledStep* program = programs.FindMeasuring(key);
  if (program == nullptr) {
    programs.ForgetReplaced();
    absl::StatusOr<std::unique_ptr<CompiledStep>> fresh =
        internal::CompileStep(cells.step(), cells.StepFunction(), internal::SpecsOf(columns), *precise);
    if (!fresh.ok()) return fresh.status();
    program = &programs.KeepMeasuring(key, *std::move(fresh));
  }
  if (absl::Status status = program->Run(columns); !status.ok()) return status;
  return internal::ReadStatistics(program->executable());
}

absl::StatusOr<std::vector<ValueStatistics>> Model::Impl::MeasureBatch(const LossScaler& scaler, double scale,
                                                                       const MicroBatch& batch) {
  const Temporarily earlier_scale(scaler.state().front(), Tensor::Scalar(static_cast<float>(scale)));
  if (!earlier_scale.status().ok()) return earlier_scale.status();
  // A skipped update has put the generator back to where its first batch began, and each batch moves it by one.
  const absl::StatusOr<Tensor> draws = rng.step.Value();
  if (!draws.ok()) return draws.status();
  const std::int64_t moved = scaler.config().skip ? batch.number : 0;
  const Temporarily later_draws(rng.step,
                                Tensor::Scalar(static_cast<std::int32_t>(draws->Item<std::int64_t>() + moved)));
  if (!later_draws.status().ok()) return later_draws.status();
  return Measure(batch.columns, {});
}

std::string Model::Impl::DiagnoseBatches(const LossScaler& scaler, double scale,
                                         const std::vector<MicroBatch>& batches) {
  const std::int64_t count = options.accumulation_steps;
  std::string text;
  if (static_cast<std::int64_t>(batches.size()) < count) {
    text = absl::StrCat("replayed: the last ", batches.size(), " of ", count,
                        " batches of the step; those before them were not kept\n");
  }
  for (const MicroBatch& batch : batches) {
    const absl::StatusOr<std::vector<ValueStatistics>> values = MeasureBatch(scaler, scale, batch);
    if (!values.ok()) return absl::StrCat(text, "diagnosis failed: ", values.status().message(), "\n");
    const bool is_bad = HasBadValue(*values);
    if (!is_bad && &batch != &batches.back()) continue;
    if (count > 1 && is_bad) {
      absl::StrAppend(&text, "batch ", batch.number + 1, " of ", count, " of the step is the first bad one\n");
    } else if (count > 1) {
      absl::StrAppend(&text, "no batch that was replayed is bad; of the last one:\n");
    }
    std::string found = mpc::DiagnoseOverflow(*values, scale);
    if (!is_bad && processes.size() > 1) {
      // Its first line speaks of all rows of the step.
      found = absl::StrCat("every value of the rows of rank ", processes.rank(), " is finite at loss scale ", scale,
                           ": those of another rank are not, or the gradients overflow when they are added or divided ",
                           "by it\n", found.substr(found.find('\n') + 1));
    }
    return text + found;
  }
  return text;
}

absl::Status Model::Impl::DiagnoseOverflow(const internal::StepResults& results, const std::vector<MicroBatch>& batches,
                                           absl::Status failure) {
  std::string text;
  for (const internal::ActiveScalers::Scaling& scaling : scalers.Of(results)) {
    if (results.Record("finite" + scaling.suffix) != 0) continue;
    const double scale = results.Record("loss_scale" + scaling.suffix).value_or(scaling.scaler->scale());
    text = DiagnoseBatches(*scaling.scaler, scale, batches);
    break;
  }
  if (failure.ok()) {
    std::cerr << text;
    return failure;
  }
  return absl::Status(failure.code(), absl::StrCat(failure.message(), "\n", text));
}

}  // namespace mpc
