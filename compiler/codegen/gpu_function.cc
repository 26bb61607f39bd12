#include "compiler/codegen/gpu_function.h"

#include "compiler/codegen/control_flow.h"
#include "llvm/IR/Dominators.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

#include <limits>

namespace mpc::codegen {

size_t GpuRegion::allocate(size_t Bytes) {
  constexpr size_t Alignment = 256;
  size_t Offset = code.workspace_bytes;
  code.workspace_bytes = llvm::alignTo(Offset + Bytes, Alignment);
  return Offset;
}

GpuFunction::GpuFunction(GpuRegion &Region, int64_t Blocks, unsigned Threads)
    : Region(Region), B(Region.module.getContext()),
      Scope(B), Launch{.function = Region.name + "_" + std::to_string(Region.code.stages.size()),
                       .blocks = Blocks,
                       .threads = Threads},
      Builtins(GpuBuiltins::begin(
          Region.target.backend, Region.module, B,
          {Launch.function, Region.numInputs() + Region.fusion->getNumResults(), Region.hasWorkspace(), Threads})),
      Body(Region.plan, *Builtins) {
  // Threads beyond the last element have indices too, and steps go beyond: one bit is spare.
  bool Narrow = Region.plan.elements() < std::numeric_limits<int32_t>::max() / 2;
  Index = Narrow ? B.getInt32Ty() : B.getInt64Ty();
  Thread = B.CreateZExt(Builtins->thread(), Index);
  Block = B.CreateZExt(Builtins->block(), Index);
  Entry = placeAnchor();
  for (auto &[Op, Values] : Region.kept)
    Body.setFirstKept(Op, Values.size());
}

void GpuFunction::finish() {
  B.CreateRetVoid();
  llvm::DominatorTree Tree(*Builtins->function());
  llvm::PromoteMemToReg(Variables, Tree);
  Builtins->end(Launch.shared_bytes);
  Region.code.stages.push_back(std::move(Launch));
}

llvm::Value *GpuFunction::minimum(llvm::Value *A, llvm::Value *Other) {
  return B.CreateBinaryIntrinsic(llvm::Intrinsic::umin, A, Other);
}

llvm::Value *GpuFunction::workspace(size_t Offset) {
  return B.CreateConstGEP1_64(B.getInt8Ty(), Builtins->workspace(), static_cast<int64_t>(Offset));
}

llvm::Value *GpuFunction::element(llvm::Value *Base, llvm::Type *T, llvm::Value *At) {
  return B.CreateGEP(T, Base, B.CreateZExt(At, B.getInt64Ty()));
}

// Vectors lie at multiples of their size, of which 16 bytes is the most that one access takes.
static llvm::Align alignmentOf(llvm::Type *T) {
  uint64_t Bytes = T->getPrimitiveSizeInBits().getFixedValue() / 8;
  return llvm::Align(std::min<uint64_t>(16, Bytes));
}

llvm::Value *GpuFunction::load(llvm::Type *T, llvm::Value *Address) {
  return B.CreateAlignedLoad(T, Address, alignmentOf(T));
}

void GpuFunction::store(llvm::Value *V, llvm::Value *Address) {
  B.CreateAlignedStore(V, Address, alignmentOf(V->getType()));
}

llvm::AllocaInst *GpuFunction::variable(llvm::Type *T, llvm::Value *Initial) {
  llvm::AllocaInst *Variable = Variables.emplace_back(emitAlloca(B, *Builtins->function(), T));
  set(Variable, Initial);
  return Variable;
}

llvm::Instruction *GpuFunction::placeAnchor() { return emitAnchor(B); }

void GpuFunction::loop(llvm::Value *Begin, llvm::Value *End, llvm::Value *Step,
                       llvm::function_ref<void(llvm::Value *)> Body) {
  emitLoop(B, Begin, End, Step, IndexOrder::Unsigned, Body);
}

void GpuFunction::when(llvm::Value *Condition, llvm::function_ref<void()> Body) { emitWhen(B, Condition, Body); }

llvm::Value *GpuFunction::shared(unsigned Bytes) {
  barrier();
  Launch.shared_bytes = std::max(Launch.shared_bytes, Bytes);
  return Builtins->shared();
}

llvm::Value *GpuFunction::acrossTeam(Combine How, llvm::Value *V, unsigned Lanes) {
  auto AcrossNeighbours = [&](unsigned Count) {
    for (unsigned Mask = Count / 2; Mask > 0; Mask /= 2)
      V = combine(How, V, Builtins->shuffleXor(V, Mask));
  };
  AcrossNeighbours(std::min(Lanes, WarpSize));
  if (Lanes <= WarpSize)
    return V;
  unsigned Warps = Lanes / WarpSize;
  llvm::Type *T = V->getType();
  llvm::Value *OfWarp = shared(Launch.threads / WarpSize * T->getPrimitiveSizeInBits().getFixedValue() / 8);
  when(B.CreateICmpEQ(B.CreateURem(Thread, index(WarpSize)), index(0)),
       [&] { store(V, element(OfWarp, T, B.CreateUDiv(Thread, index(WarpSize)))); });
  barrier();
  llvm::Value *Mine = B.CreateURem(Thread, index(Warps));
  if (Lanes < Launch.threads)
    Mine = B.CreateNUWAdd(B.CreateNUWMul(B.CreateUDiv(Thread, index(Lanes)), index(Warps)), Mine);
  V = load(T, element(OfWarp, T, Mine));
  AcrossNeighbours(Warps);
  return V;
}

llvm::Value *GpuFunction::acrossVector(Combine How, llvm::Value *V) {
  llvm::IRBuilder<> &B = EmissionScope::builder();
  unsigned Lanes = lanesOf(V);
  if (Lanes == 0)
    return V;
  llvm::SmallVector<llvm::Value *, 8> Values;
  for (unsigned I = 0; I < Lanes; ++I)
    Values.push_back(B.CreateExtractElement(V, I));
  for (unsigned Half = Lanes / 2; Half > 0; Half /= 2)
    for (unsigned I = 0; I < Half; ++I)
      Values[I] = combine(How, Values[I], Values[I + Half]);
  return Values[0];
}

llvm::SmallVector<Accumulator> accumulatorsOf(llvm::ArrayRef<const RegionPlan::Step *> Steps) {
  llvm::SmallVector<Accumulator> Accumulators;
  for (const RegionPlan::Step *Step : Steps)
    for (auto [Number, How] : llvm::enumerate(Step->reduction.accumulators))
      Accumulators.push_back({Step, static_cast<unsigned>(Number), How});
  return Accumulators;
}

} // namespace mpc::codegen
