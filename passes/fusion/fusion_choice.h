// What mpc-fusion reports about a region, as a discardable attribute of mpc.fusion.
#pragma once

#include "compiler/dialect/dialect.h"

#include <string>

namespace mpc {

/// `{bytes_saved = 4096 : i64, left_out = ["conv2d in net/conv1: it is not computed element by element"]}`
struct FusionChoice {
  int64_t bytesSaved = 0;                 ///< bytes that a run moves less than the operations alone would
  llvm::SmallVector<std::string> leftOut; ///< neighbours, with the first thing that speaks against them
};

void writeFusionChoice(FusionOp fusion, const FusionChoice &choice);
/// Empty for a region that says nothing.
FusionChoice readFusionChoice(FusionOp fusion);

} // namespace mpc
