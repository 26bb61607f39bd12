#include "frontend/graph/cell.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "frontend/graph/cell_members.h"
#include "frontend/graph/context.h"
#include "frontend/graph/tensor_node.h"

namespace mpc::nn {
namespace {

using NamedParameters = std::vector<std::pair<std::string, Parameter>>;
using internal::PathsOfParameter;

void Collect(Cell& cell, const std::string& prefix, std::vector<PathsOfParameter>& out) {
  internal::ForEachMember(
      cell,
      [&](const std::string& name, Cell& child) {
        Collect(child, cell.transparent() ? prefix : absl::StrCat(prefix, name, "."), out);
      },
      [&](const std::string& name, Parameter& parameter) {
        if (!parameter.defined()) return;
        std::string path = absl::StrCat(prefix, name);
        const auto known = std::find_if(out.begin(), out.end(),
                                        [&](const PathsOfParameter& each) { return each.parameter == parameter; });
        if (known == out.end()) {
          out.push_back({{std::move(path)}, parameter});
        } else if (!known->IsAt(path)) {
          known->paths.push_back(std::move(path));
        }
      });
}

std::string ListNames(const std::vector<PathsOfParameter>& parameters) {
  return absl::StrJoin(parameters, ", ",
                       [](std::string* out, const auto& each) { absl::StrAppend(out, each.paths.front()); });
}

void AppendSummary(Cell& cell, const std::string& name, int depth, std::string& out) {
  std::int64_t count = 0;
  std::vector<std::string> shapes;
  internal::ForEachMember(cell, [&](const std::string& parameter_name, Parameter& parameter) {
    if (!parameter.defined()) return;
    count += NumElements(parameter.shape());
    shapes.push_back(absl::StrCat(parameter_name, " [", absl::StrJoin(parameter.shape(), ", "), "]"));
  });
  const std::string label = absl::StrCat(std::string(2 * depth, ' '), name);
  absl::StrAppendFormat(&out, "%-28s %-20s %10d  %s\n", label, cell.TypeName(), count, absl::StrJoin(shapes, ", "));
  internal::ForEachMember(cell,
                          [&](const std::string& child, Cell& sub) { AppendSummary(sub, child, depth + 1, out); });
}

}  // namespace

internal::MemberRegistrar::MemberRegistrar(Cell* cell, MemberLister lister) { cell->listers_.push_back(lister); }

Tensor internal::WrongArity(const Cell& cell, int arity, std::size_t given) {
  const std::string message =
      absl::StrCat(cell.TypeName(), "::Construct takes ", arity, arity == 1 ? " tensor" : " tensors", ", got ", given);
  if (mpc::internal::Trace* trace = mpc::internal::Trace::Current()) {
    trace->Fail(message);
    return trace->Poison({});
  }
  return mpc::internal::MakeInvalid(absl::InvalidArgumentError(message));
}

bool internal::LiesIn(std::string_view name, std::string_view path) {
  return name.substr(0, path.size()) == path &&
         (name.size() == path.size() || path.empty() || path.back() == '.' || name[path.size()] == '.');
}

bool internal::PathsOfParameter::LiesIn(std::string_view path) const {
  return std::any_of(paths.begin(), paths.end(), [path](const auto& each) { return internal::LiesIn(each, path); });
}

bool internal::PathsOfParameter::IsAt(std::string_view path) const {
  return std::find(paths.begin(), paths.end(), path) != paths.end();
}

std::vector<PathsOfParameter> internal::ParametersAndPaths(Cell& cell) {
  std::vector<PathsOfParameter> parameters;
  Collect(cell, "", parameters);
  // A trace has named its state by the paths of its step: another path would give one entry two names.
  const bool is_named = mpc::internal::Trace::Current() != nullptr;
  for (PathsOfParameter& each : parameters) {
    if (!is_named || each.parameter.name().empty()) each.parameter.set_name(each.paths.front());
  }
  return parameters;
}

Cell::Cell() = default;

Cell::Cell(const Cell& other)
    : listers_(other.listers_),
      training_(other.training_),
      to_float_(other.to_float_),
      recompute_(other.recompute_),
      amp_session_(other.amp_session_) {}

Cell& Cell::operator=(const Cell& other) {
  if (this == &other) return *this;
  listers_ = other.listers_;
  training_ = other.training_;
  to_float_ = other.to_float_;
  recompute_ = other.recompute_;
  amp_session_ = other.amp_session_;
  eager_programs_ = nullptr;
  identity_ = other.identity_;
  return *this;
}

std::string Cell::TypeName() const { return "Cell"; }

bool Cell::training() const {
  if (mpc::internal::Trace* trace = mpc::internal::Trace::Current()) trace->NoteModeRead(*this, training_);
  return training_;
}

void Cell::VisitMembers(internal::MemberVisitor& visitor) {
  for (internal::MemberLister lister : listers_) lister(*this, visitor);
}

std::vector<std::pair<std::string, Parameter>> Cell::ParametersAndNames() {
  NamedParameters parameters;
  for (PathsOfParameter& each : internal::ParametersAndPaths(*this)) {
    parameters.emplace_back(std::move(each.paths.front()), std::move(each.parameter));
  }
  return parameters;
}

std::vector<Parameter> Cell::TrainableParams() {
  std::vector<Parameter> trainable;
  for (auto& [name, parameter] : ParametersAndNames()) {
    if (parameter.requires_grad()) trainable.push_back(parameter);
  }
  return trainable;
}

absl::StatusOr<Parameter> Cell::GetParameter(std::string_view path) {
  const std::vector<PathsOfParameter> parameters = internal::ParametersAndPaths(*this);
  for (const PathsOfParameter& each : parameters) {
    if (each.IsAt(path)) return each.parameter;
  }
  return absl::NotFoundError(
      absl::StrCat(TypeName(), " has no parameter '", std::string(path), "'; it has ", ListNames(parameters)));
}

absl::Status Cell::SetParameter(std::string_view path, const Tensor& value) {
  absl::StatusOr<Parameter> parameter = GetParameter(path);
  return parameter.ok() ? parameter->SetData(value) : parameter.status();
}

Cell& Cell::SetTrain(bool train) {
  internal::ForEachCell(*this, [train](Cell& cell) { cell.training_ = train; });
  mpc::internal::StructureChanged();
  return *this;
}

absl::Status Cell::SetRequiresGrad(std::string_view prefix, bool requires_grad) {
  std::vector<PathsOfParameter> parameters = internal::ParametersAndPaths(*this);
  bool found = false;
  for (PathsOfParameter& each : parameters) {
    if (!each.LiesIn(prefix) || each.parameter.entry()->role() != Role::kParameter) continue;
    found = true;
    // What was never to be trained does not thaw with what is.
    if (requires_grad && !each.parameter.made_trainable() && !each.IsAt(prefix)) continue;
    each.parameter.set_requires_grad(requires_grad);
  }
  if (found) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat(TypeName(), " has no parameter below '", std::string(prefix), "'; it has ", ListNames(parameters)));
}

