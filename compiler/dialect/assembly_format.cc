#include "compiler/dialect/assembly_format.h"

#include "compiler/dialect/operation_attributes.h"

using namespace mlir;

namespace mpc {

static StringRef precisionName() { return MpcDialect::PrecisionAttrHelper::getNameStr(); }
static StringRef scopeName() { return MpcDialect::ScopeAttrHelper::getNameStr(); }
static StringRef backwardName() { return MpcDialect::BackwardAttrHelper::getNameStr(); }

// The type that all operands and the only result have, or null.
static Type commonType(Operation *op) {
  if (op->getNumOperands() == 0 || op->getNumResults() != 1)
    return {};
  Type type = op->getResult(0).getType();
  return llvm::all_equal(op->getOperandTypes()) && op->getOperand(0).getType() == type ? type : Type();
}

// Whether the parser reads `text` as it was: an i64, or an f32 with a decimal point. Hexadecimal digits would be an
// i64.
static bool readsWithoutType(TypedAttr number, StringRef text) {
  return number.getType().isSignlessInteger(64) || (number.getType().isF32() && text.contains('.'));
}

static std::string textWithoutType(Attribute value) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  value.print(stream, /*elideType=*/true);
  return text;
}

// The text of an attribute that ODS gives the operation. Empty: it has no shorter one than MLIR's.
static std::string shortText(Attribute value) {
  if (std::optional<StringRef> word = wordOf(value))
    return word->str();
  if (auto numbers = dyn_cast<DenseI64ArrayAttr>(value)) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    llvm::interleaveComma(numbers.asArrayRef(), stream << "[");
    stream << "]";
    return text;
  }
  if (!isa<IntegerAttr, FloatAttr>(value))
    return "";
  std::string text = textWithoutType(value);
  return readsWithoutType(cast<TypedAttr>(value), text) ? text : "";
}

// Whether ODS gives operations of this name the attribute.
static bool isInherent(OperationName operation, StringRef attribute) {
  return llvm::is_contained(operation.getAttributeNames(), attribute);
}

static void printNamedAttribute(OpAsmPrinter &printer, OperationName operation, NamedAttribute named) {
  StringRef name = named.getName().getValue();
  if (std::string text = isInherent(operation, name) ? shortText(named.getValue()) : ""; !text.empty())
    printer << name << " = " << text;
  else
    printer.printNamedAttribute(named);
}

static bool beginsWith(TypeRange types, TypeRange first) {
  return first.size() <= types.size() && types.take_front(first.size()) == first;
}

static void printAttributes(OpAsmPrinter &printer, OperationName operation, ArrayRef<NamedAttribute> attributes) {
  if (attributes.empty())
    return;
  printer << " {";
  llvm::interleaveComma(attributes, printer,
                        [&](NamedAttribute named) { printNamedAttribute(printer, operation, named); });
  printer << "}";
}

// What stands in the dictionary: neither defaults nor what has a place of its own.
static SmallVector<NamedAttribute> printedAttributes(Operation *op, DictionaryAttr defaults) {
  return llvm::to_vector(llvm::make_filter_range(op->getAttrs(), [&](NamedAttribute named) {
    StringRef name = named.getName().getValue();
    bool isDefault = defaults && defaults.get(named.getName()) == named.getValue();
    return name != precisionName() && name != scopeName() && name != backwardName() && !isDefault;
  }));
}

// A scope of a network that has nothing but a path.
static ScopeAttr plainScope(MLIRContext *context, StringRef path) {
  return ScopeAttr::get(context, path, /*network=*/true, /*pin=*/{}, /*level=*/"", /*low=*/{});
}

static void printScope(OpAsmPrinter &printer, ScopeAttr scope) {
  printer << " in ";
  if (scope == plainScope(scope.getContext(), scope.getPath()))
    printer.printString(scope.getPath());
  else
    printer.printStrippedAttrOrType(scope);
}

