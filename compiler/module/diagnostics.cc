#include "compiler/module/diagnostics.h"

#include "absl/strings/str_join.h"

using namespace mlir;

namespace mpc::compiler {

// "'mpc.conv2d' op expects ..." reads as "conv2d expects ..." to a user who never wrote IR.
static std::string plainText(std::string Text) {
  constexpr llvm::StringLiteral Prefix = "'mpc.", Infix = "' op ";
  if (Text.rfind(Prefix.data(), 0) != 0)
    return Text;
  size_t End = Text.find(Infix.data());
  if (End == std::string::npos)
    return Text;
  std::string Op = Text.substr(Prefix.size(), End - Prefix.size());
  std::string Rest = Text.substr(End + Infix.size());
  return Rest.rfind(Op, 0) == 0 ? Rest : Op + " " + Rest;
}

DiagnosticCollector::DiagnosticCollector(MLIRContext *Context)
    : Handler(Context, [this](Diagnostic &Diag) {
        std::string Text = plainText(Diag.str());
        for (Diagnostic &Note : Diag.getNotes())
          Text += "\n  note: " + plainText(Note.str());
        (Diag.getSeverity() == DiagnosticSeverity::Error ? Errors : Remarks).push_back(std::move(Text));
        return success();
      }) {}

absl::Status DiagnosticCollector::status(const char *Fallback) const {
  return absl::InvalidArgumentError(Errors.empty() ? Fallback : absl::StrJoin(Errors, "\n"));
}

} // namespace mpc::compiler
