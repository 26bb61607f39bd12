// Attributes that take one of a few words: the enums of kernels/attribute_enums.h as attributes of the dialect.
#pragma once

#include "kernels/attribute_enums.h"
#include "mlir/IR/DialectImplementation.h"

#include <initializer_list>

namespace mpc {

/// Whether \p words are the names of the enum, in order: ODS repeats them for its documentation.
template <typename Enum> constexpr bool hasNames(std::initializer_list<std::string_view> words) {
  return std::equal(words.begin(), words.end(), NamesOf<Enum>().begin(), NamesOf<Enum>().end());
}

/// The name of an enum's value.
template <typename Enum> llvm::StringRef wordOf(Enum value) { return llvm::StringRef(NameOf(value)); }

/// Appends to \p error the words that are accepted, and the one that was given: "NCHW, NHWC; got 'x'".
template <typename Words>
mlir::InFlightDiagnostic listWords(mlir::InFlightDiagnostic error, const Words &accepted, llvm::StringRef given) {
  llvm::interleaveComma(accepted, error, [&](std::string_view word) { error << llvm::StringRef(word); });
  error << "; got '" << given << "'";
  return error;
}

/// Parses a word. Errors: it is none of the enum's.
template <typename Enum> llvm::FailureOr<Enum> parseWord(mlir::AsmParser &parser) {
  llvm::SMLoc loc = parser.getCurrentLocation();
  llvm::StringRef word;
  if (parser.parseKeyword(&word))
    return llvm::failure();
  if (std::optional<Enum> value = ParseEnum<Enum>(word))
    return *value;
  return listWords(parser.emitError(loc) << "expected one of ", NamesOf<Enum>(), word);
}

/// The attribute \p name with the value \p word. Null: the attribute takes no words, or not this one.
mlir::Attribute wordAttribute(mlir::MLIRContext *context, llvm::StringRef name, llvm::StringRef word);

/// The words that the attribute \p name takes; empty: it takes others than words.
llvm::ArrayRef<std::string_view> wordsOf(llvm::StringRef name);

/// The word of an attribute of the dialect's enums; none for any other attribute. \p given is not null.
std::optional<llvm::StringRef> wordOf(mlir::Attribute given);

} // namespace mpc
