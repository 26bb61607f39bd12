// The forms of generated code that a test binary runs: the host's, or the GPU's in the emulation. The same tests are
// linked with either.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "tests/compiler/codegen/loaded_fusions.h"

namespace mpc::test {

struct FusionForm {
  codegen::CodeTarget target;
  llvm::ArrayRef<ProvidedFunction> provided;
  /// Orders of tiles, of threads and of blocks that must all give the same bits.
  int orders;
  /// Runs inputs and then outputs, with `workspace` of code.workspace_bytes, in an order below `orders`.
  absl::Status (*run)(const LoadedFusion& region, void* const* operands, void* workspace, int order);
  /// Whether the code of two regions, which reduce alike, adds in the same order.
  bool (*same_tiling)(const codegen::CodeTarget& target, FusionOp a, FusionOp b);
};

/// The first is the product's. On the host then narrower vectors, and at last results that are all stored around the
/// caches.
std::vector<FusionForm> FusionForms();

}  // namespace mpc::test
