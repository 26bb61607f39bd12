// Replays of a Model's training step that measure its values and change nothing.
#include <iostream>

#include "absl/strings/str_cat.h"
#include "frontend/inspect/overflow_diagnosis.h"
#include "frontend/train/model_impl.h"

namespace mpc {
namespace {

/// Gives a scaler an earlier scale for a while.
class EarlierScale {
 public:
  EarlierScale(const LossScaler& scaler, double scale)
      : parameter_(scaler.state().front()), now_(static_cast<float>(scaler.scale())) {
    status_ = parameter_.SetData(Tensor::Scalar(static_cast<float>(scale)));
  }
  ~EarlierScale() { parameter_.SetData(Tensor::Scalar(now_)).IgnoreError(); }
  EarlierScale(const EarlierScale&) = delete;
  EarlierScale& operator=(const EarlierScale&) = delete;
  const absl::Status& status() const { return status_; }

 private:
  Parameter parameter_;
  float now_;
  absl::Status status_;
};

}  // namespace

using internal::CompiledStep;
using internal::StepOptions;

absl::StatusOr<std::vector<ValueStatistics>> Model::Measure(const std::vector<Tensor>& columns,
                                                            const MeasureOptions& options) {
  if (!impl_->status.ok()) return impl_->status;
  if (!impl_->step.defined()) return absl::FailedPreconditionError("Measure needs a Model that trains");
  return impl_->Measure(columns, options);
}

absl::StatusOr<std::vector<ValueStatistics>> Model::Impl::Measure(const std::vector<Tensor>& columns,
                                                                  const MeasureOptions& measure) {
  step.cell()->SetTrain(true);
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
  // As for other Programs, the assignment of O1 and auto is part of the key.
  const std::string key = absl::StrCat(internal::StepKey(step.cell(), columns, *precise), "|", assignment_version);
  auto known = measuring.find(key);
  if (known == measuring.end() || !known->second->facts().PartsAreThere()) {
    ForgetReplaced();
    absl::StatusOr<std::unique_ptr<CompiledStep>> fresh = internal::CompileStep(
        step.cell(), [this](const std::vector<Tensor>& symbolic) { return step.Flat(symbolic); },
        internal::SpecsOf(columns), *precise);
    if (!fresh.ok()) return fresh.status();
    known = measuring.insert_or_assign(key, *std::move(fresh)).first;
  }
  CompiledStep& program = *known->second;
  if (absl::Status status = program.Run(columns); !status.ok()) return status;
  return internal::ReadStatistics(program.executable());
}

absl::Status Model::Impl::DiagnoseOverflow(const internal::StepResults& results, const std::vector<Tensor>& columns,
                                           absl::Status failure) {
  std::string text;
  for (const Scaling& scaling : ScalingOf(results)) {
    if (results.Record("finite" + scaling.suffix) != 0) continue;
    const double scale = results.Record("loss_scale" + scaling.suffix).value_or(scaling.scaler->scale());
    const EarlierScale earlier(*scaling.scaler, scale);
    absl::StatusOr<std::vector<ValueStatistics>> values =
        earlier.status().ok() ? Measure(columns, {}) : absl::StatusOr<std::vector<ValueStatistics>>(earlier.status());
    absl::StrAppend(&text, values.ok() ? mpc::DiagnoseOverflow(*values, scale)
                                       : absl::StrCat("diagnosis failed: ", values.status().message(), "\n"));
    break;
  }
  if (failure.ok()) {
    std::cerr << text;
    return failure;
  }
  return absl::Status(failure.code(), absl::StrCat(failure.message(), "\n", text));
}

}  // namespace mpc
