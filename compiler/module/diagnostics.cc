#include "compiler/module/diagnostics.h"

#include "absl/strings/str_join.h"

#include <string_view>

using namespace mlir;

namespace mpc::compiler {

// "'mpc.conv2d' op expects ..." reads as "conv2d expects ..." to a user who never wrote IR.
static std::string plainText(std::string text) {
  constexpr std::string_view prefix = "'mpc.", infix = "' op ";
  if (text.rfind(prefix, 0) != 0)
    return text;
  size_t end = text.find(infix);
  if (end == std::string::npos)
    return text;
  std::string op = text.substr(prefix.size(), end - prefix.size());
  std::string rest = text.substr(end + infix.size());
  return rest.rfind(op, 0) == 0 ? rest : op + " " + rest;
}

// The verifiers of declarations (ODS) give the kind of a value, " #", its index, the rule and the type, each by itself.
static std::optional<unsigned> refusedOperandIn(Diagnostic &diag) {
  using Kind = DiagnosticArgument::DiagnosticArgumentKind;
  auto arguments = diag.getArguments();
  if (arguments.empty() || arguments.back().getKind() != Kind::Type)
    return std::nullopt;
  for (size_t i = 0; i + 2 < arguments.size(); ++i)
    if (arguments[i].getKind() == Kind::String && arguments[i].getAsString() == "operand" &&
        arguments[i + 2].getKind() == Kind::Unsigned)
      return static_cast<unsigned>(arguments[i + 2].getAsUnsigned());
  return std::nullopt;
}

DiagnosticCollector::DiagnosticCollector(MLIRContext *context)
    : handler(context, [this](Diagnostic &diag) {
        std::string text = plainText(diag.str());
        for (Diagnostic &note : diag.getNotes())
          text += "\n  note: " + plainText(note.str());
        if (!refusedOperand)
          refusedOperand = refusedOperandIn(diag);
        (diag.getSeverity() == DiagnosticSeverity::Error ? errors : remarks).push_back(std::move(text));
        return success();
      }) {}

absl::Status DiagnosticCollector::status(const char *fallback) const {
  return absl::InvalidArgumentError(errors.empty() ? fallback : absl::StrJoin(errors, "\n"));
}

} // namespace mpc::compiler
