// `#mpc.precision`: how it reads, and what merging and folding make of it.
#include "compiler/dialect/dialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace mpc {

LogicalResult PrecisionAttr::verify(function_ref<InFlightDiagnostic()> EmitError, Type Decided,
                                    ArrayRef<PrecisionReasonAttr> Reasons, bool, bool) {
  if (Decided && !isa<FloatType>(Decided))
    return EmitError() << "a precision is a floating type, got " << Decided;
  if (Reasons.empty())
    return EmitError() << "a precision has at least one reason";
  for (auto [Index, Reason] : llvm::enumerate(Reasons))
    if (llvm::is_contained(Reasons.take_front(Index), Reason))
      return EmitError() << "a precision has the reason " << Reason << " twice";
  return success();
}

PrecisionAttr PrecisionAttr::withFolded() const { return get(getContext(), getType(), getReasons(), getUser(), true); }

PrecisionAttr PrecisionAttr::mergedWith(PrecisionAttr Other) const {
  llvm::SmallSetVector<PrecisionReasonAttr, 4> Reasons;
  Reasons.insert_range(getReasons());
  Reasons.insert_range(Other.getReasons());
  return get(getContext(), getType(), Reasons.getArrayRef(), getUser() || Other.getUser(),
             getFolded() || Other.getFolded());
}

// "level "O2"", "cut".
static PrecisionReasonAttr parseReason(AsmParser &Parser) {
  SMLoc Loc = Parser.getCurrentLocation();
  StringRef Word;
  if (Parser.parseKeyword(&Word))
    return {};
  std::optional<PrecisionRule> Rule = symbolizePrecisionRule(Word);
  if (!Rule) {
    InFlightDiagnostic Error = Parser.emitError(Loc) << "the rule '" << Word << "' is unknown; there are ";
    llvm::interleaveComma(llvm::seq(getMaxEnumValForPrecisionRule() + 1), Error,
                          [&](unsigned Known) { Error << stringifyPrecisionRule(*symbolizePrecisionRule(Known)); });
    return {};
  }
  std::string Detail;
  (void)Parser.parseOptionalString(&Detail);
  return PrecisionReasonAttr::get(Parser.getContext(), *Rule, Detail);
}

static void printReason(AsmPrinter &Printer, PrecisionReasonAttr Reason) {
  Printer << stringifyPrecisionRule(Reason.getRule());
  if (Reason.getDetail().empty())
    return;
  Printer << " ";
  Printer.printString(Reason.getDetail());
}

Attribute PrecisionReasonAttr::parse(AsmParser &Parser, Type) {
  if (Parser.parseLess())
    return {};
  PrecisionReasonAttr Reason = parseReason(Parser);
  return Reason && succeeded(Parser.parseGreater()) ? Reason : PrecisionReasonAttr();
}

void PrecisionReasonAttr::print(AsmPrinter &Printer) const {
  Printer << "<";
  printReason(Printer, *this);
  Printer << ">";
}

// "<f16, cut | level "O2", user, folded>"; without a floating result there is no type.
Attribute PrecisionAttr::parse(AsmParser &Parser, Type) {
  Type Decided;
  SmallVector<PrecisionReasonAttr> Reasons;
  if (Parser.parseLess())
    return {};
  OptionalParseResult HasType = Parser.parseOptionalType(Decided);
  if (HasType.has_value() && (failed(*HasType) || Parser.parseComma()))
    return {};
  do {
    PrecisionReasonAttr Reason = parseReason(Parser);
    if (!Reason)
      return {};
    Reasons.push_back(Reason);
  } while (succeeded(Parser.parseOptionalVerticalBar()));
  bool User = false, Folded = false;
  while (succeeded(Parser.parseOptionalComma())) {
    SMLoc Loc = Parser.getCurrentLocation();
    StringRef Mark;
    if (Parser.parseKeyword(&Mark))
      return {};
    bool &Known = Mark == "user" ? User : Folded;
    if ((Mark != "user" && Mark != "folded") || Known) {
      Parser.emitError(Loc) << "a precision may be marked user and folded, once each; got '" << Mark << "'";
      return {};
    }
    Known = true;
  }
  if (Parser.parseGreater())
    return {};
  return Parser.getChecked<PrecisionAttr>(Parser.getContext(), Decided, ArrayRef(Reasons), User, Folded);
}

void PrecisionAttr::print(AsmPrinter &Printer) const {
  Printer << "<";
  if (getType())
    Printer << getType() << ", ";
  llvm::interleave(
      getReasons(), Printer.getStream(), [&](PrecisionReasonAttr Reason) { printReason(Printer, Reason); }, " | ");
  Printer << (getUser() ? ", user" : "") << (getFolded() ? ", folded" : "") << ">";
}

} // namespace mpc
