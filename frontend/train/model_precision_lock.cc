// The precision of a Model's step as a lock file holds it.
#include "absl/strings/str_cat.h"
#include "compiler/driver/lock_precision.h"
#include "compiler/report/precision_lock_file.h"
#include "compiler/report/precision_lock_text.h"
#include "frontend/train/model_impl.h"

namespace mpc {
namespace {

std::vector<TensorSpec> InputsOf(const runtime::Program& program) {
  std::vector<TensorSpec> specs;
  for (const runtime::NamedValue& input : program.inputs) {
    specs.push_back(program.values[static_cast<std::size_t>(input.value)].spec);
  }
  return specs;
}

/// The inputs on `wanted` samples in place of `samples`. Those of another first extent stay as they are.
std::vector<TensorSpec> OnSamples(std::vector<TensorSpec> inputs, std::int64_t samples, std::int64_t wanted) {
  for (TensorSpec& input : inputs) {
    if (!input.shape.empty() && input.shape.front() == samples) input.shape.front() = wanted;
  }
  return inputs;
}

}  // namespace

absl::StatusOr<compiler::PrecisionLock> Model::Impl::LockOf(const Model& model, const std::vector<TensorSpec>& inputs,
                                                            bool training,
                                                            const compiler::CompileOptions& compile) const {
  if (inputs.empty() || inputs.front().shape.empty()) {
    return absl::FailedPreconditionError("a precision lock needs a step whose first input has samples along axis 0");
  }
  const std::int64_t samples = inputs.front().shape.front();
  const auto trace = [&](std::int64_t wanted) -> absl::StatusOr<compiler::Module> {
    const std::vector<TensorSpec> specs = OnSamples(inputs, samples, wanted);
    absl::StatusOr<compiler::Module> traced = training ? model.TraceTrainStep(specs) : model.TracePredict(specs);
    if (traced.ok() || wanted == samples) return traced;
    return absl::FailedPreconditionError(
        absl::StrCat("a precision lock tells bytes a sample from others, and the step cannot be traced on ", wanted,
                     " samples: ", traced.status().message()));
  };
  const auto lock_on = [&](std::int64_t fewer) -> absl::StatusOr<compiler::PrecisionLock> {
    absl::StatusOr<compiler::Module> first = trace(fewer);
    if (!first.ok()) return first.status();
    absl::StatusOr<compiler::Module> second = trace(2 * fewer);
    if (!second.ok()) return second.status();
    return compiler::LockPrecision(cells.network()->TypeName(), {*std::move(first), fewer},
                                   {*std::move(second), 2 * fewer}, compile);
  };
  absl::StatusOr<compiler::PrecisionLock> lock = lock_on(samples);
  if (lock.ok() || samples != 1) return lock;
  // A sum over one sample is no operation. On more samples the step has all of its operations.
  absl::StatusOr<compiler::PrecisionLock> of_more = lock_on(2);
  return of_more.ok() ? of_more : lock;
}

absl::StatusOr<compiler::PrecisionLock> Model::Impl::LockOn(const Model& model, const data::Dataset& dataset) const {
  if (!status.ok()) return status;
  if (cells.step() == nullptr) return absl::FailedPreconditionError("this Model has no training step");
  absl::StatusOr<std::unique_ptr<data::DatasetIterator>> rows = dataset.NewIterator(0);
  if (!rows.ok()) return rows.status();
  data::Row batch;
  const absl::StatusOr<bool> found = (*rows)->Next(&batch);
  if (!found.ok()) return found.status();
  if (!*found) return absl::InvalidArgumentError("the data set has no batch, whose types a precision lock is made for");
  absl::StatusOr<internal::StepOptions> precise = WithPrecision(TrainOptions({}));
  if (!precise.ok()) return precise.status();
  precise->compile.function = precise->name;
  return LockOf(model, internal::SpecsOf(batch), /*training=*/true, precise->compile);
}

absl::StatusOr<std::string> Model::PrecisionLock() const {
  const std::scoped_lock turn(impl_->mutex);
  if (!impl_->status.ok()) return impl_->status;
  for (const char* name : {"train_step", "predict"}) {
    for (const compiler::CompileResult* result : impl_->programs.compiled()) {
      if (result->program.name != name) continue;
      // What decided: an assignment of an earlier run where there was one, and the rates at level auto.
      absl::StatusOr<compiler::PrecisionLock> lock = impl_->LockOf(
          *this, InputsOf(result->program), /*training=*/std::string_view(name) == "train_step", result->options);
      if (!lock.ok()) return lock.status();
      return compiler::PrintPrecisionLock(*lock);
    }
  }
  return absl::FailedPreconditionError(
      "a precision lock is made of a compiled step: train or predict first, or give PrecisionLock the data set");
}

absl::StatusOr<std::string> Model::PrecisionLock(const data::Dataset& dataset) const {
  const std::scoped_lock turn(impl_->mutex);
  absl::StatusOr<compiler::PrecisionLock> lock = impl_->LockOn(*this, dataset);
  if (!lock.ok()) return lock.status();
  return compiler::PrintPrecisionLock(*lock);
}

absl::Status Model::CheckPrecision(const std::string& path, const data::Dataset& dataset) const {
  const std::scoped_lock turn(impl_->mutex);
  absl::StatusOr<compiler::PrecisionLock> lock = impl_->LockOn(*this, dataset);
  return lock.ok() ? compiler::CheckPrecisionLock(path, *lock) : lock.status();
}

absl::Status Model::LockPrecision(const std::string& path, const data::Dataset& dataset, bool update) const {
  const std::scoped_lock turn(impl_->mutex);
  absl::StatusOr<compiler::PrecisionLock> lock = impl_->LockOn(*this, dataset);
  return lock.ok() ? compiler::WritePrecisionLock(path, *lock, update).status() : lock.status();
}

}  // namespace mpc
