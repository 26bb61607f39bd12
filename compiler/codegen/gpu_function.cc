#include "compiler/codegen/gpu_function.h"

#include "compiler/codegen/control_flow.h"
#include "llvm/IR/Dominators.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

#include <limits>

namespace mpc::codegen {

size_t GpuFusion::allocate(size_t bytes) {
  constexpr size_t alignment = 256;
  size_t offset = code.workspace_bytes;
  code.workspace_bytes = llvm::alignTo(offset + bytes, alignment);
  return offset;
}

/// 90 for "sm_90" and "sm_90a"; 0 for what runs on the host.
static unsigned architectureOf(const CodeTarget &target) {
  unsigned architecture = 0;
  llvm::StringRef number = target.cpu;
  if (target.backend == Backend::Nvptx && number.consume_front("sm_"))
    number.consumeInteger(10, architecture);
  return architecture;
}

GpuFunction::GpuFunction(GpuFusion &region, int64_t blocks, unsigned threads, unsigned blocksEach)
    : region(region), b(region.module.getContext()),
      scope(b), launch{.function = region.name + "_" + std::to_string(region.code.stages.size()),
                       .blocks = blocks,
                       .threads = threads},
      builtins(GpuBuiltins::begin(region.target.backend, region.module, b,
                                  {launch.function, region.numInputs() + region.fusion->getNumResults(),
                                   region.hasWorkspace(), threads, blocksEach, architectureOf(region.target)})),
      body(region.plan, *builtins) {
  // Threads beyond the last element have indices too, and steps go beyond: one bit is spare.
  bool narrow = region.plan.getElements() < std::numeric_limits<int32_t>::max() / 2;
  indexIntegerType = narrow ? b.getInt32Ty() : b.getInt64Ty();
  thread = b.CreateZExt(builtins->getThread(), indexIntegerType);
  block = b.CreateZExt(builtins->getBlock(), indexIntegerType);
  entry = placeAnchor();
  for (auto &[op, values] : region.kept)
    body.setFirstKept(op, values.size());
}

void GpuFunction::finish() {
  b.CreateRetVoid();
  llvm::DominatorTree tree(*builtins->getFunction());
  llvm::PromoteMemToReg(variables, tree);
  builtins->end(launch.shared_bytes);
  region.code.stages.push_back(std::move(launch));
}

llvm::Value *GpuFunction::minimum(llvm::Value *a, llvm::Value *other) {
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, a, other);
}

llvm::Value *GpuFunction::addressOf(mlir::Value v) {
  if (auto input = llvm::dyn_cast<mlir::BlockArgument>(v))
    return operand(input.getArgNumber());
  auto it = region.stored.find(v);
  if (it == region.stored.end())
    return nullptr;
  return it->second.output ? operand(region.numInputs() + *it->second.output) : workspace(it->second.offset);
}

llvm::Value *GpuFunction::workspace(size_t offset) {
  return b.CreateConstGEP1_64(b.getInt8Ty(), builtins->getWorkspace(), static_cast<int64_t>(offset));
}

llvm::Value *GpuFunction::element(llvm::Value *base, llvm::Type *t, llvm::Value *at) {
  return b.CreateGEP(t, base, b.CreateZExt(at, b.getInt64Ty()));
}

// Vectors lie at multiples of their size, of which 16 bytes is the most that one access takes.
static llvm::Align alignmentOf(llvm::Type *t) {
  uint64_t bytes = t->getPrimitiveSizeInBits().getFixedValue() / 8;
  return llvm::Align(std::min<uint64_t>(16, bytes));
}

llvm::Value *GpuFunction::load(llvm::Type *t, llvm::Value *address, bool aligned) {
  return b.CreateAlignedLoad(t, address, alignmentOf(aligned ? t : t->getScalarType()));
}

void GpuFunction::store(llvm::Value *v, llvm::Value *address) {
  b.CreateAlignedStore(v, address, alignmentOf(v->getType()));
}