void printOperation(OpAsmPrinter &printer, Operation *op, DictionaryAttr defaults) {
  if (op->getNumOperands() > 0)
    printer << " " << op->getOperands();
  printAttributes(printer, op->getName(), printedAttributes(op, defaults));
  if (isMarkedBackward(op))
    printer << " backward";
  if (PrecisionAttr precision = precisionOf(op)) {
    printer << " as ";
    printer.printStrippedAttrOrType(precision);
  }
  if (ScopeAttr scope = scopeOf(op))
    printScope(printer, scope);
  printer << " : ";
  if (Type type = commonType(op))
    printer << type;
  else if (op->hasTrait<StateUpdate>() && beginsWith(op->getOperandTypes(), op->getResultTypes()))
    printer << "(" << op->getOperandTypes() << ")";
  else
    printer.printFunctionalType(op);
}

void printHeldTypes(OpAsmPrinter &printer, Operation *op, Type condition, TypeRange held, TypeRange updated) {
  auto scalar = RankedTensorType::get({}, IntegerType::get(op->getContext(), 1));
  if (condition == scalar && held == updated && !held.empty())
    printer << held;
  else
    printer.printFunctionalType(op);
}

static ParseResult parseWord(OpAsmParser &parser, StringRef name, Attribute &value) {
  SMLoc loc = parser.getCurrentLocation();
  std::string word;
  if (failed(parser.parseOptionalKeywordOrString(&word)))
    return parser.parseAttribute(value);
  value = wordAttribute(parser.getContext(), name, word);
  if (value)
    return success();
  return listWords(parser.emitError(loc) << "'" << name << "' is one of ", wordsOf(name), word);
}

static ParseResult parseNumbers(OpAsmParser &parser, Attribute &value) {
  SmallVector<int64_t> numbers;
  auto parseNumber = [&] { return parser.parseInteger(numbers.emplace_back()); };
  if (failed(parser.parseOptionalRSquare()) && (parser.parseCommaSeparatedList(parseNumber) || parser.parseRSquare()))
    return failure();
  value = parser.getBuilder().getDenseI64ArrayAttr(numbers);
  return success();
}

// A number that is written without a type is an f32 where it has a decimal point. MLIR's parser makes it an f64.
static ParseResult parseNumberOrAttribute(OpAsmParser &parser, Attribute &value) {
  const char *begin = parser.getCurrentLocation().getPointer();
  if (parser.parseAttribute(value))
    return failure();
  StringRef text(begin, parser.getCurrentLocation().getPointer() - begin);
  if (auto number = dyn_cast<FloatAttr>(value); number && !text.contains(':'))
    value = parser.getBuilder().getF32FloatAttr(static_cast<float>(number.getValueAsDouble()));
  return success();
}

// The value of an attribute that ODS gives the operation: a word, with quotes or without; integers in brackets; a
// number or any attribute.
static ParseResult parseInherentValue(OpAsmParser &parser, StringRef name, Attribute &value) {
  if (!wordsOf(name).empty())
    return parseWord(parser, name, value);
  if (succeeded(parser.parseOptionalLSquare()))
    return parseNumbers(parser, value);
  return parseNumberOrAttribute(parser, value);
}

// Adds an attribute. Errors: there is one of this name.
static ParseResult addOnce(OpAsmParser &parser, SMLoc loc, StringRef name, Attribute value, NamedAttrList &attributes) {
  if (attributes.get(name))
    return parser.emitError(loc) << "attribute '" << name << "' occurs more than once";
  attributes.append(name, value);
  return success();
}

static ParseResult parseNamedAttribute(OpAsmParser &parser, OperationState &state) {
  SMLoc loc = parser.getCurrentLocation();
  std::string name;
  if (parser.parseKeywordOrString(&name))
    return failure();
  Attribute value = parser.getBuilder().getUnitAttr();
  if (succeeded(parser.parseOptionalEqual()) &&
      (isInherent(state.name, name) ? parseInherentValue(parser, name, value) : parser.parseAttribute(value)))
    return failure();
  return addOnce(parser, loc, name, value, state.attributes);
}

// What stands in the attribute's brackets, the attribute, or an alias. A type behind it is the operation's.
template <typename Kind> static ParseResult parseStripped(OpAsmParser &parser, Kind &value) {
  return parser.parseCustomAttributeWithFallback(value, parser.getBuilder().getNoneType());
}

static ParseResult parseScopeOrPath(OpAsmParser &parser, ScopeAttr &scope) {
  std::string path;
  if (failed(parser.parseOptionalString(&path)))
    return parseStripped(parser, scope);
  scope = plainScope(parser.getContext(), path);
  return success();
}

