#include "compiler/dialect/word_attributes.h"

#include "compiler/dialect/dialect.h"
#include "kernels/known_attributes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace mpc {

namespace {

/// An attribute that takes words.
struct WordsOfAttribute {
  StringRef name;
  ArrayRef<std::string_view> words;
  Attribute (*create)(MLIRContext *, StringRef);
};

} // namespace

template <typename Kind> static Attribute create(MLIRContext *context, StringRef word) {
  using Enum = typename Kind::Enum;
  std::optional<Enum> value = ParseEnum<Enum>(word);
  return value ? Kind::get(context, *value) : Attribute();
}

template <typename Kind, typename Known> static WordsOfAttribute takesWordsOf(const Known &attribute) {
  return {StringRef(attribute.name), NamesOf<typename Kind::Enum>(), create<Kind>};
}

static const WordsOfAttribute *find(StringRef name) {
  using namespace attribute;
  static const WordsOfAttribute all[] = {
      takesWordsOf<DataFormatAttr>(kDataFormat),     takesWordsOf<PadModeAttr>(kPadMode),
      takesWordsOf<LossReductionAttr>(kReduction),   takesWordsOf<ActivationAttr>(kActivation),
      takesWordsOf<ApproximationAttr>(kApproximate), takesWordsOf<InterpolationAttr>(kInterpolation),
      takesWordsOf<CoordinatesAttr>(kCoordinates),   takesWordsOf<LowCopyAttr>(kLowCopy),
      takesWordsOf<DistributionAttr>(kDistribution),
  };
  const WordsOfAttribute *found = llvm::find_if(all, [&](const WordsOfAttribute &one) { return one.name == name; });
  return found == std::end(all) ? nullptr : found;
}

Attribute wordAttribute(MLIRContext *context, StringRef name, StringRef word) {
  const WordsOfAttribute *attribute = find(name);
  return attribute ? attribute->create(context, word) : Attribute();
}

ArrayRef<std::string_view> wordsOf(StringRef name) {
  const WordsOfAttribute *attribute = find(name);
  return attribute ? attribute->words : ArrayRef<std::string_view>();
}

std::optional<StringRef> wordOf(Attribute given) {
  return llvm::TypeSwitch<Attribute, std::optional<StringRef>>(given)
      .Case<DataFormatAttr, PadModeAttr, LossReductionAttr, ActivationAttr, ApproximationAttr, InterpolationAttr,
            CoordinatesAttr, LowCopyAttr, DistributionAttr>([](auto attribute) { return wordOf(attribute.getValue()); })
      .Default(std::nullopt);
}

} // namespace mpc
