#include "frontend/graph/step_key.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/graph/amp_session.h"
#include "frontend/graph/cell_members.h"
#include "kernels/communicator.h"

namespace mpc::internal {
namespace {

/// Writes what tracing reads of the Cells. A change of it asks for another Program.
class StructureWriter : public nn::internal::MemberVisitor {
 public:
  explicit StructureWriter(std::string& out) : out_(out) {}
  void Visit(const std::string& name, nn::Cell& cell) override {
    absl::StrAppend(&out_, "|", name, ":", cell.TypeName(), cell.training() ? "+" : "-");
    if (cell.to_float().has_value()) absl::StrAppend(&out_, std::string(DTypeName(*cell.to_float())));
    if (cell.recompute()) absl::StrAppend(&out_, "recompute");
    absl::StrAppend(&out_, cell.variant());
    if (cell.amp_session() != nullptr) absl::StrAppend(&out_, "amp", cell.amp_session()->id);
    absl::StrAppend(&out_, "{");
    cell.VisitMembers(*this);
    absl::StrAppend(&out_, "}");
  }
  void Visit(const std::string& name, Parameter& parameter) override {
    if (!parameter.defined()) return;
    // A Program keeps the entries that it uses: no other one has such an address meanwhile.
    absl::StrAppend(&out_, "|", name, parameter.requires_grad() ? "+" : "-", absl::Hex(parameter.entry().get()));
    if (parameter.low_storage().has_value()) absl::StrAppend(&out_, std::string(DTypeName(parameter.dtype())));
  }

 private:
  std::string& out_;
};

// The text of an option, for each type that an option of the Program has.
std::string TextOf(const std::string& option) { return option; }
std::string TextOf(bool option) { return option ? "1" : "0"; }
std::string TextOf(int option) { return absl::StrCat(option); }
std::string TextOf(const std::optional<DType>& option) {
  return option.has_value() ? std::string(DTypeName(*option)) : "";
}
std::string TextOf(const std::vector<std::string>& option) { return absl::StrJoin(option, ","); }
std::string TextOf(const compiler::CompileOptions& option) { return compiler::programKey(option); }
// A Program stays with its group, which it keeps: no other one has this address meanwhile.
std::string TextOf(const std::shared_ptr<Communicator>& option) { return absl::StrCat(absl::Hex(option.get())); }

}  // namespace

std::string StepKey(nn::Cell* root, const std::vector<Tensor>& inputs, const StepOptions& options) {
  std::string key;
  VisitStepOptions(options, [&key](auto info, const auto& option) {
    if constexpr (info.kKind == StepOptionKind::kProgram) absl::StrAppend(&key, TextOf(option), "|");
  });
  for (const Tensor& input : inputs) absl::StrAppend(&key, "|", input.spec().ToString());
  if (root != nullptr) StructureWriter(key).Visit("", *root);
  return key;
}

}  // namespace mpc::internal
