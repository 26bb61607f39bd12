// The data of a page: docs/precision.md. compiler/report/page/data.js reads them.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/module/compile_result.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"

#include <cstdint>

namespace mpc::compiler {

/// The texts of a page, each once. Rows have their numbers.
class PageTexts {
public:
  /// The number of \p text. Bytes that are no UTF-8 become U+FFFD.
  std::int64_t numberOf(llvm::StringRef text);
  llvm::json::Array take() { return std::move(texts); }

private:
  llvm::StringMap<std::int64_t> numbers;
  llvm::json::Array texts;
};

/// A compiled step: totals, and the rows of operations, casts, regions and memory as arrays. Errors: NOT_FOUND where
/// the module has no function of the Program's name, INVALID_ARGUMENT where the two do not belong together.
absl::StatusOr<llvm::json::Object> pageData(const CompileResult &result, PageTexts &texts);

} // namespace mpc::compiler
