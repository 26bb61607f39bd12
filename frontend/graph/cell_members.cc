#include "frontend/graph/cell_members.h"

namespace mpc::nn::internal {
namespace {

class FunctionVisitor : public MemberVisitor {
 public:
  FunctionVisitor(const OnCell& on_cell, const OnParameter& on_parameter)
      : on_cell_(on_cell), on_parameter_(on_parameter) {}
  void Visit(const std::string& name, Cell& cell) override { on_cell_(name, cell); }
  void Visit(const std::string& name, Parameter& parameter) override { on_parameter_(name, parameter); }

 private:
  const OnCell& on_cell_;
  const OnParameter& on_parameter_;
};

}  // namespace

void ForEachMember(Cell& cell, const OnCell& on_cell, const OnParameter& on_parameter) {
  FunctionVisitor visitor(on_cell, on_parameter);
  cell.VisitMembers(visitor);
}

void ForEachMember(Cell& cell, const OnCell& on_cell) {
  ForEachMember(cell, on_cell, [](const std::string&, Parameter&) {});
}

void ForEachMember(Cell& cell, const OnParameter& on_parameter) {
  ForEachMember(
      cell, [](const std::string&, Cell&) {}, on_parameter);
}

void ForEachCell(Cell& cell, const std::function<void(Cell& each)>& function) {
  function(cell);
  ForEachMember(cell, [&](const std::string&, Cell& below) { ForEachCell(below, function); });
}

}  // namespace mpc::nn::internal