llvm::AllocaInst *GpuFunction::variable(llvm::Type *t, llvm::Value *initial) {
  llvm::AllocaInst *variable = variables.emplace_back(emitAlloca(b, *builtins->getFunction(), t));
  set(variable, initial);
  return variable;
}

llvm::Instruction *GpuFunction::placeAnchor() { return emitAnchor(b); }

void GpuFunction::loop(llvm::Value *begin, llvm::Value *end, llvm::Value *step,
                       llvm::function_ref<void(llvm::Value *)> body) {
  emitLoop(b, begin, end, step, IndexOrder::Unsigned, body);
}

void GpuFunction::when(llvm::Value *condition, llvm::function_ref<void()> body) { emitWhen(b, condition, body); }

llvm::PHINode *GpuFunction::rarely(llvm::Value *condition, llvm::Value *elsewhere,
                                   llvm::function_ref<llvm::Value *()> there) {
  return emitRarely(b, condition, elsewhere, there);
}

llvm::Value *GpuFunction::shared(unsigned bytes) {
  barrier();
  launch.shared_bytes = std::max(launch.shared_bytes, reservedBytes + bytes);
  return reservedBytes == 0 ? builtins->getShared()
                            : b.CreateConstGEP1_64(b.getInt8Ty(), builtins->getShared(), reservedBytes);
}

llvm::Value *GpuFunction::reserveShared(unsigned bytes) {
  assert(launch.shared_bytes == 0 && "reserved first");
  reservedBytes = launch.shared_bytes = llvm::alignTo(bytes, 16);
  return builtins->getShared();
}

llvm::Value *GpuFunction::acrossTeam(Combine how, llvm::Value *v, unsigned lanes) {
  auto acrossNeighbours = [&](unsigned count) {
    for (unsigned mask = count / 2; mask > 0; mask /= 2)
      v = combine(how, v, builtins->shuffleXor(v, mask));
  };
  acrossNeighbours(std::min(lanes, warpSize));
  if (lanes <= warpSize)
    return v;
  unsigned warps = lanes / warpSize;
  llvm::Type *t = v->getType();
  llvm::Value *ofWarp = shared(launch.threads / warpSize * t->getPrimitiveSizeInBits().getFixedValue() / 8);
  when(b.CreateICmpEQ(b.CreateURem(thread, index(warpSize)), index(0)),
       [&] { store(v, element(ofWarp, t, b.CreateUDiv(thread, index(warpSize)))); });
  barrier();
  llvm::Value *mine = b.CreateURem(thread, index(warps));
  if (lanes < launch.threads)
    mine = b.CreateNUWAdd(b.CreateNUWMul(b.CreateUDiv(thread, index(lanes)), index(warps)), mine);
  v = load(t, element(ofWarp, t, mine));
  acrossNeighbours(warps);
  return v;
}

llvm::Value *GpuFunction::acrossVector(Combine how, llvm::Value *v) {
  llvm::IRBuilder<> &b = EmissionScope::builder();
  unsigned lanes = lanesOf(v);
  if (lanes == 0)
    return v;
  llvm::SmallVector<llvm::Value *, 8> values;
  for (unsigned i = 0; i < lanes; ++i)
    values.push_back(b.CreateExtractElement(v, i));
  for (unsigned half = lanes / 2; half > 0; half /= 2)
    for (unsigned i = 0; i < half; ++i)
      values[i] = combine(how, values[i], values[i + half]);
  return values[0];
}

llvm::SmallVector<Accumulator> accumulatorsOf(llvm::ArrayRef<const FusionPlan::Step *> steps) {
  llvm::SmallVector<Accumulator> accumulators;
  for (const FusionPlan::Step *step : steps)
    for (auto [number, how] : llvm::enumerate(step->reduction.accumulators))
      accumulators.push_back({step, static_cast<unsigned>(number), how});
  return accumulators;
}

} // namespace mpc::codegen
