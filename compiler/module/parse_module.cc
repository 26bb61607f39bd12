#include "compiler/module/parse_module.h"

#include "compiler/module/diagnostics.h"
#include "compiler/module/module_impl.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace mpc::compiler {

absl::StatusOr<Module> ParseModule(std::string_view Text) {
  Module Result;
  Result.impl().context = makeContext();
  DiagnosticCollector Diagnostics(Result.impl().context.get());
  Result.impl().module =
      parseSourceString<ModuleOp>(llvm::StringRef(Text.data(), Text.size()), ParserConfig(Result.impl().context.get()));
  if (!Result.impl().module)
    return Diagnostics.status("the text is no module");
  return Result;
}

} // namespace mpc::compiler
