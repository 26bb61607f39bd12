#include "compiler/report/dot_graph.h"

#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/state_attributes.h"
#include "compiler/report/function_facts.h"
#include "compiler/report/precision_reason.h"
#include "compiler/report/unfused_function.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace mpc::compiler {

namespace {

struct DTypeColour {
  llvm::StringLiteral Type, Colour;
};

constexpr DTypeColour Colours[] = {{"f32", "#cfe2f3"}, {"f16", "#f9cb9c"}, {"bf16", "#d9ead3"}, {"f64", "#d9d2e9"},
                                   {"i32", "#eeeeee"}, {"i64", "#eeeeee"}, {"i1", "#eeeeee"}};

// Casts stand out: what a level costs.
constexpr llvm::StringLiteral CastStyle = "shape=hexagon, color=\"#cc0000\", penwidth=2";

std::string quoted(StringRef Text) {
  std::string Result = "\"";
  for (char C : Text) {
    if (C == '"' || C == '\\')
      Result += '\\';
    Result += C;
  }
  return Result + "\"";
}

std::string colourOf(Type Type) {
  std::string Name = typeText(getElementTypeOrSelf(Type));
  for (const DTypeColour &Known : Colours)
    if (Known.Type == Name)
      return Known.Colour.str();
  return "#ffffff";
}

class DotWriter {
public:
  explicit DotWriter(const UnfusedFunction &Given) : Given(Given), Function(Given.get()), Out(Result) {}

  std::string run() {
    Out << "digraph " << quoted(Function.getSymName()) << " {\n"
        << "  rankdir=TB;\n  node [shape=box, style=\"filled,rounded\", fontname=\"Helvetica\"];\n"
        << "  edge [fontname=\"Helvetica\", fontsize=9];\n";
    writeLegend();
    writeArguments();
    Function.getBody().walk<WalkOrder::PreOrder>([&](Operation *Op) { collect(Op); });
    unsigned Cluster = 0;
    for (auto &[Path, Nodes] : NodesByPath)
      writeCluster(Path, Nodes, Cluster++);
    for (const std::string &Edge : Edges)
      Out << Edge;
    Out << "}\n";
    return std::move(Result);
  }

private:
  void writeLegend() {
    Out << "  subgraph cluster_legend {\n    label=\"written type\";\n";
    for (const DTypeColour &Known : llvm::ArrayRef(Colours).take_front(3))
      Out << "    legend_" << Known.Type << " [label=" << quoted(Known.Type) << ", fillcolor=" << quoted(Known.Colour)
          << "];\n";
    Out << "    legend_cast [label=\"cast\", fillcolor=\"#ffffff\", " << CastStyle << "];\n  }\n";
  }

  void writeArguments() {
    for (BlockArgument Argument : Function.getArguments()) {
      StringRef Name = nameOf(Argument);
      std::string Label = Name.empty() ? "argument " + std::to_string(Argument.getArgNumber()) : Name.str();
      std::string Node = "argument" + std::to_string(Argument.getArgNumber());
      Names[Argument] = Node;
      Out << "  " << Node << " [shape=ellipse, label=" << quoted(Label)
          << ", fillcolor=" << quoted(colourOf(Argument.getType())) << "];\n";
    }
  }

  void collect(Operation *Op) {
    std::string Node = "node" + std::to_string(NextNode++);
    for (Value V : Op->getResults())
      Names[V] = Node;
    std::string Colour = Op->getNumResults() == 0 ? "#ffffff" : colourOf(Op->getResult(0).getType());
    std::string Style = isa<CastOp>(Op) ? ", " + CastStyle.str() : "";
    NodesByPath[pathOf(Op).str()].push_back(Node + " [label=" + quoted(label(Op)) + ", fillcolor=" + quoted(Colour) +
                                            Style + "];\n");
    for (Value Operand : Op->getOperands())
      if (auto Source = Names.find(Operand); Source != Names.end())
        Edges.push_back("  " + Source->second + " -> " + Node + " [label=" + quoted(typeText(Operand.getType())) +
                        "];\n");
  }

  std::string label(Operation *Op) const {
    std::string Label = mnemonicOf(Op);
    if (auto Cast = dyn_cast<CastOp>(Op))
      Label = elementName(Cast.getX()) + " to " + elementName(Cast.getY()) + (Cast.getUser() ? " (user cast)" : "");
    else if (PrecisionAttr Precision = precisionOf(Op))
      Label += " (" + ReasonText(Precision) + ")";
    if (unsigned Region = Given.regionOf(Op))
      Label += " [region " + std::to_string(Region) + "]";
    return Label;
  }

  void writeCluster(StringRef Path, llvm::ArrayRef<std::string> Nodes, unsigned Cluster) {
    bool Named = !Path.empty();
    if (Named)
      Out << "  subgraph cluster_" << Cluster << " {\n    label=" << quoted(Path) << ";\n";
    for (const std::string &Node : Nodes)
      Out << (Named ? "    " : "  ") << Node;
    if (Named)
      Out << "  }\n";
  }

  const UnfusedFunction &Given;
  func::FuncOp Function;
  std::string Result;
  llvm::raw_string_ostream Out;
  llvm::DenseMap<Value, std::string> Names;
  llvm::MapVector<std::string, SmallVector<std::string>, std::map<std::string, unsigned>> NodesByPath;
  SmallVector<std::string> Edges;
  unsigned NextNode = 0;
};

} // namespace

absl::StatusOr<std::string> DotGraph(const Module &Target, const std::string &Name) {
  absl::StatusOr<UnfusedFunction> Function = UnfusedFunction::of(Target, Name);
  if (!Function.ok())
    return Function.status();
  return DotWriter(*Function).run();
}

} // namespace mpc::compiler
