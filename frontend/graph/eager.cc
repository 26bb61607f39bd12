#include "frontend/graph/eager.h"

#include <mutex>

#include "absl/strings/str_cat.h"
#include "frontend/distributed/auto_parallel_context.h"
#include "frontend/distributed/distributed.h"
#include "frontend/graph/amp_session.h"
#include "frontend/graph/cell.h"
#include "frontend/graph/compiled_step.h"
#include "frontend/graph/context.h"
#include "frontend/graph/kept_steps.h"
#include "frontend/graph/step_key.h"
#include "frontend/graph/tensor_node.h"
#include "kernels/communicator.h"

namespace mpc {
namespace internal {

namespace {

absl::Status CheckConcrete(const std::vector<Tensor>& inputs) {
  if (absl::Status status = CheckNoUntracedScope(); !status.ok()) return status;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) return absl::InvalidArgumentError(absl::StrCat("input ", i, " is an undefined tensor"));
    if (!inputs[i].status().ok()) return inputs[i].status();
    if (!inputs[i].concrete()) {
      return absl::FailedPreconditionError(absl::StrCat("input ", i, " is a symbolic tensor, and its trace has ended"));
    }
  }
  return absl::OkStatus();
}

/// Runs `cell` with the other processes of the group, if there is one.
void UseGroup(const nn::Cell& cell, StepOptions& options) {
  const AutoParallelOptions& parallel = GetAutoParallelContext();
  const bool trains = parallel.parallel_mode == ParallelMode::kDataParallel && cell.is_training_step();
  std::shared_ptr<Communicator>& group = options.load.communicator;
  group = trains ? distributed::internal::GetTrainingCommunicator() : distributed::internal::GetCommunicator();
  if (trains) ShareGradients(parallel, group == nullptr ? 1 : group->size(), options);
}

std::vector<Tensor> OutputsOf(const CompiledStep& step) {
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < step.num_outputs(); ++i) outputs.push_back(step.Output(i));
  return outputs;
}

}  // namespace

std::vector<Tensor> RunOperation(std::string_view op, const std::vector<Tensor>& operands, const Attributes& attributes,
                                 std::optional<DType> result_dtype) {
  absl::Status status = CheckConcrete(operands);
  if (status.ok()) {
    StepOptions options;
    options.load.communicator = distributed::internal::GetCommunicator();
    auto function = [&](const std::vector<Tensor>& inputs) {
      return Trace::Current()->Emit(op, inputs, attributes, result_dtype);
    };
    absl::StatusOr<std::unique_ptr<CompiledStep>> step = CompileStep(nullptr, function, SpecsOf(operands), options);
    status = step.ok() ? (*step)->Run(operands) : step.status();
    if (status.ok()) return OutputsOf(**step);
  }
  return std::vector<Tensor>(4, MakeInvalid(status));
}

}  // namespace internal

namespace nn::internal {
namespace {

using mpc::internal::CompiledStep;

/// Programs of directly called Cells. They live as long as their Cell.
struct EagerPrograms {
  mpc::internal::RngState rng = mpc::internal::MakeRngState(GetSeed());
  std::shared_ptr<mpc::internal::PassState> pass_state = std::make_shared<mpc::internal::PassState>();
  mpc::internal::KeptSteps steps;
  std::weak_ptr<Communicator> group;  ///< that `steps` were compiled for
};

/// Leaves the Programs of an earlier group, and so that group.
void ForgetOtherGroups(const std::shared_ptr<Communicator>& group, EagerPrograms& programs) {
  if (programs.group.lock() == group) return;
  programs.steps.Clear();
  programs.group = group;
}

}  // namespace

std::vector<Tensor> RunEagerly(Cell& cell, const mpc::internal::TensorFunction& function,
                               const std::vector<Tensor>& inputs) {
  absl::Status status = mpc::internal::CheckConcrete(inputs);
  if (status.ok()) {
    std::shared_ptr<void>& kept = cell.eager_programs_;
    if (kept == nullptr) kept = std::make_shared<EagerPrograms>();
    auto& programs = *static_cast<EagerPrograms*>(kept.get());
    mpc::internal::StepOptions options;
    options.training = cell.training() || cell.is_training_step();
    options.rng = programs.rng;
    options.pass_state = programs.pass_state;
    mpc::internal::UseDevice(GetContext().device, options);
    mpc::internal::UseGroup(cell, options);
    ForgetOtherGroups(options.load.communicator, programs);
    cell.ConfigureStep(options);
    status = amp::internal::ApplySession(cell, options);
    const std::string asked = mpc::internal::StepKey(&cell, inputs, options);
    CompiledStep* step = programs.steps.Find(asked);
    if (status.ok() && step == nullptr) {
      programs.steps.TakeReplaced();
      auto compiled = mpc::internal::CompileStep(&cell, function, mpc::internal::SpecsOf(inputs), options);
      status = compiled.status();
      // Parameters that are stored low from now on are part of the key.
      const std::string key = mpc::internal::StepKey(&cell, inputs, options);
      if (status.ok()) step = &programs.steps.Keep(asked, key, *std::move(compiled));
    }
    if (status.ok()) status = step->Run(inputs);
    if (status.ok()) return mpc::internal::OutputsOf(*step);
    programs.steps.Forget(step);
  }
  return {mpc::internal::MakeInvalid(status)};
}

}  // namespace nn::internal
}  // namespace mpc
