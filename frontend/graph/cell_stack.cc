#include "frontend/graph/cell_stack.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/graph/cell.h"
#include "frontend/graph/cell_members.h"

namespace mpc::internal {
namespace {

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
}

/// Whether `cell` is the same function of its inputs wherever it stands. It then has no Parameters, no sub-cells and no
/// settings.
bool NeedsNoName(nn::Cell& cell) {
  bool has_sub_cells = false;
  nn::internal::ForEachMember(cell, [&](const std::string&, nn::Cell&) { has_sub_cells = true; });
  return !has_sub_cells && cell.ParametersAndNames().empty() && !cell.to_float().has_value() && !cell.recompute();
}

/// Finds the path of a Cell below another one: "conv1", or "blocks/0" for the elements of a list.
class NameFinder : public nn::internal::MemberVisitor {
 public:
  explicit NameFinder(const nn::Cell* wanted) : wanted_(wanted) {}
  void Visit(const std::string& name, nn::Cell& cell) override {
    if (name_.has_value()) return;
    const std::string path = absl::StrCat(prefix_, name);
    if (&cell == wanted_) {
      name_ = path;
      return;
    }
    const std::string outer = std::exchange(prefix_, absl::StrCat(path, "/"));
    cell.VisitMembers(*this);
    prefix_ = outer;
  }
  void Visit(const std::string&, Parameter&) override {}
  const std::optional<std::string>& name() const { return name_; }

 private:
  const nn::Cell* wanted_;
  std::string prefix_;
  std::optional<std::string> name_;
};

/// The path of `cell` below `caller`; none where `caller` does not register it.
std::optional<std::string> RegisteredName(nn::Cell& caller, const nn::Cell& cell) {
  NameFinder finder(&cell);
  caller.VisitMembers(finder);
  return finder.name();
}

/// The error of a `cell` that `caller`, which is at `path`, calls and does not register.
absl::Status Unregistered(const nn::Cell& cell, const nn::Cell& caller, const std::string& path) {
  return ErrorAt(path,
                 absl::StrCat("a ", cell.TypeName(), " cell is called but not registered; name its member in MPC_CELL(",
                              caller.TypeName(), ", ...)"));
}

absl::Status CheckToFloat(const nn::Cell& cell, const std::string& path) {
  const std::optional<DType> pin = cell.to_float();
  if (!pin.has_value() || *pin == DType::kF32 || IsLowPrecision(*pin)) return absl::OkStatus();
  return ErrorAt(path,
                 absl::StrCat("ToFloat takes a floating type, f16, bf16 or f32; got ", std::string(DTypeName(*pin))));
}

}  // namespace

absl::Status ErrorAt(const std::string& path, const std::string& message) {
  return absl::InvalidArgumentError(path.empty() ? message : absl::StrCat(path, ": ", message));
}

bool CellStack::IsNetwork(const nn::Cell* cell) const {
  return std::find(networks_.begin(), networks_.end(), cell) != networks_.end();
}

absl::Status CellStack::Enter(nn::Cell& cell, std::size_t call) {
  Frame frame{&cell, scope(), call};
  absl::Status status;
  const bool is_network = IsNetwork(&cell);
  std::string name = cell.transparent() ? "" : Lower(cell.TypeName());
  if (nn::Cell* caller = frames_.empty() ? nullptr : frames_.back().cell; caller != nullptr) {
    const std::optional<std::string> registered = RegisteredName(*caller, cell);
    if (!registered.has_value()) {
      frame.forgotten_by = caller;
      if (!NeedsNoName(cell)) status = Unregistered(cell, *caller, path());
    } else if (!is_network && !cell.transparent()) {
      name = *registered;
    }
  }
  if (is_network || frame.scope.path.empty()) {
    frame.scope.path = name;
  } else if (!name.empty()) {
    absl::StrAppend(&frame.scope.path, "/", name);
  }
  if (is_network) frame.scope.network = true;
  if (cell.is_loss()) frame.scope.network = false;
  if (cell.to_float().has_value()) frame.scope.pin = cell.to_float();
  // The outermost such Cell decides what is kept: its inputs.
  if (cell.recompute() && frame.scope.recompute == 0) frame.scope.recompute = ++recomputed_calls_;
  frames_.push_back(std::move(frame));
  return status.ok() ? CheckToFloat(cell, path()) : status;
}

std::optional<DType> CellStack::rounded_outputs() const {
  const nn::Cell* cell = innermost();
  const bool gives_loss = std::find(losses_.begin(), losses_.end(), cell) != losses_.end();
  return IsNetwork(cell) && !gives_loss ? network_outputs_ : std::nullopt;
}

absl::Status CellStack::CheckModeRead(const nn::Cell& cell) const {
  if (innermost() != &cell || frames_.back().forgotten_by == nullptr) return absl::OkStatus();
  return Unregistered(cell, *frames_.back().forgotten_by, frames_[frames_.size() - 2].scope.path);
}

compiler::Scope CellStack::ScopeOf(std::string_view op) const {
  compiler::Scope result = scope();
  if (precision_.empty()) return result;
  if (!InLoss()) result.network = true;
  precision_.back().Apply(op, result);
  return result;
}

bool CellStack::InLoss() const {
  return std::any_of(frames_.begin(), frames_.end(),
                     [](const Frame& frame) { return frame.cell != nullptr && frame.cell->is_loss(); });
}

SurroundingPrecision CellStack::precision() const {
  SurroundingPrecision around{.network = scope().network, .in_loss = InLoss(), .pin = scope().pin};
  if (!precision_.empty()) around.scope = precision_.back();
  return around;
}

}  // namespace mpc::internal
