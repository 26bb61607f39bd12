#include "compiler/report/step_page.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/report/page/page_sources.h"
#include "compiler/report/page_data.h"
#include "llvm/Support/raw_ostream.h"

namespace mpc::compiler {

using llvm::json::Array;
using llvm::json::Object;

/// JSON that may stand in a script element: names of Cells can hold "</script>" and "<!--".
static std::string scriptText(Object data) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(data));
  return absl::StrReplaceAll(text, {{"<", "\\u003c"}});
}

absl::StatusOr<std::string> StepPage(const std::string &network, const std::vector<PageLevel> &levels,
                                     std::size_t opened) {
  if (opened >= levels.size() || levels[opened].result == nullptr)
    return absl::InvalidArgumentError(absl::StrCat("a page of ", levels.size(), " levels cannot open number ", opened,
                                                   opened < levels.size() ? ": it was not compiled" : ""));
  PageTexts texts;
  Array compiled;
  for (const PageLevel &level : levels) {
    if (level.result == nullptr) {
      compiled.push_back(Object{{"level", level.level}, {"why_not", llvm::json::fixUTF8(level.why_not)}});
      continue;
    }
    absl::StatusOr<Object> data = pageData(*level.result, texts);
    if (!data.ok())
      return data.status();
    compiled.push_back(*std::move(data));
  }
  const runtime::Program &program = levels[opened].result->program;
  Object page{
      {"network", llvm::json::fixUTF8(network)},     {"function", program.name},      {"device", program.device},
      {"opened", static_cast<std::int64_t>(opened)}, {"levels", std::move(compiled)}, {"texts", texts.take()}};
  return absl::StrReplaceAll(
      kPageHtml,
      {{"/* page.css */", kPageCss}, {"/* page.js */", kPageScript}, {"/* data */", scriptText(std::move(page))}});
}

} // namespace mpc::compiler
