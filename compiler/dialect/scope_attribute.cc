// The text of #mpc.scope.
#include "compiler/dialect/dialect.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;

namespace mpc {

// One of `network`, `pin = f16`, `level = "O1"`, `low = bf16`.
static ParseResult parseMember(AsmParser &parser, bool &network, Type &pin, std::string &level, Type &low) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef name;
  if (parser.parseKeyword(&name))
    return failure();
  if (name == "network") {
    network = true;
    return success();
  }
  if (name == "pin")
    return failure(parser.parseEqual() || parser.parseType(pin));
  if (name == "level")
    return failure(parser.parseEqual() || parser.parseString(&level));
  if (name == "low")
    return failure(parser.parseEqual() || parser.parseType(low));
  return parser.emitError(loc) << "a scope has a path, network, pin, level and low; got '" << name << "'";
}

Attribute ScopeAttr::parse(AsmParser &parser, Type) {
  std::string path, level;
  bool network = false;
  Type pin, low;
  if (parser.parseLess() || parser.parseString(&path))
    return {};
  while (succeeded(parser.parseOptionalComma()))
    if (parseMember(parser, network, pin, level, low))
      return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<ScopeAttr>(parser.getContext(), StringRef(path), network, pin, StringRef(level), low);
}

void ScopeAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printString(getPath());
  printer << (getNetwork() ? ", network" : "");
  if (getPin())
    printer << ", pin = " << getPin();
  if (!getLevel().empty()) {
    printer << ", level = ";
    printer.printString(getLevel());
  }
  if (getLow())
    printer << ", low = " << getLow();
  printer << ">";
}

} // namespace mpc
