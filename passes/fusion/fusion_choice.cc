#include "passes/fusion/fusion_choice.h"

#include "compiler/dialect/operation_attributes.h"

using namespace mlir;

namespace mpc {

static constexpr StringLiteral bytesSavedName = "bytes_saved";
static constexpr StringLiteral leftOutName = "left_out";

void writeFusionChoice(FusionOp fusion, const FusionChoice &choice) {
  Builder b(fusion.getContext());
  SmallVector<StringRef> leftOut(choice.leftOut.begin(), choice.leftOut.end());
  DictionaryAttr written = b.getDictionaryAttr({b.getNamedAttr(bytesSavedName, b.getI64IntegerAttr(choice.bytesSaved)),
                                                b.getNamedAttr(leftOutName, b.getStrArrayAttr(leftOut))});
  dialectOf(fusion).getFusionChoiceAttrHelper().setAttr(fusion, written);
}

FusionChoice readFusionChoice(FusionOp fusion) {
  FusionChoice choice;
  DictionaryAttr written = dialectOf(fusion).getFusionChoiceAttrHelper().getAttr(fusion);
  if (!written)
    return choice;
  if (auto bytes = written.getAs<IntegerAttr>(bytesSavedName))
    choice.bytesSaved = bytes.getInt();
  if (auto leftOut = written.getAs<ArrayAttr>(leftOutName))
    for (auto text : leftOut.getAsRange<StringAttr>())
      choice.leftOut.push_back(text.str());
  return choice;
}

} // namespace mpc
