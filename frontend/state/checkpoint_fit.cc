#include "frontend/state/checkpoint_fit.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/graph/pass_state.h"
#include "frontend/state/finite_conversion.h"
#include "runtime/scaler_field.h"

namespace mpc::internal {
namespace {

bool IsOptimizerState(std::optional<Role> role) {
  return role == Role::kSlot || role == Role::kStep || role == Role::kLearningRate;
}

/// Whether a difference is worth a word: a setting of the user's. Scalers that move and those that do not are another
/// scaler (CheckpointSetting::same_scaler).
bool IsComparedSetting(const std::string& entry) {
  const std::optional<ScalerField> field = ScalerFieldOf(entry);
  return field.has_value() && IsScalerSetting(*field) && *field != ScalerField::kDynamic;
}

/// Whether `accumulator` gathers the gradient of one of `parameters`, at any level.
bool GathersGradient(const std::string& accumulator, const std::set<std::string>& parameters) {
  if (parameters.contains(GatheredBy(accumulator, parameters))) return true;
  const std::string lowest = accumulator.substr(0, accumulator.rfind(".level"));
  return parameters.contains(GatheredBy(lowest, parameters));
}

class Fitter {
 public:
  Fitter(const Safetensors& content, const RoleMap& roles, const CheckpointSetting& setting)
      : roles_(roles), setting_(setting) {
    for (const auto& [name, tensor] : content.tensors) file_[name] = &tensor;
  }

  CheckpointFit Fit(absl::Span<const Parameter> state) {
    drops_ = !setting_.same_accumulation || LacksPartOfUpdate(state);
    bool here = false;
    bool there = false;
    for (const Parameter& entry : state) {
      FitEntry(entry);
      if (entry.entry()->role() == Role::kParameter && !entry.requires_grad()) frozen_.push_back(entry.name());
      if (!IsOptimizerState(entry.entry()->role())) continue;
      here = true;
      there = there || file_.contains(entry.name());
    }
    fit_.weights_only = here && !there;
    for (const auto& [name, tensor] : file_) {
      if (!seen_.contains(name)) FitRest(name, *tensor);
    }
    const bool slots_alone = missing_slots_ + unused_slots_ == fit_.problems.size();
    fit_.lacks_slots = slots_alone && missing_slots_ > 0;
    fit_.leaves_slots = slots_alone && unused_slots_ > 0;
    if (own_scaler_) fit_.differences.emplace_back("the loss scaler keeps its own state, not the file's");
    if (dropped_) fit_.differences.emplace_back("gradients that have been accumulated are dropped");
    if (idle_scaler_) fit_.differences.emplace_back("the file's loss scaler has no use here");
    return std::move(fit_);
  }

 private:
  /// Whether the file is from inside an update and lacks what the Model needs of one, but for gradients of Parameters.
  bool LacksPartOfUpdate(absl::Span<const Parameter> state) const {
    const auto micro_step = file_.find(kMicroStep);
    if (micro_step == file_.end()) return false;
    const absl::StatusOr<std::int64_t> number = micro_step->second->TryItem<std::int64_t>();
    if (number.ok() && *number == 0) return false;
    std::set<std::string> parameters;
    for (const Parameter& entry : state) {
      if (entry.entry()->role() == Role::kParameter) parameters.insert(entry.name());
    }
    return std::any_of(state.begin(), state.end(), [&](const Parameter& entry) {
      return entry.entry()->role() == Role::kAccumulator && !file_.contains(entry.name()) &&
             !GathersGradient(entry.name(), parameters) && KeptInFile(entry) == nullptr;
    });
  }

  /// The value in the file that `accumulator` keeps from before an update, if it keeps one. A file that lacks the
  /// accumulator is of a run that has not moved the value in its update.
  const Tensor* KeptInFile(const Parameter& accumulator) const {
    const auto value = file_.find(std::string(KeptBeforeUpdate(accumulator.name())));
    return value != file_.end() && value->second->spec() == accumulator.entry()->spec() ? value->second : nullptr;
  }

