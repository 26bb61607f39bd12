#include "compiler/module/parse_module.h"

#include "compiler/module/diagnostics.h"
#include "compiler/module/module_impl.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace mpc::compiler {

absl::StatusOr<Module> ParseModule(std::string_view text) {
  Module result;
  result.impl().context = makeContext();
  DiagnosticCollector diagnostics(result.impl().context.get());
  result.impl().module =
      parseSourceString<ModuleOp>(llvm::StringRef(text.data(), text.size()), ParserConfig(result.impl().context.get()));
  if (!result.impl().module)
    return diagnostics.status("the text is no module");
  return result;
}

} // namespace mpc::compiler
