// Which scalers, optimizers and precision a Model trains with: its own, those of a step of the user's, those of
// amp::Initialize.
#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/dialect/gradient_names.h"
#include "frontend/graph/amp_session.h"
#include "frontend/train/model_impl.h"

namespace mpc {

std::string Model::Impl::GivenScaling() const {
  if (!options.amp.enabled) return "";
  const std::optional<LossScaleConfig>& manager = options.loss_scale_manager.config();
  if (manager.has_value() && manager->mode != LossScaleConfig::Mode::kNone) {
    return absl::StrCat("loss_scale_manager = ", std::string(manager->mode_name()));
  }
  const auto given = [](const char* name, const amp::OptionValue& value) {
    return value.given() && value.text() != "none" ? absl::StrCat("amp.", name, " = ", value.text()) : std::string();
  };
  for (const std::string& option :
       {given("loss_scale", options.amp.loss_scale), given("min_loss_scale", options.amp.min_loss_scale),
        given("max_loss_scale", options.amp.max_loss_scale)}) {
    if (!option.empty()) return option;
  }
  return options.amp.num_losses == 1 ? "" : absl::StrCat("amp.num_losses = ", options.amp.num_losses);
}

absl::Status Model::Impl::CheckOwnStep(const internal::StepFacts& facts, const runtime::Program& program) const {
  const std::string type = user_step->TypeName();
  if (const std::string scaling = GivenScaling(); !scaling.empty()) {
    if (!facts.scalers.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("Model: ", scaling, ", but ", type, " scales its losses itself; leave one of them out"));
    }
    if (scale_config.mode != LossScaleConfig::Mode::kNone && !facts.wrapped) {
      return absl::InvalidArgumentError(absl::StrCat("Model: ", scaling, ", but ", type,
                                                     " cannot be scaled by it: its gradients have a seed of their ",
                                                     "own (sens), or it asks for none; leave one of them out"));
    }
  }
  const std::vector<runtime::NamedValue>& outputs = program.outputs;
  for (const std::string& record : CommonOptions("").records) {
    if (std::any_of(outputs.begin(), outputs.end(), [&](const auto& output) { return output.name == record; }))
      continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "Model: record_", record, ", but ", type, " does not record it",
        record == "gradient_norm"
            ? ": the Model's own step does; in this one give ops::GlobalNorm(gradients) a name with mpc::Tap"
            : ": it calls no optimizer"));
  }
  return absl::OkStatus();
}

std::vector<const LossScaler*> Model::Impl::ActiveScalers() const {
  if (const auto* own = dynamic_cast<const nn::TrainOneStepWithLossScaleCell*>(user_step)) return {&own->scaler()};
  std::vector<const LossScaler*> scalers;
  for (const internal::StepFacts::Scaler& called : step_scalers) scalers.push_back(called.scaler.get());
  if (scalers.empty() && scaler != nullptr) {
    scalers.push_back(scaler.get());
    for (const auto& more : more_scalers) scalers.push_back(more.get());
  }
  return scalers;
}

std::vector<Model::Impl::Scaling> Model::Impl::ScalingOf(const internal::StepResults& results) const {
  std::vector<Scaling> scalings;
  if (results.Record("finite").has_value()) return {{ActiveScaler(), ""}};
  const std::vector<const LossScaler*> scalers = ActiveScalers();
  for (std::size_t loss = 0; loss < scalers.size(); ++loss) {
    const std::string suffix = absl::StrCat(loss);
    if (results.Record("finite" + suffix).has_value()) scalings.push_back({scalers[loss], suffix});
  }
  return scalings;
}

std::optional<double> Model::Impl::FirstBad(const internal::StepResults& results, const LossScaler& scaler) const {
  if (const std::optional<double> only = results.Record("first_bad"); only.has_value()) return only;
  const std::vector<const LossScaler*> scalers = ActiveScalers();
  const auto found = std::find(scalers.begin(), scalers.end(), &scaler);
  return results.Record(absl::StrCat("first_bad", found - scalers.begin()));
}

