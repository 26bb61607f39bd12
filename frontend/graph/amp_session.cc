#include "frontend/graph/amp_session.h"

#include "absl/strings/str_cat.h"
#include "frontend/graph/cell_members.h"
#include "frontend/graph/step_options.h"

namespace mpc::amp::internal {
namespace {

using Sessions = std::vector<std::pair<const nn::Cell*, std::shared_ptr<Session>>>;

/// The sessions of the Cells below one, in the order of the Cells.
Sessions FindSessions(nn::Cell& root) {
  Sessions found;
  nn::internal::ForEachCell(root, [&](nn::Cell& cell) {
    if (cell.amp_session() != nullptr) found.emplace_back(&cell, cell.amp_session());
  });
  return found;
}

}  // namespace

void SetPrecision(const Precision& precision, mpc::internal::StepOptions& options) {
  compiler::CompileOptions& compile = options.compile;
  compile.level = precision.level;
  compile.dtype = std::string(DTypeName(precision.dtype));
  compile.keep_batchnorm_fp32 =
      precision.keep_batchnorm_fp32.has_value() ? (*precision.keep_batchnorm_fp32 ? "true" : "false") : "";
  compile.master_weights = precision.master_weights;
  compile.allow = precision.lists.allow;
  compile.deny = precision.lists.deny;
  compile.infer = precision.lists.infer;
  compile.clear = precision.lists.clear;
  options.network_outputs = precision.cast_model_outputs;
}

absl::StatusOr<std::shared_ptr<Session>> SessionBelow(nn::Cell& root) {
  const Sessions found = FindSessions(root);
  if (found.empty()) return std::shared_ptr<Session>();
  const std::shared_ptr<Session>& first = found.front().second;
  for (const auto& [cell, session] : found) {
    if (Describe(session->precision) == Describe(first->precision)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("amp::Initialize gave the networks of one step different precisions: ", Describe(first->precision),
                     "; and ", Describe(session->precision)));
  }
  return first;
}

absl::Status ApplySession(nn::Cell& root, mpc::internal::StepOptions& options) {
  absl::StatusOr<std::shared_ptr<Session>> session = SessionBelow(root);
  if (!session.ok()) return session.status();
  if (*session == nullptr) return absl::OkStatus();
  options.networks.clear();
  for (const auto& [cell, own] : FindSessions(root)) options.networks.push_back(cell);
  SetPrecision((*session)->precision, options);
  return absl::OkStatus();
}

}  // namespace mpc::amp::internal
