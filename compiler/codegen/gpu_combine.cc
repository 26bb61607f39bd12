// Combines partial values into results, in an order that the shape fixes.
#include "compiler/codegen/gpu_stages.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace mpc::codegen {

llvm::Value *maskedTerm(const Accumulator &A, Float Term, llvm::Value *Mask, unsigned Lanes) {
  llvm::IRBuilder<> &B = EmissionScope::builder();
  llvm::Value *V = spread(Term.value(), Lanes);
  auto *Known = dyn_cast<llvm::ConstantInt>(Mask);
  if (!Known || !Known->isOne()) {
    bool IsSum = A.how == Combine::Sum || isWide(A.how);
    llvm::Value *Nothing = IsSum ? identity(Combine::Sum) : identity(A.how);
    V = B.CreateSelect(Mask, V, spread(Nothing, Lanes));
  }
  return accumulable(A.how, Float(V));
}

void leaveAll(GpuFunction &F, int64_t Blocks, ArrayRef<llvm::Value *> Values, Partials &Left) {
  llvm::IRBuilder<> &B = F.builder();
  Left.allParts = Blocks;
  for (unsigned I = 0; I < Values.size(); ++I)
    Left.all.push_back(F.region().allocate(Blocks * sizeof(double)));
  F.when(B.CreateICmpEQ(F.thread(), F.index(0)), [&] {
    for (auto [Offset, V] : llvm::zip_equal(Left.all, Values))
      F.store(V, F.element(F.workspace(Offset), V->getType(), F.block()));
  });
}

void combineTeams(GpuFunction &F, llvm::ArrayRef<Accumulator> Accumulators, llvm::ArrayRef<llvm::Value *> Values,
                  unsigned Lanes, unsigned Teams, llvm::Value *Begin, UseOfColumn Use) {
  llvm::IRBuilder<> &B = F.builder();
  unsigned Width = Values.empty() ? 1 : std::max(1u, lanesOf(Values[0]));
  unsigned Threads = Lanes * Teams, Columns = Lanes * Width;
  unsigned Rounds = llvm::divideCeil(Columns, Threads);
  bool Even = Columns % Threads == 0;
  SmallVector<llvm::Value *> Offsets;
  for (unsigned Round = 0; Round < Rounds; ++Round)
    Offsets.push_back(B.CreateNUWAdd(F.thread(), F.index(Round * Threads)));

  SmallVector<SmallVector<llvm::Value *, 4>> Combined(Rounds);
  for (auto [A, Mine] : llvm::zip_equal(Accumulators, Values)) {
    llvm::Type *T = A.type();
    Combine How = A.how;
    llvm::Value *OfThreads = F.shared(Threads * Width * T->getPrimitiveSizeInBits().getFixedValue() / 8);
    F.store(Mine, F.element(OfThreads, T, B.CreateNUWMul(F.thread(), F.index(Width))));
    F.barrier();
    for (unsigned Round = 0; Round < Rounds; ++Round) {
      llvm::Value *Offset = Even ? Offsets[Round] : F.minimum(Offsets[Round], F.index(Columns - 1));
      llvm::AllocaInst *Sum = F.variable(T, F.load(T, F.element(OfThreads, T, Offset)));
      auto Add = [&](llvm::Value *TeamBegin) {
        llvm::Value *Theirs = F.load(T, F.element(OfThreads, T, B.CreateNUWAdd(TeamBegin, Offset)));
        F.set(Sum, combine(How, F.get(Sum), Theirs));
      };
      constexpr unsigned MostUnrolled = 32;
      if (Teams <= MostUnrolled)
        for (unsigned Team = 1; Team < Teams; ++Team)
          Add(F.index(Team * Columns));
      else
        F.loop(F.index(Columns), F.index(int64_t{Teams} * Columns), F.index(Columns), Add);
      Combined[Round].push_back(F.get(Sum));
    }
  }
  for (unsigned Round = 0; Round < Rounds; ++Round) {
    llvm::Value *Inside = Even ? B.getTrue() : F.isBelow(Offsets[Round], F.index(Columns));
    llvm::Value *Column = B.CreateNUWAdd(Begin, Offsets[Round]);
    Inside = B.CreateAnd(Inside, F.isBelow(Column, F.index(F.region().plan.columns())));
    Use(Column, Inside, Combined[Round]);
  }
}

