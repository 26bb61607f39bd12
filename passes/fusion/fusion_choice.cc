#include "passes/fusion/fusion_choice.h"

using namespace mlir;

namespace mpc {

static constexpr StringLiteral BytesSavedName = "bytes_saved";
static constexpr StringLiteral LeftOutName = "left_out";

void writeFusionChoice(FusionOp Fusion, const FusionChoice &Choice) {
  Builder B(Fusion.getContext());
  SmallVector<StringRef> LeftOut(Choice.LeftOut.begin(), Choice.LeftOut.end());
  Fusion->setAttr(FusionChoiceAttrName,
                  B.getDictionaryAttr({B.getNamedAttr(BytesSavedName, B.getI64IntegerAttr(Choice.BytesSaved)),
                                       B.getNamedAttr(LeftOutName, B.getStrArrayAttr(LeftOut))}));
}

FusionChoice readFusionChoice(FusionOp Fusion) {
  FusionChoice Choice;
  auto Written = Fusion->getAttrOfType<DictionaryAttr>(FusionChoiceAttrName);
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
