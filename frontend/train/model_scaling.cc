// Which scalers, optimizers and precision a Model trains with: its own, those of a step of the user's, those of
// amp::Initialize.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
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
  const std::string type = cells.user_step()->TypeName();
  if (const std::string scaling = GivenScaling(); !scaling.empty()) {
    if (!facts.scalers.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("Model: ", scaling, ", but ", type, " scales its losses itself; leave one of them out"));
    }
    if (scalers.config().mode != LossScaleConfig::Mode::kNone && !facts.wrapped) {
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

absl::Status Model::Impl::UseSession() {
  absl::StatusOr<std::shared_ptr<amp::internal::Session>> session = amp::internal::SessionBelow(*cells.root());
  if (!session.ok()) return session.status();
  if (*session == nullptr) return absl::OkStatus();
  // A step that calls amp::ScaleLoss scales by itself; the Model's own step takes the first loss's scaler.
  const nn::Optimizer* const optimizer = cells.optimizer();
  const bool takes_scaler = optimizer != nullptr && !options.loss_scale_manager.config().has_value();
  absl::Status agrees =
      internal::CheckAgreement(options, (*session)->precision, takes_scaler, cells.network()->TypeName());
  if (!agrees.ok()) return agrees;
  precision = (*session)->precision;
  if (!takes_scaler) return absl::OkStatus();
  // The optimizer need not have been given to Initialize, and may have been given to another call of it.
  const std::shared_ptr<amp::internal::Session>& given = optimizer->amp_session();
  const bool is_alike = given != nullptr && amp::Describe(given->precision) == amp::Describe(precision);
  scalers.Share((is_alike ? given : *session)->scalers.front());
  return absl::OkStatus();
}

}  // namespace mpc
