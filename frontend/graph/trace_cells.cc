// The Cells and precision scopes that a trace is in.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/graph/cell.h"
#include "frontend/graph/trace.h"

namespace mpc::internal {
namespace {

thread_local int untraced_scopes = 0;

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
}

/// Whether a Cell holds others.
class SubCellFinder : public nn::internal::MemberVisitor {
 public:
  void Visit(const std::string&, nn::Cell&) override { found_ = true; }
  void Visit(const std::string&, Parameter&) override {}
  bool found() const { return found_; }

 private:
  bool found_ = false;
};

/// Whether `cell` is the same function of its inputs wherever it stands. It then has no Parameters, no sub-cells and no
/// settings.
bool NeedsNoName(nn::Cell& cell) {
  SubCellFinder sub_cells;
  cell.VisitMembers(sub_cells);
  return !sub_cells.found() && cell.ParametersAndNames().empty() && !cell.to_float().has_value() && !cell.recompute();
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

}  // namespace

void CountUntracedScope(int change) { untraced_scopes += change; }

absl::Status CheckNoUntracedScope() {
  if (untraced_scopes == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "amp::AutoCast was opened outside tracing, where no operation can take its level; open it inside the Construct "
      "of a network or of a training step");
}

std::string Trace::NameOfCall(nn::Cell& cell, bool is_network, CellFrame& frame) {
  std::string name = cell.transparent() ? "" : Lower(cell.TypeName());
  nn::Cell* parent = cells_.empty() ? nullptr : cells_.back().cell;
  if (parent == nullptr) return name;
  NameFinder finder(&cell);
  parent->VisitMembers(finder);
  if (finder.name().has_value()) return is_network || cell.transparent() ? name : *finder.name();
  frame.forgotten_by = parent;
  if (!NeedsNoName(cell)) FailUnregistered(cell, *parent, path());
  return name;
}

void Trace::EnterCell(nn::Cell& cell, const std::vector<Tensor>& inputs) {
  CellFrame frame{&cell, scope(), inputs, 0};
  const bool is_network = std::find(networks_.begin(), networks_.end(), &cell) != networks_.end();
  const std::string name = NameOfCall(cell, is_network, frame);
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
  if (depth() == 1) {
    calls_.push_back({&cell, inputs, {}, next_call_site_, 0, false});
    frame.call = calls_.size();
  }
  cells_.push_back(std::move(frame));
  if (const std::optional<DType> pin = cell.to_float();
      pin.has_value() && *pin != DType::kF32 && !IsLowPrecision(*pin)) {
    Fail(absl::StrCat("ToFloat takes a floating type, f16, bf16 or f32; got ", std::string(DTypeName(*pin))));
  }
}

void Trace::NoteModeRead(const nn::Cell& cell) {
  if (cells_.empty() || cells_.back().cell != &cell || cells_.back().forgotten_by == nullptr) return;
  FailUnregistered(cell, *cells_.back().forgotten_by, cells_[cells_.size() - 2].scope.path);
}

void Trace::FailUnregistered(const nn::Cell& cell, const nn::Cell& parent, const std::string& where) {
  FailAt(where, absl::StrCat("a ", cell.TypeName(), " cell is called but not registered; name its member in MPC_CELL(",
                             parent.TypeName(), ", ...)"));
}

std::vector<Tensor> Trace::LeaveCell(std::vector<Tensor> outputs) {
  const CellFrame& frame = cells_.back();
  const bool is_network = std::find(networks_.begin(), networks_.end(), frame.cell) != networks_.end();
  const bool gives_loss = std::find(losses_.begin(), losses_.end(), frame.cell) != losses_.end();
  if (network_outputs_.has_value() && is_network && !gives_loss) {
    for (Tensor& output : outputs) {
      if (failed() || !output.defined() || !IsFloating(output.dtype()) || output.dtype() == *network_outputs_) continue;
      output = Emit("cast", {output}, {{"user", true}}, network_outputs_)[0];
    }
  }
  if (frame.call != 0) {
    calls_[frame.call - 1].outputs = outputs;
    calls_[frame.call - 1].last = calls_.size();
  }
  cells_.pop_back();
  return outputs;
}

compiler::Scope Trace::scope() const { return cells_.empty() ? compiler::Scope() : cells_.back().scope; }

compiler::Scope Trace::ScopeOf(std::string_view op) const {
  compiler::Scope result = scope();
  if (precision_.empty()) return result;
  const PrecisionScope& innermost = precision_.back();
  result.level = innermost.level;
  result.low = innermost.low;
  const bool in_loss = std::any_of(cells_.begin(), cells_.end(), [](const CellFrame& frame) {
    return frame.cell != nullptr && frame.cell->is_loss();
  });
  if (!in_loss) result.network = true;
  const auto lists = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), op) != names.end();
  };
  if (!result.pin.has_value() && lists(innermost.f32_operations)) result.pin = DType::kF32;
  if (!result.pin.has_value() && lists(innermost.low_operations)) result.pin = innermost.low;
  return result;
}

std::string Trace::path() const { return scope().path; }

}  // namespace mpc::internal
