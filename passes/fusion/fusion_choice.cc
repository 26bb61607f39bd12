#include "passes/fusion/fusion_choice.h"

#include "compiler/dialect/operation_attributes.h"

using namespace mlir;

namespace mpc {

static constexpr StringLiteral BytesSavedName = "bytes_saved";
static constexpr StringLiteral LeftOutName = "left_out";

void writeFusionChoice(FusionOp Fusion, const FusionChoice &Choice) {
  Builder B(Fusion.getContext());
  SmallVector<StringRef> LeftOut(Choice.LeftOut.begin(), Choice.LeftOut.end());
  DictionaryAttr Written = B.getDictionaryAttr({B.getNamedAttr(BytesSavedName, B.getI64IntegerAttr(Choice.BytesSaved)),
                                                B.getNamedAttr(LeftOutName, B.getStrArrayAttr(LeftOut))});
  dialectOf(Fusion).getFusionChoiceAttrHelper().setAttr(Fusion, Written);
}

FusionChoice readFusionChoice(FusionOp Fusion) {
  FusionChoice Choice;
  DictionaryAttr Written = dialectOf(Fusion).getFusionChoiceAttrHelper().getAttr(Fusion);
  if (!Written)
    return Choice;
  if (auto Bytes = Written.getAs<IntegerAttr>(BytesSavedName))
    Choice.BytesSaved = Bytes.getInt();
  if (auto LeftOut = Written.getAs<ArrayAttr>(LeftOutName))
    for (auto Text : LeftOut.getAsRange<StringAttr>())
      Choice.LeftOut.push_back(Text.str());
  return Choice;
}

} // namespace mpc
