// The words of AMP options, with the errors that a user reads.
#include "passes/precision/precision_options.h"

#include "compiler/dialect/attribute_conversion.h"

using namespace mlir;

namespace mpc {

static constexpr std::pair<AmpLevel, StringLiteral> levels[] = {
    {AmpLevel::O0, "O0"}, {AmpLevel::O1, "O1"}, {AmpLevel::O2, "O2"}, {AmpLevel::O3, "O3"}, {AmpLevel::Auto, "auto"}};

static llvm::Error optionError(const Twine &text) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

llvm::Expected<AmpLevel> parseAmpLevel(StringRef text) {
  for (const auto &[level, name] : levels)
    if (text == name)
      return level;
  bool zeroForLetter = text.starts_with("0");
  return optionError("unknown level '" + text + "'; valid levels are O0, O1, O2, O3 and auto" +
                     (zeroForLetter ? " (the letter O, not the digit zero)" : ""));
}

StringRef ampLevelName(AmpLevel level) {
  return llvm::find_if(levels, [&](const auto &known) { return known.first == level; })->second;
}

llvm::Expected<FloatType> parseLowType(MLIRContext *context, StringRef text) {
  std::optional<DType> named = ParseDType(std::string_view(text.data(), text.size()));
  if (named && IsLowPrecision(*named))
    return cast<FloatType>(toType(context, *named));
  return optionError("unknown low type '" + text + "'; choose f16, bf16 or auto");
}

llvm::Expected<bool> parseKeepNormsF32(StringRef text, AmpLevel level) {
  if (text.empty())
    return level != AmpLevel::O3;
  if (isSolved(level))
    return optionError("keep-batchnorm-fp32 is for O2 and O3: " + ampLevelName(level) + " already runs norms in f32");
  if (text == "true" || text == "True" || text == "1")
    return true;
  if (text == "false" || text == "False" || text == "0")
    return false;
  return optionError("unknown keep-batchnorm-fp32 '" + text + "'; choose true or false, or leave it out");
}

} // namespace mpc
