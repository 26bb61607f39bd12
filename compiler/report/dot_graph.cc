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
  llvm::StringLiteral type, colour;
};

constexpr DTypeColour colours[] = {{"f32", "#cfe2f3"}, {"f16", "#f9cb9c"}, {"bf16", "#d9ead3"}, {"f64", "#d9d2e9"},
                                   {"i32", "#eeeeee"}, {"i64", "#eeeeee"}, {"i1", "#eeeeee"}};

// Casts stand out: what a level costs.
constexpr llvm::StringLiteral castStyle = "shape=hexagon, color=\"#cc0000\", penwidth=2";

std::string quoted(StringRef text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += '\\';
    result += c;
  }
  return result + "\"";
}

std::string colourOf(Type type) {
  std::string name = typeText(getElementTypeOrSelf(type));
  for (const DTypeColour &known : colours)
    if (known.type == name)
      return known.colour.str();
  return "#ffffff";
}

class DotWriter {
public:
  explicit DotWriter(const UnfusedFunction &given) : given(given), function(given.get()), out(result) {}

  std::string run() {
    out << "digraph " << quoted(function.getSymName()) << " {\n"
        << "  rankdir=TB;\n  node [shape=box, style=\"filled,rounded\", fontname=\"Helvetica\"];\n"
        << "  edge [fontname=\"Helvetica\", fontsize=9];\n";
    writeLegend();
    writeArguments();
    function.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) { collect(op); });
    unsigned cluster = 0;
    for (auto &[path, nodes] : nodesByPath)
      writeCluster(path, nodes, cluster++);
    for (const std::string &edge : edges)
      out << edge;
    out << "}\n";
    return std::move(result);
  }

private:
  void writeLegend() {
    out << "  subgraph cluster_legend {\n    label=\"written type\";\n";
    for (const DTypeColour &known : llvm::ArrayRef(colours).take_front(3))
      out << "    legend_" << known.type << " [label=" << quoted(known.type) << ", fillcolor=" << quoted(known.colour)
          << "];\n";
    out << "    legend_cast [label=\"cast\", fillcolor=\"#ffffff\", " << castStyle << "];\n  }\n";
  }

  void writeArguments() {
    for (BlockArgument argument : function.getArguments()) {
      StringRef name = nameOf(argument);
      std::string label = name.empty() ? "argument " + std::to_string(argument.getArgNumber()) : name.str();
      std::string node = "argument" + std::to_string(argument.getArgNumber());
      names[argument] = node;
      out << "  " << node << " [shape=ellipse, label=" << quoted(label)
          << ", fillcolor=" << quoted(colourOf(argument.getType())) << "];\n";
    }
  }

  void collect(Operation *op) {
    std::string node = "node" + std::to_string(nextNode++);
    for (Value v : op->getResults())
      names[v] = node;
    std::string colour = op->getNumResults() == 0 ? "#ffffff" : colourOf(op->getResult(0).getType());
    std::string style = isa<CastOp>(op) ? ", " + castStyle.str() : "";
    nodesByPath[pathOf(op).str()].push_back(node + " [label=" + quoted(label(op)) + ", fillcolor=" + quoted(colour) +
                                            style + "];\n");
    for (Value operand : op->getOperands())
      if (auto source = names.find(operand); source != names.end())
        edges.push_back("  " + source->second + " -> " + node + " [label=" + quoted(typeText(operand.getType())) +
                        "];\n");
  }

  std::string label(Operation *op) const {
    std::string label = mnemonicOf(op);
    if (auto cast = dyn_cast<CastOp>(op))
      label = elementName(cast.getX()) + " to " + elementName(cast.getY()) + (cast.getUser() ? " (user cast)" : "");
    else if (PrecisionAttr precision = precisionOf(op))
      label += " (" + ReasonText(precision) + ")";
    if (unsigned region = given.regionOf(op))
      label += " [region " + std::to_string(region) + "]";
    return label;
  }

  void writeCluster(StringRef path, llvm::ArrayRef<std::string> nodes, unsigned cluster) {
    bool named = !path.empty();
    if (named)
      out << "  subgraph cluster_" << cluster << " {\n    label=" << quoted(path) << ";\n";
    for (const std::string &node : nodes)
      out << (named ? "    " : "  ") << node;
    if (named)
      out << "  }\n";
  }

  const UnfusedFunction &given;
  func::FuncOp function;
  std::string result;
  llvm::raw_string_ostream out;
  llvm::DenseMap<Value, std::string> names;
  llvm::MapVector<std::string, SmallVector<std::string>, std::map<std::string, unsigned>> nodesByPath;
  SmallVector<std::string> edges;
  unsigned nextNode = 0;
};

} // namespace

absl::StatusOr<std::string> DotGraph(const Module &target, const std::string &name) {
  absl::StatusOr<UnfusedFunction> function = UnfusedFunction::create(target, name);
  if (!function.ok())
    return function.status();
  return DotWriter(*function).run();
}

} // namespace mpc::compiler
