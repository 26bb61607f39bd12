// Emits a sweep without rows: each element is computed by itself, or reduced with all others.
#include "compiler/codegen/gpu_stages.h"

using namespace mlir;

namespace mpc::codegen {

namespace {

class FlatSweep {
public:
  FlatSweep(GpuFusion &region, const Sweep &s, const SweepTiling &t)
      : region(region), s(s), t(t), f(region, t.blocks(), t.threads), b(f.builder()),
        accumulators(accumulatorsOf(s.allSteps)), lanes(t.vector > 1 ? t.vector : 0),
        vectors(region.plan.getElements() / t.vector), tail(region.plan.getElements() % t.vector) {
    for (const Accumulator &a : accumulators) {
      llvm::Value *nothing = identity(a.how);
      sums.push_back(f.variable(typeOf(a), spread(nothing, lanes)));
      if (tail != 0)
        tailSums.push_back(f.variable(a.type(), nothing));
    }
  }

  Partials emit(const Sweep &next) {
    llvm::Value *first =
        b.CreateNUWAdd(b.CreateNUWMul(f.getBlock(), f.index(int64_t{t.threads} * t.ahead)), f.getThread());
    if (accumulators.empty())
      emitVectors(first);
    else
      f.loop(first, f.index(vectors), f.index(t.blocks() * t.threads * t.ahead),
             [&](llvm::Value *i) { emitVectors(i); });
    if (tail != 0) {
      llvm::Value *isFirstBlock = b.CreateICmpEQ(f.getBlock(), f.index(0));
      f.when(b.CreateAnd(isFirstBlock, f.isBelow(f.getThread(), f.index(tail))), [&] {
        FlatPosition at(f, b.CreateNUWAdd(f.index(vectors * t.vector), f.getThread()), /*lanes=*/0);
        element(at, b.getTrue(), tailSums);
      });
    }
    Partials left;
    if (!accumulators.empty())
      left = reduce(next);
    f.finish();
    return left;
  }

private:
  llvm::Type *typeOf(const Accumulator &a) const {
    return lanes == 0 ? a.type() : llvm::FixedVectorType::get(a.type(), lanes);
  }

  // `ahead` vectors, a block's threads side by side in each.
  void emitVectors(llvm::Value *first) {
    bool even = vectors % (t.blocks() * t.threads * t.ahead) == 0;
    SmallVector<std::unique_ptr<FlatPosition>> positions;
    SmallVector<llvm::Value *> inside;
    for (unsigned i = 0; i < t.ahead; ++i) {
      llvm::Value *vector = b.CreateNUWAdd(first, f.index(i * t.threads));
      inside.push_back(even ? b.getTrue() : f.isBelow(vector, f.index(vectors)));
      llvm::Value *known = even ? vector : f.minimum(vector, f.index(vectors - 1));
      positions.push_back(std::make_unique<FlatPosition>(f, b.CreateNUWMul(known, f.index(t.vector)), lanes));
      positions.back()->preload(s.elements);
    }
    for (unsigned i = 0; i < t.ahead; ++i)
      element(*positions[i], inside[i], sums);
  }

  void element(FlatPosition &at, llvm::Value *inside, ArrayRef<llvm::AllocaInst *> into) {
    BodyEmitter &body = f.getBody();
    body.moveTo(at);
    eachTerm(body, s.allSteps, [&](unsigned number, Float term) {
      const Accumulator &a = accumulators[number];
      f.set(into[number], combine(a.how, f.get(into[number]), maskedTerm(a, term, inside, at.getLanes())));
    });
    SmallVector<llvm::Value *> results;
    for (unsigned output : s.stores)
      results.push_back(body.stored(region.yielded(output)));
    f.when(inside, [&] {
      for (auto [output, v] : llvm::zip_equal(s.stores, results))
        at.storeTo(f.operand(region.numInputs() + output), v, Extent::Full);
    });
  }

  Partials reduce(const Sweep &next) {
    SmallVector<llvm::Value *> values;
    for (auto [i, a] : llvm::enumerate(accumulators)) {
      llvm::Value *mine = GpuFunction::acrossVector(a.how, f.get(sums[i]));
      if (tail != 0)
        mine = combine(a.how, mine, f.get(tailSums[i]));
      values.push_back(f.acrossTeam(a.how, mine, t.threads));
    }
    Partials left;
    if (t.blocks() == 1) {
      finishAll(f, s.allSteps, next, values);
      return left;
    }
    leaveAll(f, t.blocks(), values, left);
    return left;
  }

  GpuFusion &region;
  const Sweep &s;
  const SweepTiling &t;
  GpuFunction f;
  llvm::IRBuilder<> &b;
  SmallVector<Accumulator> accumulators;
  unsigned lanes;
  int64_t vectors, tail;
  SmallVector<llvm::AllocaInst *> sums, tailSums;
};

} // namespace

Partials emitFlatSweep(GpuFusion &region, const Sweep &s, const Sweep &next, const SweepTiling &t) {
  return FlatSweep(region, s, t).emit(next);
}

} // namespace mpc::codegen
