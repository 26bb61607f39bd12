// The options of a compilation as texts, for files.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/options/compile_options.h"

namespace mpc::compiler {

/// Every option that changes the Program, by its name in visitOptions. A list has a line an entry, an assignment a line
/// a slot with a tab before its type. An optional option that is left out has no text.
std::map<std::string, std::string> optionTexts(const CompileOptions &options);

/// The options that \p texts give, and the defaults of all others. Errors (INVALID_ARGUMENT): a name that no option
/// has, with the name; a text that is no value of its option, with both.
absl::StatusOr<CompileOptions> parseOptionTexts(const std::map<std::string, std::string> &texts);

} // namespace mpc::compiler