void eachTerm(BodyEmitter &Body, ArrayRef<const Sweep::Step *> Steps, llvm::function_ref<void(unsigned, Float)> Use) {
  unsigned Number = 0;
  for (const Sweep::Step *Step : Steps)
    for (Float Term : Body.terms(*Step))
      Use(Number++, Term);
}

void finishSteps(BodyEmitter &Body, ArrayRef<const Sweep::Step *> Steps, ArrayRef<llvm::Value *> Values) {
  for (const Sweep::Step *Step : Steps) {
    unsigned Taken = Step->reduction.accumulators.size();
    Body.finish(*Step, Values.take_front(Taken));
    Values = Values.drop_front(Taken);
  }
}

static bool isReducedBy(const RegionPlan &Plan, Operation *Op, const Sweep &Next, Value Result, Extent E) {
  return !Result.use_empty() && Plan.extent(Result) == E && Plan.available(Result).sweep == Next.index;
}

// Chooses the storage of the reduced result `V`. It is an output where the region yields it, else the workspace, for
// later sweeps.
static void placeReduced(GpuRegion &Region, Value V, int64_t Count) {
  auto [It, New] = Region.stored.try_emplace(V);
  if (!New)
    return;
  for (OpOperand &Use : V.getUses())
    if (isa<YieldOp>(Use.getOwner()))
      It->second.output = Use.getOperandNumber();
  if (!It->second.output)
    It->second.offset = Region.allocate(Count * 8);
}

static void finishAt(GpuFunction &F, llvm::ArrayRef<const Sweep::Step *> Steps, const Sweep &Next, Extent E,
                     GpuPosition &At, llvm::Value *Inside, llvm::ArrayRef<llvm::Value *> Values) {
  GpuRegion &Region = F.region();
  const RegionPlan &Plan = Region.plan;
  int64_t Count = E == Extent::PerColumn ? Plan.columns() : 1;
  // Its own: a column after another would find what the one before kept.
  BodyEmitter Body(Plan, F.conversion());
  llvm::MapVector<Operation *, unsigned> FirstKept;
  for (const Sweep::Step *Step : Steps) {
    // Values of earlier kernels, or of this one's rows.
    unsigned Earlier = F.body().firstKept(Step->op);
    FirstKept[Step->op] = Earlier != 0 ? Earlier : F.body().kept(Step->op).size();
    Body.setFirstKept(Step->op, FirstKept[Step->op]);
  }
  Body.moveTo(At);
  finishSteps(Body, Steps, Values);

  SmallVector<std::pair<llvm::Value *, llvm::Value *>> Stores;
  for (auto [Op, First] : FirstKept) {
    auto &Places = Region.kept[Op];
    for (auto [Index, Kept] : llvm::enumerate(Body.kept(Op))) {
      if (Places.size() <= First + Index)
        Places.push_back({E, Region.allocate(Count * sizeof(float))});
      Stores.push_back({F.workspace(Places[First + Index].offset), Kept.value()});
    }
    for (Value Result : Op->getResults()) {
      if (!isReducedBy(Plan, Op, Next, Result, E))
        continue;
      placeReduced(Region, Result, Count);
      if (!Region.stored[Result].output)
        Stores.push_back({F.workspace(Region.stored[Result].offset), Body.stored(Result)});
    }
  }
  for (unsigned Output : E == Extent::PerColumn ? Next.columnStores : Next.singleStores)
    Stores.push_back({F.operand(Region.numInputs() + Output), Body.stored(Region.yielded(Output))});
  F.when(Inside, [&] {
    for (auto [Base, V] : Stores)
      At.storeTo(Base, V, E);
  });
}

void finishColumn(GpuFunction &F, llvm::ArrayRef<const Sweep::Step *> Steps, const Sweep &Next, llvm::Value *Column,
                  llvm::Value *Inside, llvm::ArrayRef<llvm::Value *> Values) {
  llvm::Value *Last = F.index(F.region().plan.columns() - 1);
  RowPosition At(F, /*Row=*/nullptr, F.minimum(Column, Last), /*Lanes=*/0);
  finishAt(F, Steps, Next, Extent::PerColumn, At, Inside, Values);
}

namespace {

/// The position after everything has been reduced. Code that uses the result comes after it, so nothing goes to the
/// kernel's entry.
class PlaceOfEverything final : public GpuPosition {
public:
  explicit PlaceOfEverything(GpuFunction &F) : GpuPosition(F, /*Lanes=*/0) {}