Model::Impl::ScalerState Model::Impl::StateAfterStep(const LossScaler& scaler) const {
  const auto followed = scaler_histories.find(&scaler);
  if (followed == scaler_histories.end()) {
    return {scaler.scale(), scaler.skipped_steps(), scaler.consecutive_skips()};
  }
  const amp::internal::ScalerHistory& history = *followed->second;
  return {history.scale(), history.skipped_steps(), history.consecutive_skips()};
}

const LossScaler* Model::Impl::ActiveScaler() const {
  const std::vector<const LossScaler*> scalers = ActiveScalers();
  // Comparing would wait for the device.
  if (scalers.size() == 1) return scalers.front();
  const LossScaler* worst = nullptr;
  for (const LossScaler* active : scalers) {
    if (worst == nullptr || active->consecutive_skips() > worst->consecutive_skips()) worst = active;
  }
  return worst;
}

std::int64_t Model::Impl::SkippedSteps() const {
  std::int64_t skipped = 0;
  for (const LossScaler* active : ActiveScalers()) skipped += active->skipped_steps();
  return skipped;
}

std::vector<nn::Optimizer*> Model::Impl::optimizers() const {
  if (user_step != nullptr) return user_step->optimizers();
  return optimizer != nullptr ? std::vector<nn::Optimizer*>{optimizer} : std::vector<nn::Optimizer*>{};
}

absl::Status Model::Impl::UseSession() {
  absl::StatusOr<std::shared_ptr<amp::internal::Session>> session = amp::internal::SessionBelow(*root());
  if (!session.ok()) return session.status();
  if (*session == nullptr) return absl::OkStatus();
  // A step that calls amp::ScaleLoss scales by itself; the Model's own step takes the first loss's scaler.
  const bool takes_scaler = optimizer != nullptr && !options.loss_scale_manager.config().has_value();
  absl::Status agrees =
      internal::CheckAgreement(options, (*session)->precision, takes_scaler, network.cell()->TypeName());
  if (!agrees.ok()) return agrees;
  precision = (*session)->precision;
  if (!takes_scaler) return absl::OkStatus();
  // The optimizer need not have been given to Initialize, and may have been given to another call of it.
  const std::shared_ptr<amp::internal::Session>& given = optimizer->amp_session();
  const bool is_alike = given != nullptr && amp::Describe(given->precision) == amp::Describe(precision);
  scaler = (is_alike ? given : *session)->scalers.front();
  scale_config = scaler->config();
  if (scale_config.mode == LossScaleConfig::Mode::kNone) scaler = nullptr;
  return absl::OkStatus();
}

std::string Model::Impl::GradientName(const internal::StepResults& results, const std::string& suffix,
                                      std::int64_t index) const {
  // The wrap names what its records count: those of one loss, or of each loss of a shared scaler.
  for (const auto& [record, names] : results.step().compiled().gradients) {
    if (record != "first_bad" + suffix && (!suffix.empty() || !absl::EndsWith(record, ".first_bad"))) continue;
    const double found = results.Record(record).value_or(-1);
    if (found >= 0 && found < static_cast<double>(names.size())) return names[static_cast<std::size_t>(found)];
  }
  const std::vector<internal::StepFacts::Scaler>& scalers = results.step().facts().scalers;
  if (scalers.empty()) {
    // Frozen parameters have no gradient in the step.
    for (const nn::Optimizer* owner : optimizers()) {
      for (const Parameter& parameter : owner->parameters()) {
        if (parameter.requires_grad() && index-- == 0) return parameter.name();
      }
    }
    return "";
  }
  const std::size_t scaler = suffix.empty() ? 0 : static_cast<std::size_t>(std::stoi(suffix));
  const std::vector<std::vector<std::string>>& checked = scalers[scaler].checked;
  for (std::size_t check = 0; check < checked.size(); ++check) {
    const double found = checked.size() == 1 ? static_cast<double>(index)
                                             : results.Record(absl::StrCat("check", suffix, ".", check)).value_or(-1);
    if (found < 0) continue;
    const auto place = static_cast<std::size_t>(found);
    // The wrap adds norms behind the gradients that the scaler checks.
    return place < checked[check].size() ? checked[check][place] : std::string(kNormOfGradients);
  }
  return "";
}

}  // namespace mpc