  void SetToZero(const Parameter& entry) {
    const TensorSpec& spec = entry.entry()->spec();
    const std::vector<std::uint8_t> zeros(spec.bytes(), 0);
    fit_.assignments.emplace_back(entry, Tensor::FromBytes(spec, zeros.data(), zeros.size()));
  }

  /// Lets `entry`, which has gathered in the run that ends here, begin anew, unless the file has something of use in
  /// its place.
  bool BeginsAnew(const Parameter& entry) {
    const bool is_in_file = file_.contains(entry.name());
    if (is_in_file && !drops_) return false;
    dropped_ = dropped_ || is_in_file;
    if (const Tensor* kept = KeptInFile(entry); kept != nullptr) {
      fit_.assignments.emplace_back(entry, *kept);
    } else {
      SetToZero(entry);
    }
    return true;
  }

  /// Whether `entry` takes nothing of its name from the file.
  bool LeavesFile(const Parameter& entry) {
    const Role role = entry.entry()->role();
    if (role == Role::kAccumulator) return BeginsAnew(entry);
    if (role != Role::kScaler) return false;
    own_scaler_ = own_scaler_ || !setting_.same_scaler;
    return !setting_.same_scaler || (setting_.optimizer_divides && KeepsScale(entry));
  }

  void FitEntry(const Parameter& entry) {
    const std::string& name = entry.name();
    const Role role = entry.entry()->role();
    seen_.insert(name);
    if (LeavesFile(entry)) return;
    const auto found = file_.find(name);
    if (found == file_.end()) {
      fit_.problems.push_back(absl::StrCat("'", name, "' (", std::string(RoleName(role)), ") is missing"));
      if (entry.owner().defined() && file_.contains(entry.owner().name())) ++missing_slots_;
      return;
    }
    const Tensor& value = *found->second;
    const TensorSpec& spec = entry.entry()->spec();
    const bool converts = (!setting_.same_level || setting_.stores_low) && role == Role::kParameter &&
                          value.shape() == spec.shape && IsFloating(value.dtype()) && IsFloating(spec.dtype);
    if (value.spec() != spec && !converts) {
      fit_.problems.push_back(absl::StrCat("'", name, "' is ", value.spec().ToString(), " in the file, ",
                                           spec.ToString(), " in the Model"));
      return;
    }
    Tensor taken = value.spec() == spec ? value : value.To(spec.dtype);
    if (const std::string lost = LostValues(value, taken); !lost.empty()) {
      fit_.problems.push_back(absl::StrCat("'", name, "' ", lost));
      return;
    }
    if (value.spec() != spec && !setting_.same_level) {
      fit_.differences.push_back(absl::StrCat("'", name, "' is converted from ", std::string(DTypeName(value.dtype())),
                                              " to ", std::string(DTypeName(spec.dtype))));
    }
    if (role == Role::kScaler && (IsComparedSetting(name) || IsFixedScale(name))) CompareSetting(entry, value);
    fit_.assignments.emplace_back(entry, std::move(taken));
    fit_.loaded.push_back(name);
  }

  /// Whether `entry` is the scale of a scaler that does not move it in the file: a number of the user's.
  bool IsFixedScale(const std::string& entry) const {
    if (ScalerFieldOf(entry) != ScalerField::kScale) return false;
    const auto dynamic = file_.find(ScalerEntryName(entry.substr(0, entry.rfind('.')), ScalerField::kDynamic));
    if (dynamic == file_.end()) return false;
    const absl::StatusOr<std::int64_t> moves = dynamic->second->TryItem<std::int64_t>();
    return moves.ok() && *moves == 0;
  }

