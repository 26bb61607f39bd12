#include "frontend/amp/initialize.h"

#include <atomic>
#include <mutex>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/amp/scaled_backward.h"
#include "frontend/graph/amp_session.h"
#include "frontend/graph/context.h"
#include "frontend/graph/tensor_node.h"
#include "frontend/state/checkpoint.h"

namespace mpc::amp {
namespace {

using internal::Session;
using internal::Trace;

/// The session of the last call of Initialize, which StateDict reports.
struct LastSession {
  std::mutex mutex;
  std::shared_ptr<Session> session;
};

LastSession& Last() {
  static LastSession* last = new LastSession;
  return *last;
}

absl::StatusOr<std::shared_ptr<Session>> CurrentSession() {
  const std::lock_guard<std::mutex> lock(Last().mutex);
  if (Last().session == nullptr) return absl::FailedPreconditionError("amp::Initialize has not been called");
  return Last().session;
}

std::string ScalerName(std::size_t index) { return absl::StrCat("loss_scaler", index); }

/// The session of an optimizer in a running step; null, and an error of the trace, without one.
const Session* SessionOf(Trace& trace, const OptimizerList& optimizers) {
  const Session* session = nullptr;
  for (const nn::Optimizer* optimizer : optimizers.get()) {
    const Session* own = optimizer->amp_session().get();
    if (own == nullptr) {
      trace.Fail(absl::StrCat("amp::ScaleLoss: ", optimizer->TypeName(), " was not given to amp::Initialize"));
      return nullptr;
    }
    if (session != nullptr && own != session) {
      trace.Fail("amp::ScaleLoss: its optimizers come from different calls of amp::Initialize");
      return nullptr;
    }
    session = own;
  }
  if (session == nullptr) trace.Fail("amp::ScaleLoss needs the optimizers that receive the loss's gradients");
  return session;
}

/// "optimizer2.step" without the optimizer's place in its step: "step".
std::string WithoutPlace(const std::string& name) { return name.substr(name.find('.') + 1); }

/// Errors: two entries have one name, so that no dictionary can hold both.
absl::Status CheckNamesDiffer(const char* function, const std::vector<Parameter>& entries) {
  std::set<std::string> names;
  for (const Parameter& entry : entries) {
    if (names.insert(entry.name()).second) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(function, ": two entries are named '", entry.name(), "', because their parameters were named by ",
                     "the paths of different Cells; name them by those of one network: give it to amp::Initialize, ",
                     "call its TrainableParams(), or run a step"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, Tensor>> ValuesOf(const std::vector<Parameter>& entries) {
  if (absl::Status status = CheckNamesDiffer("amp::StateDict", entries); !status.ok()) return status;
  std::map<std::string, Tensor> values;
  for (const Parameter& entry : entries) {
    absl::StatusOr<Tensor> value = entry.Value();
    if (!value.ok()) return value.status();
    values[entry.name()] = IsLowPrecision(value->dtype()) ? value->To(DType::kF32) : *value;
  }
  return values;
}

}  // namespace

absl::Status Initialize(const CellList& models, const OptimizerList& optimizers, const Options& options) {
  absl::StatusOr<Precision> precision = ResolveOptions(options, Front::kInitialize);
  if (!precision.ok()) return precision.status();
  for (const nn::Optimizer* optimizer : optimizers.get()) {
    if (!optimizer->status().ok()) return optimizer->status();
  }
  auto session = std::make_shared<Session>();
  static std::atomic<std::uint64_t> calls{0};
  session->id = ++calls;
  session->given = options;
  session->precision = *precision;
  for (std::int64_t loss = 0; loss < precision->num_losses; ++loss) {
    session->scalers.push_back(std::make_shared<LossScaler>(precision->loss_scale));
  }
  for (nn::Cell* model : models.get()) {
    model->set_amp_session(session);
    // The state of optimizers is named after the parameters, and these by where they were asked for last.
    model->ParametersAndNames();
  }
  for (nn::Optimizer* optimizer : optimizers.get()) optimizer->set_amp_session(session);
  mpc::internal::StructureChanged();
  Announce(options, *precision, Front::kInitialize);
  const std::lock_guard<std::mutex> lock(Last().mutex);
  Last().session = session;
  return absl::OkStatus();
}

absl::Status Initialize(const CellList& models, const Options& options) { return Initialize(models, {}, options); }

Tensor ScaleLoss(const Tensor& loss, const OptimizerList& optimizers, const ScaleLossOptions& options) {
  absl::Status misuse;
  Trace* trace = internal::TrainingTrace("amp::ScaleLoss", &misuse);
  if (trace == nullptr) {
    Trace* failed = Trace::Current();
    return failed != nullptr ? failed->Poison(loss.shape()) : mpc::internal::MakeInvalid(misuse);
  }
  const Session* session = SessionOf(*trace, optimizers);
  if (session == nullptr) return trace->Poison(loss.shape());
  if (options.loss_id < 0 || options.loss_id >= static_cast<std::int64_t>(session->scalers.size())) {
    trace->Fail(absl::StrCat("amp::ScaleLoss: loss_id ", options.loss_id, " is not in [0, num_losses), num_losses is ",
                             session->scalers.size()));
    return trace->Poison(loss.shape());
  }
  internal::StepScaling& scaling = internal::StepScaling::InTrace(*trace);
  internal::StepScaler& scaler = scaling.ScalerOf(session->scalers[static_cast<std::size_t>(options.loss_id)]);
  const Tensor scaled = scaling.Scale(scaler, loss);
  if (trace->failed() || !scaler.active()) return scaled;
  trace->locals().Get<internal::ScaledBackward>().Add({scaled,
                                                       scaler.losses().back(),
                                                       &scaler,
                                                       {optimizers.get().begin(), optimizers.get().end()},
                                                       options.delay_unscale,
                                                       Tensor()});
  return scaled;
}

std::vector<Parameter> MasterParams(const nn::Optimizer& optimizer) { return optimizer.parameters(); }

absl::StatusOr<std::map<std::string, ScalerState>> StateDict() {
  absl::StatusOr<std::shared_ptr<Session>> session = CurrentSession();
  if (!session.ok()) return session.status();
  std::map<std::string, ScalerState> state;
  if (!(*session)->given.enabled) return state;
  for (std::size_t i = 0; i < (*session)->scalers.size(); ++i) {
    const LossScaler& scaler = *(*session)->scalers[i];
    state[ScalerName(i)] = {{"loss_scale", scaler.scale()}, {"unskipped", static_cast<double>(scaler.good_steps())}};
  }
  return state;
}

absl::Status LoadStateDict(const std::map<std::string, ScalerState>& state) {
  absl::StatusOr<std::shared_ptr<Session>> session = CurrentSession();
  if (!session.ok()) return session.status();
  const auto& scalers = (*session)->scalers;
  if (!(*session)->given.enabled) return absl::OkStatus();
  std::vector<std::string> wrong;
  std::map<std::string, ScalerState> left = state;
  for (std::size_t i = 0; i < scalers.size(); ++i) {
    const auto found = state.find(ScalerName(i));
    if (found == state.end()) {
      wrong.push_back(absl::StrCat(ScalerName(i), " is missing"));
      continue;
    }
    left.erase(found->first);
    for (const char* key : {"loss_scale", "unskipped"}) {
      if (found->second.count(key) == 0) wrong.push_back(absl::StrCat(found->first, " lacks '", key, "'"));
    }
    for (const auto& [key, value] : found->second) {
      if (key != "loss_scale" && key != "unskipped") wrong.push_back(absl::StrCat(found->first, " has '", key, "'"));
      if (key == "loss_scale" && !LossScaler::CheckScale(value).ok()) {
        wrong.push_back(absl::StrCat(found->first, ".loss_scale = ", value));
      }
      if (key == "unskipped" && !LossScaler::IsCount(value)) {
        wrong.push_back(absl::StrCat(found->first, ".unskipped = ", value));
      }
    }
  }
  for (const auto& [name, scaler] : left) wrong.push_back(absl::StrCat("'", name, "' is unknown"));
  if (!wrong.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("amp::LoadStateDict: ", absl::StrJoin(wrong, ", ")));
  }
  for (std::size_t i = 0; i < scalers.size(); ++i) {
    const ScalerState& given = state.at(ScalerName(i));
    if (absl::Status status = scalers[i]->SetScale(given.at("loss_scale")); !status.ok()) return status;
    const auto unskipped = static_cast<std::int64_t>(given.at("unskipped"));
    if (absl::Status status = scalers[i]->SetCounters(unskipped, 0); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, Tensor>> StateDict(nn::Cell& cell) {
  std::vector<Parameter> entries;
  for (const auto& [name, parameter] : cell.ParametersAndNames()) entries.push_back(parameter);
  return ValuesOf(entries);
}

absl::StatusOr<std::map<std::string, Tensor>> StateDict(nn::Optimizer& optimizer) {
  return ValuesOf(optimizer.State());
}

absl::Status LoadStateDict(nn::Cell& cell, const std::map<std::string, Tensor>& state) {
  return LoadParamIntoNet(cell, state).status();
}

absl::Status LoadStateDict(nn::Optimizer& optimizer, const std::map<std::string, Tensor>& state) {
  std::map<std::string, const Tensor*> left;
  for (const auto& [name, value] : state) left[WithoutPlace(name)] = &value;
  std::vector<std::string> wrong;
  std::vector<std::pair<Parameter, Tensor>> assignments;
  const std::vector<Parameter> entries = optimizer.State();
  if (absl::Status status = CheckNamesDiffer("amp::LoadStateDict", entries); !status.ok()) return status;
  for (const Parameter& entry : entries) {
    const auto found = left.find(WithoutPlace(entry.name()));
    if (found == left.end()) {
      wrong.push_back(absl::StrCat("'", entry.name(), "' is missing"));
      continue;
    }
    const Tensor& value = *found->second;
    const bool concrete = value.defined() && value.status().ok() && value.concrete();
    if (!concrete || value.spec() != entry.entry()->spec()) {
      wrong.push_back(absl::StrCat("'", entry.name(), "' is ",
                                   concrete ? value.spec().ToString() : "no concrete tensor", ", not ",
                                   entry.entry()->spec().ToString()));
    }
    assignments.emplace_back(entry, value);
    left.erase(found);
  }
  for (const auto& [name, value] : left) wrong.push_back(absl::StrCat("'", name, "' is unknown"));
  if (!wrong.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("amp::LoadStateDict: the state does not fit ", optimizer.TypeName(),
                                                   ": ", absl::StrJoin(wrong, ", "), "; nothing was loaded"));
  }
  for (auto& [entry, value] : assignments) {
    if (absl::Status status = entry.SetData(value); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace mpc::amp
