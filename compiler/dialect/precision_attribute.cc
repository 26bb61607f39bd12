// `#mpc.precision`: how it reads, and what merging and folding make of it.
#include "compiler/dialect/dialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace mpc {

LogicalResult PrecisionAttr::verify(function_ref<InFlightDiagnostic()> emitError, Type decided,
                                    ArrayRef<PrecisionReasonAttr> reasons, bool, bool) {
  if (decided && !isa<FloatType>(decided))
    return emitError() << "a precision is a floating type, got " << decided;
  if (reasons.empty())
    return emitError() << "a precision has at least one reason";
  for (auto [index, reason] : llvm::enumerate(reasons))
    if (llvm::is_contained(reasons.take_front(index), reason))
      return emitError() << "a precision has the reason " << reason << " twice";
  return success();
}

PrecisionAttr PrecisionAttr::withFolded() const { return get(getContext(), getType(), getReasons(), getUser(), true); }

PrecisionAttr PrecisionAttr::mergedWith(PrecisionAttr other) const {
  llvm::SmallSetVector<PrecisionReasonAttr, 4> reasons;
  reasons.insert_range(getReasons());
  reasons.insert_range(other.getReasons());
  return get(getContext(), getType(), reasons.getArrayRef(), getUser() || other.getUser(),
             getFolded() || other.getFolded());
}

// "level "O2"", "cut".
static PrecisionReasonAttr parseReason(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef word;
  if (parser.parseKeyword(&word))
    return {};
  std::optional<PrecisionRule> rule = symbolizePrecisionRule(word);
  if (!rule) {
    InFlightDiagnostic error = parser.emitError(loc) << "the rule '" << word << "' is unknown; there are ";
    llvm::interleaveComma(llvm::seq(getMaxEnumValForPrecisionRule() + 1), error,
                          [&](unsigned known) { error << stringifyPrecisionRule(*symbolizePrecisionRule(known)); });
    return {};
  }
  std::string detail;
  (void)parser.parseOptionalString(&detail);
  return PrecisionReasonAttr::get(parser.getContext(), *rule, detail);
}

static void printReason(AsmPrinter &printer, PrecisionReasonAttr reason) {
  printer << stringifyPrecisionRule(reason.getRule());
  if (reason.getDetail().empty())
    return;
  printer << " ";
  printer.printString(reason.getDetail());
}

Attribute PrecisionReasonAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  PrecisionReasonAttr reason = parseReason(parser);
  return reason && succeeded(parser.parseGreater()) ? reason : PrecisionReasonAttr();
}

void PrecisionReasonAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printReason(printer, *this);
  printer << ">";
}

// "<f16, cut | level "O2", user, folded>"; without a floating result there is no type.
Attribute PrecisionAttr::parse(AsmParser &parser, Type) {
  Type decided;
  SmallVector<PrecisionReasonAttr> reasons;
  if (parser.parseLess())
    return {};
  OptionalParseResult hasType = parser.parseOptionalType(decided);
  if (hasType.has_value() && (failed(*hasType) || parser.parseComma()))
    return {};
  do {
    PrecisionReasonAttr reason = parseReason(parser);
    if (!reason)
      return {};
    reasons.push_back(reason);
  } while (succeeded(parser.parseOptionalVerticalBar()));
  bool user = false, folded = false;
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc loc = parser.getCurrentLocation();
    StringRef mark;
    if (parser.parseKeyword(&mark))
      return {};
    bool &known = mark == "user" ? user : folded;
    if ((mark != "user" && mark != "folded") || known) {
      parser.emitError(loc) << "a precision may be marked user and folded, once each; got '" << mark << "'";
      return {};
    }
    known = true;
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<PrecisionAttr>(parser.getContext(), decided, ArrayRef(reasons), user, folded);
}

void PrecisionAttr::print(AsmPrinter &printer) const {
  printer << "<";
  if (getType())
    printer << getType() << ", ";
  llvm::interleave(
      getReasons(), printer.getStream(), [&](PrecisionReasonAttr reason) { printReason(printer, reason); }, " | ");
  printer << (getUser() ? ", user" : "") << (getFolded() ? ", folded" : "") << ">";
}

} // namespace mpc
