// The words of AMP options, with the errors that a user reads.
#include "passes/precision/precision_options.h"

#include "compiler/dialect/attribute_conversion.h"

using namespace mlir;

namespace mpc {

static constexpr std::pair<AmpLevel, StringLiteral> Levels[] = {
    {AmpLevel::O0, "O0"}, {AmpLevel::O1, "O1"}, {AmpLevel::O2, "O2"}, {AmpLevel::O3, "O3"}, {AmpLevel::Auto, "auto"}};

static llvm::Error optionError(const Twine &Text) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), Text);
}

llvm::Expected<AmpLevel> parseAmpLevel(StringRef Text) {
  for (const auto &[Level, Name] : Levels)
    if (Text == Name)
      return Level;
  bool ZeroForLetter = Text.starts_with("0");
  return optionError("unknown level '" + Text + "'; valid levels are O0, O1, O2, O3 and auto" +
                     (ZeroForLetter ? " (the letter O, not the digit zero)" : ""));
}

StringRef ampLevelName(AmpLevel Level) {
  return llvm::find_if(Levels, [&](const auto &Known) { return Known.first == Level; })->second;
}

llvm::Expected<FloatType> parseLowType(MLIRContext *Context, StringRef Text) {
  std::optional<DType> Named = ParseDType(std::string_view(Text.data(), Text.size()));
  if (Named && IsLowPrecision(*Named))
    return cast<FloatType>(toType(Context, *Named));
  return optionError("unknown low type '" + Text + "'; choose f16 or bf16");
}

llvm::Expected<bool> parseKeepNormsF32(StringRef Text, AmpLevel Level) {
  if (Text.empty())
    return Level != AmpLevel::O3;
  if (isSolved(Level))
    return optionError("keep-batchnorm-fp32 is for O2 and O3: " + ampLevelName(Level) + " already runs norms in f32");
  if (Text == "true" || Text == "True" || Text == "1")
    return true;
  if (Text == "false" || Text == "False" || Text == "0")
    return false;
  return optionError("unknown keep-batchnorm-fp32 '" + Text + "'; choose true or false, or leave it out");
}

} // namespace mpc
