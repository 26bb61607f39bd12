// f16 and bf16 to and from f32 on the host, in vector registers.
#pragma once

#include "compiler/codegen/body_emitter.h"

namespace mpc::codegen {

/// f16 by the processor's conversions (F16C), bf16 by integer arithmetic: what kernels/cpu/convert.h does. The
/// processor's own bf16 conversion would flush subnormal numbers. An object serves one function, whose
/// rounded values it remembers.
class HostConversion final : public Conversion {
public:
  /// \p shortensShared: scalars that elements share get a NaN that is cheap to round to bf16.
  explicit HostConversion(bool shortensShared = false) : shortensShared(shortensShared) {}
  Float widen(llvm::Value *stored, mlir::Type storageType) override;
  llvm::Value *round(Float value, mlir::Type storageType) override;
  Float shared(Float value) override;

private:
  bool shortensShared;
  /// The f32 values of bf16 values that were rounded here, so that nothing has to be widened.
  llvm::DenseMap<llvm::Value *, llvm::Value *> rounded;
};

} // namespace mpc::codegen