Cell& Cell::ToFloat(DType dtype) {
  internal::ForEachCell(*this, [dtype](Cell& cell) { cell.to_float_ = dtype; });
  mpc::internal::StructureChanged();
  return *this;
}

Cell& Cell::Recompute(bool recompute) {
  recompute_ = recompute;
  mpc::internal::StructureChanged();
  return *this;
}

Cell& Cell::ForgetPrograms() {
  identity_.Renew();
  return *this;
}

std::string Cell::Summary() {
  std::string out = absl::StrFormat("%-28s %-20s %10s  %s\n", "cell", "type", "elements", "parameters");
  AppendSummary(*this, TypeName(), 0, out);
  std::int64_t total = 0;
  std::int64_t trainable = 0;
  for (const auto& [name, parameter] : ParametersAndNames()) {
    total += NumElements(parameter.shape());
    if (parameter.requires_grad()) trainable += NumElements(parameter.shape());
  }
  absl::StrAppend(&out, "total ", total, " elements, ", trainable, " trainable\n");
  return out;
}

}  // namespace mpc::nn

std::vector<mpc::internal::CellSettings> mpc::internal::SettingsBelow(nn::Cell& cell) {
  std::vector<CellSettings> settings;
  nn::internal::ForEachCell(cell, [&](nn::Cell& each) { settings.push_back({each.training_, each.to_float_}); });
  return settings;
}
