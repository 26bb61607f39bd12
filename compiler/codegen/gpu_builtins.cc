#include "compiler/codegen/gpu_builtins.h"

#include "compiler/codegen/control_flow.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace mpc::codegen {

namespace {

constexpr unsigned globalSpace = 1;
constexpr unsigned sharedSpace = 3;

/// The first architectures with programmatic dependent launch, and for which LLVM has prefetches.
constexpr unsigned withEarlyStarts = 90, withPrefetch = 90;

/// PTX: special registers, intrinsics and instructions of the machine.
class NvptxBuiltins final : public GpuBuiltins {
public:
  NvptxBuiltins(llvm::Module &module, llvm::IRBuilder<> &builder, const Signature &of)
      : GpuBuiltins(module, builder), architecture(of.architecture) {
    llvm::SmallVector<llvm::Type *> types(of.operands + (of.workspace ? 1 : 0), b.getPtrTy(globalSpace));
    function = beginFunction(b, module, of.name, types);
    function->setCallingConv(llvm::CallingConv::PTX_Kernel);
    function->addFnAttr("nvvm.reqntid", std::to_string(of.threads));
    if (of.blocksEach != 0)
      function->addFnAttr("nvvm.minctasm", std::to_string(of.blocksEach));
    function->addFnAttr(llvm::Attribute::NoUnwind);
    for (unsigned i = 0; i < of.operands; ++i)
      operands.push_back(function->getArg(i));
    if (of.workspace)
      workspace = function->getArg(of.operands);
    thread = b.CreateIntrinsic(b.getInt32Ty(), llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {});
    block = b.CreateIntrinsic(b.getInt32Ty(), llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {});
    shared = storage = array(1, of.name + "_shared");
    if (architecture >= withEarlyStarts)
      b.CreateIntrinsic(b.getVoidTy(), llvm::Intrinsic::nvvm_griddepcontrol_wait, {});
  }

  void barrier() override {
    b.CreateIntrinsic(b.getVoidTy(), llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all, {b.getInt32(0)});
  }

  void prefetch(llvm::Value *address) override {
    if (architecture >= withPrefetch)
      b.CreateIntrinsic(b.getVoidTy(), llvm::Intrinsic::nvvm_prefetch_global_L2, {address});
  }

  void end(unsigned sharedBytes) override {
    if (sharedBytes == 0)
      return storage->eraseFromParent();
    bool isStatic = sharedBytes <= mostStaticSharedBytes;
    llvm::GlobalVariable *sized = array(isStatic ? sharedBytes : 0, "");
    if (!isStatic) {
      sized->setLinkage(llvm::GlobalValue::ExternalLinkage);
      sized->setInitializer(nullptr);
    }
    sized->takeName(storage);
    storage->replaceAllUsesWith(sized);
    storage->eraseFromParent();
  }

  // Pairs of bf16 are words, of which a shift and a mask make an f32 each.
  Float widen(llvm::Value *stored, mlir::Type storageType) override {
    unsigned lanes = lanesOf(stored);
    if (!storageType.isBF16() || lanes % 2 != 0 || lanes == 0)
      return Conversion::widen(stored, storageType);
    auto *words = llvm::FixedVectorType::get(b.getInt32Ty(), lanes / 2);
    llvm::Value *pairs = b.CreateBitCast(stored, words);
    llvm::Value *even = b.CreateShl(pairs, 16);
    llvm::Value *odd = b.CreateAnd(pairs, llvm::ConstantInt::get(words, 0xffff0000u));
    llvm::SmallVector<int, 8> order;
    for (unsigned i = 0; i < lanes; ++i)
      order.push_back(static_cast<int>(i / 2 + i % 2 * (lanes / 2)));
    llvm::Value *bits = b.CreateShuffleVector(even, odd, order);
    return Float(b.CreateBitCast(bits, llvm::FixedVectorType::get(b.getFloatTy(), lanes)));
  }

  llvm::Value *round(Float value, mlir::Type storageType) override {
    return roundByTarget(value, storageType.isBF16() ? b.getBFloatTy() : b.getHalfTy());
  }

protected:
  llvm::Value *shuffleBits(llvm::Value *bits, unsigned mask) override {
    // 31: sources from the whole warp.
    return b.CreateIntrinsic(b.getInt32Ty(), llvm::Intrinsic::nvvm_shfl_sync_bfly_i32,
                             {b.getInt32(~0u), bits, b.getInt32(mask), b.getInt32(warpSize - 1)});
  }

private:
  llvm::GlobalVariable *array(unsigned bytes, const llvm::Twine &name) {
    auto *type = llvm::ArrayType::get(b.getInt8Ty(), bytes);
    auto *array = new llvm::GlobalVariable(module, type, /*isConstant=*/false, llvm::GlobalValue::InternalLinkage,
                                           llvm::PoisonValue::get(type), name, /*insertBefore=*/nullptr,
                                           llvm::GlobalValue::NotThreadLocal, sharedSpace);
    array->setAlignment(llvm::Align(16));
    return array;
  }

