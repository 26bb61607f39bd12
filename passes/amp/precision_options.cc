// The words of AMP options, with the errors that a user reads.
#include "passes/amp/precision_assignment.h"

using namespace mlir;

namespace mpc {

static llvm::Error optionError(const Twine &Text) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), Text);
}

llvm::Expected<AmpLevel> parseAmpLevel(StringRef Text) {
  if (Text == "O0")
    return AmpLevel::O0;
  if (Text == "O2")
    return AmpLevel::O2;
  if (Text == "O3")
    return AmpLevel::O3;
  if (Text == "O1" || Text == "auto")
    return optionError("level '" + Text + "' is not in this version; choose O0, O2 or O3");
  bool ZeroForLetter = Text.starts_with("0");
  return optionError("unknown level '" + Text + "'; valid levels are O0, O2 and O3" +
                     (ZeroForLetter ? " (the letter O, not the digit zero)" : ""));
}

llvm::Expected<FloatType> parseLowType(MLIRContext *Context, StringRef Text) {
  if (Text == "f16")
    return FloatType(Float16Type::get(Context));
  if (Text == "bf16")
    return FloatType(BFloat16Type::get(Context));
  return optionError("unknown low type '" + Text + "'; choose f16 or bf16");
}

llvm::Expected<bool> parseKeepNormsF32(StringRef Text, AmpLevel Level) {
  if (Text.empty())
    return Level != AmpLevel::O3;
  if (Text == "true" || Text == "True" || Text == "1")
    return true;
  if (Text == "false" || Text == "False" || Text == "0")
    return false;
  return optionError("unknown keep-batchnorm-fp32 '" + Text + "'; choose true or false, or leave it out");
}

} // namespace mpc
