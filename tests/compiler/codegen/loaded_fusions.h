// Regions compiled as the product compiles them, loaded into this process: any number of them in one module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/codegen/fusion_emitter.h"

namespace llvm::orc {
class LLJIT;
}

namespace mpc::test {

/// The code of one region.
struct LoadedFusion {
  using Function = void (*)(void* const*, void*, std::int64_t);
  codegen::FusionCode code;
  llvm::SmallVector<Function> functions;  ///< of its stages
};

/// A function that generated code may call.
struct ProvidedFunction {
  std::string_view name;
  void* address;
};

class LoadedFusions {
 public:
  /// `provided` are called beside memcpy and memset. Errors: INVALID_ARGUMENT where a region cannot be emitted,
  /// INTERNAL where LLVM refuses what was.
  static absl::StatusOr<std::unique_ptr<LoadedFusions>> Create(llvm::ArrayRef<FusionOp> regions,
                                                               const codegen::CodeTarget& target,
                                                               llvm::ArrayRef<ProvidedFunction> provided = {});
  ~LoadedFusions();

  /// In the order in which they were given.
  const std::vector<LoadedFusion>& regions() const { return regions_; }

 private:
  LoadedFusions() = default;
  absl::Status Load(llvm::ArrayRef<std::uint8_t> object, llvm::ArrayRef<ProvidedFunction> provided);

  std::unique_ptr<llvm::orc::LLJIT> jit_;
  std::vector<LoadedFusion> regions_;
};

}  // namespace mpc::test