  /// Whether `entry` is a scale that keeps the Model's number. Says so where the file has another one.
  bool KeepsScale(const Parameter& entry) {
    if (ScalerFieldOf(entry.name()) != ScalerField::kScale) return false;
    const auto found = file_.find(entry.name());
    const absl::StatusOr<Tensor> own = entry.Value();
    if (found == file_.end() || !own.ok() || found->second->spec() != own->spec()) return false;
    if (own->bytes() != found->second->bytes()) {
      fit_.differences.push_back(absl::StrCat(entry.name(), ": ", own->Item<double>(),
                                              " stays, by which the optimizer divides, and the file's ",
                                              found->second->Item<double>(), " is not used"));
    }
    return true;
  }

  /// The file's setting of a scaler wins over what the program says now: that is worth a word.
  void CompareSetting(const Parameter& entry, const Tensor& value) {
    if (!entry.entry()->initialised()) return;
    const absl::StatusOr<Tensor> own = entry.Value();
    if (!own.ok() || own->bytes() == value.bytes()) return;
    fit_.differences.push_back(
        absl::StrCat(entry.name(), ": ", own->Item<double>(), " here, the file's ", value.Item<double>(), " is used"));
  }

  /// An entry of the file that the Model does not have.
  void FitRest(const std::string& name, const Tensor& tensor) {
    const auto found = roles_.find(name);
    const std::optional<Role> role = found == roles_.end() ? std::nullopt : std::optional(found->second);
    if (role == Role::kAccumulator && drops_) {
      dropped_ = true;
    } else if (role == Role::kAccumulator) {
      fit_.accumulators.emplace_back(name, &tensor);
      fit_.loaded.push_back(name);
    } else if (role == Role::kScaler && (!setting_.same_scaler || !setting_.trains)) {
      idle_scaler_ = setting_.trains;
    } else if (setting_.trains || !IsOptimizerState(role)) {
      fit_.problems.push_back(absl::StrCat("'", name, "' is unknown to this Model"));
      if (role == Role::kSlot && IsOfFrozen(name)) ++unused_slots_;
    }
  }

  /// Whether `slot`, "optimizer.conv1.weight.velocity", belongs to a Parameter that is frozen in the Model.
  bool IsOfFrozen(const std::string& slot) const {
    return std::any_of(frozen_.begin(), frozen_.end(), [&slot](const std::string& name) {
      return slot.find(absl::StrCat(".", name, ".")) != std::string::npos;
    });
  }

  const RoleMap& roles_;
  const CheckpointSetting& setting_;
  std::map<std::string, const Tensor*> file_;
  std::set<std::string> seen_;
  std::vector<std::string> frozen_;  ///< Parameters of the Model
  std::size_t missing_slots_ = 0;    ///< problems that are slots of Parameters in the file
  std::size_t unused_slots_ = 0;     ///< problems that are slots of `frozen_`
  bool own_scaler_ = false;
  bool drops_ = false;    ///< nothing that the file has gathered is taken
  bool dropped_ = false;  ///< and the file has something
  bool idle_scaler_ = false;
  CheckpointFit fit_;
};

}  // namespace

CheckpointFit FitCheckpoint(absl::Span<const Parameter> state, const Safetensors& content, const RoleMap& roles,
                            const CheckpointSetting& setting) {
  return Fitter(content, roles, setting).Fit(state);
}

std::vector<std::string> Differences(const TextMap& file, const TextMap& here) {
  std::set<std::string> keys;
  for (const auto& [key, value] : file) keys.insert(key);
  for (const auto& [key, value] : here) keys.insert(key);
  const auto value = [](const TextMap& map, const std::string& key) {
    const auto found = map.find(key);
    return found == map.end() || found->second.empty() ? std::string("nothing") : found->second;
  };
  std::vector<std::string> lines;
  for (const std::string& key : keys) {
    const std::string there = value(file, key);
    const std::string own = value(here, key);
    if (there != own) lines.push_back(absl::StrCat(key, ": ", there, " in the file, ", own, " here"));
  }
  return lines;
}

}  // namespace mpc::internal