// An attribute behind its keyword.
template <typename Kind>
static ParseResult parseBehind(StringRef keyword, StringRef name, ParseResult (*parse)(OpAsmParser &, Kind &),
                               OpAsmParser &parser, NamedAttrList &attributes) {
  SMLoc loc = parser.getCurrentLocation();
  if (failed(parser.parseOptionalKeyword(keyword)))
    return success();
  Kind value;
  if (parse(parser, value))
    return failure();
  return addOnce(parser, loc, name, value, attributes);
}

static ParseResult parseAttributes(OpAsmParser &parser, OperationState &state) {
  SMLoc loc = parser.getCurrentLocation();
  NamedAttrList &attributes = state.attributes;
  if (succeeded(parser.parseOptionalLBrace()) && failed(parser.parseOptionalRBrace()) &&
      (parser.parseCommaSeparatedList([&] { return parseNamedAttribute(parser, state); }) || parser.parseRBrace()))
    return failure();
  SMLoc mark = parser.getCurrentLocation();
  if (succeeded(parser.parseOptionalKeyword("backward")) &&
      addOnce(parser, mark, backwardName(), parser.getBuilder().getUnitAttr(), attributes))
    return failure();
  if (parseBehind("as", precisionName(), parseStripped<PrecisionAttr>, parser, attributes) ||
      parseBehind("in", scopeName(), parseScopeOrPath, parser, attributes))
    return failure();
  // Properties take no attribute of a wrong type: it would be gone without a word.
  return state.name.verifyInherentAttrs(attributes, [&] { return parser.emitError(loc); });
}

// Types up to the closing parenthesis.
static ParseResult parseTypesInParentheses(OpAsmParser &parser, SmallVectorImpl<Type> &types) {
  if (succeeded(parser.parseOptionalRParen()))
    return success();
  return failure(parser.parseTypeList(types) || parser.parseRParen());
}

// Behind "(": the types of the operands, then those of the results. An update of state may leave out the latter.
static ParseResult parseFunctionTypes(OpAsmParser &parser, bool updatesState, SmallVectorImpl<Type> &operands,
                                      SmallVectorImpl<Type> &results) {
  SMLoc loc = parser.getCurrentLocation();
  if (parseTypesInParentheses(parser, operands) || parser.parseOptionalArrowTypeList(results))
    return failure();
  if (!results.empty())
    return success();
  size_t count = parser.getNumResults();
  if (!updatesState || count == 0 || count > operands.size())
    return parser.emitError(loc) << "expected '->' and the types of the results; only an update of state, whose "
                                    "results have names, may leave them out";
  llvm::append_range(results, ArrayRef(operands).take_front(count));
  return success();
}

ParseResult parseOperation(OpAsmParser &parser, OperationState &state) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  if (parser.parseOperandList(operands) || parseAttributes(parser, state) || parser.parseColon())
    return failure();
  if (succeeded(parser.parseOptionalLParen())) {
    SmallVector<Type> types;
    return failure(parseFunctionTypes(parser, state.name.hasTrait<StateUpdate>(), types, state.types) ||
                   parser.resolveOperands(operands, types, loc, state.operands));
  }
  Type type;
  if (parser.parseType(type))
    return failure();
  if (operands.empty())
    return parser.emitError(loc) << "one type stands for all operands and the result; without operands, write () -> "
                                 << type;
  state.addTypes(type);
  return parser.resolveOperands(operands, type, state.operands);
}

ParseResult parseHeldTypes(OpAsmParser &parser, Type &condition, SmallVectorImpl<Type> &held,
                           SmallVectorImpl<Type> &updated) {
  if (failed(parser.parseOptionalLParen())) {
    condition = RankedTensorType::get({}, parser.getBuilder().getI1Type());
    if (parser.parseTypeList(held))
      return failure();
    updated = held;
    return success();
  }
  if (parser.parseType(condition))
    return failure();
  while (succeeded(parser.parseOptionalComma()))
    if (parser.parseType(held.emplace_back()))
      return failure();
  return failure(parser.parseRParen() || parser.parseArrowTypeList(updated));
}

} // namespace mpc
