// Emits a sweep without rows: each element is computed by itself, or reduced with all others.
#include "compiler/codegen/gpu_stages.h"

using namespace mlir;

namespace mpc::codegen {

namespace {

class FlatSweep {
public:
  FlatSweep(GpuRegion &Region, const Sweep &S, const SweepTiling &T)
      : Region(Region), S(S), T(T), F(Region, T.blocks(), T.threads), B(F.builder()),
        Accumulators(accumulatorsOf(S.allSteps)), Lanes(T.vector > 1 ? T.vector : 0),
        Vectors(Region.plan.elements() / T.vector), Tail(Region.plan.elements() % T.vector) {
    for (const Accumulator &A : Accumulators) {
      llvm::Value *Nothing = identity(A.how);
      Sums.push_back(F.variable(typeOf(A), spread(Nothing, Lanes)));
      if (Tail != 0)
        TailSums.push_back(F.variable(A.type(), Nothing));
    }
  }

  Partials emit(const Sweep &Next) {
    llvm::Value *First = B.CreateNUWAdd(B.CreateNUWMul(F.block(), F.index(int64_t{T.threads} * T.ahead)), F.thread());
    if (Accumulators.empty())
      vectors(First);
    else
      F.loop(First, F.index(Vectors), F.index(T.blocks() * T.threads * T.ahead), [&](llvm::Value *I) { vectors(I); });
    if (Tail != 0) {
      llvm::Value *IsFirstBlock = B.CreateICmpEQ(F.block(), F.index(0));
      F.when(B.CreateAnd(IsFirstBlock, F.isBelow(F.thread(), F.index(Tail))), [&] {
        FlatPosition At(F, B.CreateNUWAdd(F.index(Vectors * T.vector), F.thread()), /*Lanes=*/0);
        element(At, B.getTrue(), TailSums);
      });
    }
    Partials Left;
    if (!Accumulators.empty())
      Left = reduce(Next);
    F.finish();
    return Left;
  }

private:
  llvm::Type *typeOf(const Accumulator &A) const {
    return Lanes == 0 ? A.type() : llvm::FixedVectorType::get(A.type(), Lanes);
  }

  // `ahead` vectors, a block's threads side by side in each.
  void vectors(llvm::Value *First) {
    bool Even = Vectors % (T.blocks() * T.threads * T.ahead) == 0;
    SmallVector<std::unique_ptr<FlatPosition>> Positions;
    SmallVector<llvm::Value *> Inside;
    for (unsigned I = 0; I < T.ahead; ++I) {
      llvm::Value *Vector = B.CreateNUWAdd(First, F.index(I * T.threads));
      Inside.push_back(Even ? B.getTrue() : F.isBelow(Vector, F.index(Vectors)));
      llvm::Value *Known = Even ? Vector : F.minimum(Vector, F.index(Vectors - 1));
      Positions.push_back(std::make_unique<FlatPosition>(F, B.CreateNUWMul(Known, F.index(T.vector)), Lanes));
      Positions.back()->preload(S.elements);
    }
    for (unsigned I = 0; I < T.ahead; ++I)
      element(*Positions[I], Inside[I], Sums);
  }

  void element(FlatPosition &At, llvm::Value *Inside, ArrayRef<llvm::AllocaInst *> Into) {
    BodyEmitter &Body = F.body();
    Body.moveTo(At);
    eachTerm(Body, S.allSteps, [&](unsigned Number, Float Term) {
      const Accumulator &A = Accumulators[Number];
      F.set(Into[Number], combine(A.how, F.get(Into[Number]), maskedTerm(A, Term, Inside, At.lanes())));
    });
    SmallVector<llvm::Value *> Results;
    for (unsigned Output : S.stores)
      Results.push_back(Body.stored(Region.yielded(Output)));
    F.when(Inside, [&] {
      for (auto [Output, V] : llvm::zip_equal(S.stores, Results))
        At.storeTo(F.operand(Region.numInputs() + Output), V, Extent::Full);
    });
  }

  Partials reduce(const Sweep &Next) {
    SmallVector<llvm::Value *> Values;
    for (auto [I, A] : llvm::enumerate(Accumulators)) {
      llvm::Value *Mine = GpuFunction::acrossVector(A.how, F.get(Sums[I]));
      if (Tail != 0)
        Mine = combine(A.how, Mine, F.get(TailSums[I]));
      Values.push_back(F.acrossTeam(A.how, Mine, T.threads));
    }
    Partials Left;
    if (T.blocks() == 1) {
      finishAll(F, S.allSteps, Next, Values);
      return Left;
    }
    leaveAll(F, T.blocks(), Values, Left);
    return Left;
  }

  GpuRegion &Region;
  const Sweep &S;
  const SweepTiling &T;
  GpuFunction F;
  llvm::IRBuilder<> &B;
  SmallVector<Accumulator> Accumulators;
  unsigned Lanes;
  int64_t Vectors, Tail;
  SmallVector<llvm::AllocaInst *> Sums, TailSums;
};

} // namespace

Partials emitFlatSweep(GpuRegion &Region, const Sweep &S, const Sweep &Next, const SweepTiling &T) {
  return FlatSweep(Region, S, T).emit(Next);
}

} // namespace mpc::codegen
