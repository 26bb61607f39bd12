#include "compiler/codegen/gpu_builtins.h"

#include "compiler/codegen/control_flow.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace mpc::codegen {

namespace {

constexpr unsigned GlobalSpace = 1;
constexpr unsigned SharedSpace = 3;

/// PTX: special registers, intrinsics and instructions of the machine.
class NvptxBuiltins final : public GpuBuiltins {
public:
  NvptxBuiltins(llvm::Module &Module, llvm::IRBuilder<> &Builder, const Signature &Of) : GpuBuiltins(Module, Builder) {
    llvm::SmallVector<llvm::Type *> Types(Of.Operands + (Of.Workspace ? 1 : 0), B.getPtrTy(GlobalSpace));
    Function = beginFunction(B, Module, Of.Name, Types);
    Function->setCallingConv(llvm::CallingConv::PTX_Kernel);
    Function->addFnAttr("nvvm.reqntid", std::to_string(Of.Threads));
    Function->addFnAttr(llvm::Attribute::NoUnwind);
    for (unsigned I = 0; I < Of.Operands; ++I)
      Operands.push_back(Function->getArg(I));
    if (Of.Workspace)
      Workspace = Function->getArg(Of.Operands);
    Thread = B.CreateIntrinsic(B.getInt32Ty(), llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {});
    Block = B.CreateIntrinsic(B.getInt32Ty(), llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {});
    Shared = Storage = array(1, Of.Name + "_shared");
  }

  void barrier() override {
    B.CreateIntrinsic(B.getVoidTy(), llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all, {B.getInt32(0)});
  }

  void end(unsigned SharedBytes) override {
    if (SharedBytes == 0)
      return Storage->eraseFromParent();
    llvm::GlobalVariable *Sized = array(SharedBytes, "");
    Sized->takeName(Storage);
    Storage->replaceAllUsesWith(Sized);
    Storage->eraseFromParent();
  }

  llvm::Value *round(Float Value, mlir::Type StorageType) override {
    return roundByTarget(Value, StorageType.isBF16() ? B.getBFloatTy() : B.getHalfTy());
  }

protected:
  llvm::Value *shuffleBits(llvm::Value *Bits, unsigned Mask) override {
    // 31: sources from the whole warp.
    return B.CreateIntrinsic(B.getInt32Ty(), llvm::Intrinsic::nvvm_shfl_sync_bfly_i32,
                             {B.getInt32(~0u), Bits, B.getInt32(Mask), B.getInt32(WarpSize - 1)});
  }

private:
  llvm::GlobalVariable *array(unsigned Bytes, const llvm::Twine &Name) {
    auto *Type = llvm::ArrayType::get(B.getInt8Ty(), Bytes);
    auto *Array = new llvm::GlobalVariable(Module, Type, /*isConstant=*/false, llvm::GlobalValue::InternalLinkage,
                                           llvm::PoisonValue::get(Type), Name, /*InsertBefore=*/nullptr,
                                           llvm::GlobalValue::NotThreadLocal, SharedSpace);
    Array->setAlignment(llvm::Align(16));
    return Array;
  }

  llvm::GlobalVariable *Storage; ///< one byte until the function ends
};

/// Host code that a thread of the emulation runs; its block is the last argument.
class EmulatedBuiltins final : public GpuBuiltins {
public:
  EmulatedBuiltins(llvm::Module &Module, llvm::IRBuilder<> &Builder, const Signature &Of)
      : GpuBuiltins(Module, Builder) {
    llvm::Type *Pointer = B.getPtrTy();
    Function = beginFunction(B, Module, Of.Name, {Pointer, Pointer, B.getInt64Ty()});
    for (unsigned I = 0; I < Of.Operands; ++I)
      Operands.push_back(B.CreateLoad(Pointer, B.CreateConstGEP1_64(Pointer, Function->getArg(0), I)));
    Workspace = Function->getArg(1);
    Thread = call(gpu_builtins::Thread, B.getInt32Ty(), {});
    Block = B.CreateTrunc(Function->getArg(2), B.getInt32Ty());
    Shared = call(gpu_builtins::Shared, B.getPtrTy(), {});
  }

  void barrier() override { call(gpu_builtins::Barrier, B.getVoidTy(), {}); }
  void end(unsigned) override {}

  llvm::Value *round(Float Value, mlir::Type StorageType) override {
    if (StorageType.isF16())
      return roundByTarget(Value, B.getHalfTy());
    llvm::Value *V = Value.value();
    // To nearest even on the bits: not every host rounds bf16, and some that do lose subnormals.
    llvm::Type *Wide = typeLike(B.getInt32Ty(), V), *Narrow = typeLike(B.getInt16Ty(), V);
    llvm::Value *Bits = B.CreateBitCast(V, Wide);
    llvm::Value *Odd = B.CreateAnd(B.CreateLShr(Bits, 16), llvm::ConstantInt::get(Wide, 1));
    llvm::Value *Rounded = B.CreateAdd(Bits, B.CreateAdd(Odd, llvm::ConstantInt::get(Wide, 0x7fff)));
    llvm::Value *Quiet = B.CreateOr(Bits, llvm::ConstantInt::get(Wide, 0x400000));
    llvm::Value *Chosen = B.CreateSelect(B.CreateFCmpUNO(V, V), Quiet, Rounded);
    return B.CreateTrunc(B.CreateLShr(Chosen, 16), Narrow);
  }

protected:
  llvm::Value *shuffleBits(llvm::Value *Bits, unsigned Mask) override {
    return call(gpu_builtins::ShuffleXor, B.getInt32Ty(), {Bits, B.getInt32(Mask)});
  }

private:
  llvm::Value *call(llvm::StringRef Name, llvm::Type *Result, llvm::ArrayRef<llvm::Value *> Arguments) {
    llvm::SmallVector<llvm::Type *> Types;
    for (llvm::Value *Argument : Arguments)
      Types.push_back(Argument->getType());
    return B.CreateCall(Module.getOrInsertFunction(Name, llvm::FunctionType::get(Result, Types, false)), Arguments);
  }
};

} // namespace

std::unique_ptr<GpuBuiltins> GpuBuiltins::begin(Backend Target, llvm::Module &Module, llvm::IRBuilder<> &Builder,
                                                const Signature &Of) {
  if (Target == Backend::Nvptx)
    return std::make_unique<NvptxBuiltins>(Module, Builder, Of);
  return std::make_unique<EmulatedBuiltins>(Module, Builder, Of);
}

llvm::Value *GpuBuiltins::shuffleXor(llvm::Value *V, unsigned Mask) {
  unsigned Words = V->getType()->getPrimitiveSizeInBits().getFixedValue() / 32;
  if (Words == 1)
    return B.CreateBitCast(shuffleBits(B.CreateBitCast(V, B.getInt32Ty()), Mask), V->getType());
  auto *Pair = llvm::FixedVectorType::get(B.getInt32Ty(), Words);
  llvm::Value *Bits = B.CreateBitCast(V, Pair);
  for (unsigned I = 0; I < Words; ++I)
    Bits = B.CreateInsertElement(Bits, shuffleBits(B.CreateExtractElement(Bits, I), Mask), I);
  return B.CreateBitCast(Bits, V->getType());
}

} // namespace mpc::codegen
