#include "compiler/codegen/host_conversion.h"

namespace mpc::codegen {

Float HostConversion::widen(llvm::Value *Stored, mlir::Type StorageType) {
  llvm::IRBuilder<> &B = EmissionScope::builder();
  llvm::Type *F32 = typeLike(B.getFloatTy(), Stored);
  if (StorageType.isF16())
    return Float(B.CreateFPExt(B.CreateBitCast(Stored, typeLike(B.getHalfTy(), Stored)), F32));
  llvm::Value *Bits = B.CreateShl(B.CreateZExt(Stored, typeLike(B.getInt32Ty(), Stored)), 16);
  return Float(B.CreateBitCast(Bits, F32));
}

llvm::Value *HostConversion::round(Float Value, mlir::Type StorageType) {
  llvm::IRBuilder<> &B = EmissionScope::builder();
  llvm::Value *V = Value.value();
  llvm::Type *I16 = typeLike(B.getInt16Ty(), V);
  if (StorageType.isF16())
    return B.CreateBitCast(B.CreateFPTrunc(V, typeLike(B.getHalfTy(), V)), I16);
  Unsigned Bits(B.CreateBitCast(V, typeLike(B.getInt32Ty(), V)));
  Unsigned Rounded = (Bits + Unsigned(0x7fff) + ((Bits >> Unsigned(16)) & Unsigned(1))) >> Unsigned(16);
  Unsigned Quiet = (Bits >> Unsigned(16)) | Unsigned(0x40);
  return B.CreateTrunc(select(Value != Value, Quiet, Rounded).value(), I16);
}

} // namespace mpc::codegen