  llvm::GlobalVariable *storage; ///< one byte until the function ends
  const unsigned architecture;
};

/// Host code that a thread of the emulation runs; its block is the last argument.
class EmulatedBuiltins final : public GpuBuiltins {
public:
  EmulatedBuiltins(llvm::Module &module, llvm::IRBuilder<> &builder, const Signature &of)
      : GpuBuiltins(module, builder) {
    llvm::Type *pointer = b.getPtrTy();
    function = beginFunction(b, module, of.name, {pointer, pointer, b.getInt64Ty()});
    for (unsigned i = 0; i < of.operands; ++i)
      operands.push_back(b.CreateLoad(pointer, b.CreateConstGEP1_64(pointer, function->getArg(0), i)));
    workspace = function->getArg(1);
    thread = call(gpu_builtins::thread, b.getInt32Ty(), {});
    block = b.CreateTrunc(function->getArg(2), b.getInt32Ty());
    shared = call(gpu_builtins::shared, b.getPtrTy(), {});
  }

  void barrier() override { call(gpu_builtins::barrier, b.getVoidTy(), {}); }
  void prefetch(llvm::Value *) override {}
  void end(unsigned) override {}

  llvm::Value *round(Float value, mlir::Type storageType) override {
    if (storageType.isF16())
      return roundByTarget(value, b.getHalfTy());
    llvm::Value *v = value.value();
    // To nearest even on the bits: not every host rounds bf16, and some that do lose subnormals.
    llvm::Type *wide = typeLike(b.getInt32Ty(), v), *narrow = typeLike(b.getInt16Ty(), v);
    llvm::Value *bits = b.CreateBitCast(v, wide);
    llvm::Value *odd = b.CreateAnd(b.CreateLShr(bits, 16), llvm::ConstantInt::get(wide, 1));
    llvm::Value *rounded = b.CreateAdd(bits, b.CreateAdd(odd, llvm::ConstantInt::get(wide, 0x7fff)));
    llvm::Value *quiet = b.CreateOr(bits, llvm::ConstantInt::get(wide, 0x400000));
    llvm::Value *chosen = b.CreateSelect(b.CreateFCmpUNO(v, v), quiet, rounded);
    return b.CreateTrunc(b.CreateLShr(chosen, 16), narrow);
  }

protected:
  llvm::Value *shuffleBits(llvm::Value *bits, unsigned mask) override {
    return call(gpu_builtins::shuffleXor, b.getInt32Ty(), {bits, b.getInt32(mask)});
  }

private:
  llvm::Value *call(llvm::StringRef name, llvm::Type *result, llvm::ArrayRef<llvm::Value *> arguments) {
    llvm::SmallVector<llvm::Type *> types;
    for (llvm::Value *argument : arguments)
      types.push_back(argument->getType());
    return b.CreateCall(module.getOrInsertFunction(name, llvm::FunctionType::get(result, types, false)), arguments);
  }
};

} // namespace

std::unique_ptr<GpuBuiltins> GpuBuiltins::begin(Backend target, llvm::Module &module, llvm::IRBuilder<> &builder,
                                                const Signature &of) {
  if (target == Backend::Nvptx)
    return std::make_unique<NvptxBuiltins>(module, builder, of);
  return std::make_unique<EmulatedBuiltins>(module, builder, of);
}

llvm::Value *GpuBuiltins::shuffleXor(llvm::Value *v, unsigned mask) {
  unsigned words = v->getType()->getPrimitiveSizeInBits().getFixedValue() / 32;
  if (words == 1)
    return b.CreateBitCast(shuffleBits(b.CreateBitCast(v, b.getInt32Ty()), mask), v->getType());
  auto *pair = llvm::FixedVectorType::get(b.getInt32Ty(), words);
  llvm::Value *bits = b.CreateBitCast(v, pair);
  for (unsigned i = 0; i < words; ++i)
    bits = b.CreateInsertElement(bits, shuffleBits(b.CreateExtractElement(bits, i), mask), i);
  return b.CreateBitCast(bits, v->getType());
}

} // namespace mpc::codegen