  llvm::Instruction *anchor(Extent) override { return nullptr; }
  Unsigned column() override { llvm_unreachable("everything has no column"); }
  Long linearIndex() override { llvm_unreachable("everything is no element"); }

private:
  llvm::Value *indexOf(Extent E) override {
    assert(E == Extent::Single && "everything has a single value");
    return F.index(0);
  }
};

} // namespace

void finishAll(GpuFunction &F, llvm::ArrayRef<const Sweep::Step *> Steps, const Sweep &Next,
               llvm::ArrayRef<llvm::Value *> Values) {
  PlaceOfEverything At(F);
  finishAt(F, Steps, Next, Extent::Single, At, F.builder().CreateICmpEQ(F.thread(), F.index(0)), Values);
}

// Combines one thread's share of `Parts` values, `Stride` apart, from `Address` on. A few loads are under way together.
static llvm::Value *combineParts(GpuFunction &F, const Accumulator &A, llvm::Value *Base, llvm::Value *Offset,
                                 int64_t Stride, llvm::Value *First, unsigned Step, int64_t Parts) {
  constexpr unsigned Ahead = 4;
  llvm::IRBuilder<> &B = F.builder();
  llvm::Type *T = A.type();
  llvm::AllocaInst *Sum = F.variable(T, identity(A.how));
  F.loop(First, F.index(Parts), F.index(Ahead * Step), [&](llvm::Value *Part) {
    SmallVector<llvm::Value *, Ahead> Loaded;
    for (unsigned I = 0; I < Ahead; ++I) {
      llvm::Value *Mine = B.CreateNUWAdd(Part, F.index(I * Step));
      llvm::Value *At = B.CreateNUWMul(F.minimum(Mine, F.index(Parts - 1)), F.index(Stride));
      llvm::Value *V = F.load(T, F.element(Base, T, B.CreateNUWAdd(At, Offset)));
      Loaded.push_back(B.CreateSelect(F.isBelow(Mine, F.index(Parts)), V, identity(A.how)));
    }
    for (llvm::Value *V : Loaded)
      F.set(Sum, combine(A.how, F.get(Sum), V));
  });
  return F.get(Sum);
}

void emitColumnCombination(GpuRegion &Region, llvm::ArrayRef<const Sweep::Step *> Steps, const Sweep &Next,
                           const Partials &Left) {
  constexpr unsigned Threads = 256;
  // Many parts are read by many threads a column, few by few.
  unsigned Lanes = Steps.empty() ? Threads : Left.columnParts >= 64 ? 8 : 32;
  int64_t Columns = Region.plan.columns();
  GpuFunction F(Region, llvm::divideCeil(Columns, Lanes), Threads);
  llvm::IRBuilder<> &B = F.builder();
  llvm::Value *Begin = B.CreateNUWMul(F.block(), F.index(Lanes));
  llvm::Value *Column = B.CreateNUWAdd(Begin, B.CreateURem(F.thread(), F.index(Lanes)));
  Column = F.minimum(Column, F.index(Columns - 1));
  llvm::Value *Team = B.CreateUDiv(F.thread(), F.index(Lanes));
  SmallVector<Accumulator> Accumulators = accumulatorsOf(Steps);
  SmallVector<llvm::Value *> Values;
  for (auto [A, Offset] : llvm::zip_equal(Accumulators, Left.columns))
    Values.push_back(combineParts(F, A, F.workspace(Offset), Column, Columns, Team, Threads / Lanes, Left.columnParts));
  combineTeams(F, Accumulators, Values, Lanes, Threads / Lanes, Begin,
               [&](llvm::Value *At, llvm::Value *Inside, ArrayRef<llvm::Value *> Combined) {
                 finishColumn(F, Steps, Next, At, Inside, Combined);
               });
  F.finish();
}

void emitCombination(GpuRegion &Region, llvm::ArrayRef<const Sweep::Step *> Steps, const Sweep &Next,
                     const Partials &Left) {
  unsigned Threads = Steps.empty() ? WarpSize : 256;
  GpuFunction F(Region, /*Blocks=*/1, Threads);
  SmallVector<llvm::Value *> Values;
  for (auto [A, Offset] : llvm::zip_equal(accumulatorsOf(Steps), Left.all)) {
    llvm::Value *Mine =
        combineParts(F, A, F.workspace(Offset), F.index(0), /*Stride=*/1, F.thread(), Threads, Left.allParts);
    Values.push_back(F.acrossTeam(A.how, Mine, Threads));
  }
  finishAll(F, Steps, Next, Values);
  F.finish();
}

} // namespace mpc::codegen
