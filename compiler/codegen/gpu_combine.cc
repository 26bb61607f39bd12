// Combines partial values into results, in an order that the shape fixes.
#include "compiler/codegen/gpu_stages.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace mpc::codegen {

llvm::Value *maskedTerm(const Accumulator &a, Float term, llvm::Value *mask, unsigned lanes) {
  llvm::IRBuilder<> &b = EmissionScope::builder();
  llvm::Value *v = spread(term.value(), lanes);
  auto *known = dyn_cast<llvm::ConstantInt>(mask);
  if (!known || !known->isOne()) {
    bool isSum = a.how == Combine::Sum || isWide(a.how);
    llvm::Value *nothing = isSum ? identity(Combine::Sum) : identity(a.how);
    v = b.CreateSelect(mask, v, spread(nothing, lanes));
  }
  return accumulable(a.how, Float(v));
}

void leaveAll(GpuFunction &f, int64_t blocks, ArrayRef<llvm::Value *> values, Partials &left) {
  llvm::IRBuilder<> &b = f.builder();
  left.allParts = blocks;
  for (unsigned i = 0; i < values.size(); ++i)
    left.all.push_back(f.getRegion().allocate(blocks * sizeof(double)));
  f.when(b.CreateICmpEQ(f.getThread(), f.index(0)), [&] {
    for (auto [offset, v] : llvm::zip_equal(left.all, values))
      f.store(v, f.element(f.workspace(offset), v->getType(), f.getBlock()));
  });
}

void combineTeams(GpuFunction &f, llvm::ArrayRef<Accumulator> accumulators, llvm::ArrayRef<llvm::Value *> values,
                  unsigned lanes, unsigned teams, llvm::Value *begin, UseOfColumn use) {
  llvm::IRBuilder<> &b = f.builder();
  unsigned width = values.empty() ? 1 : std::max(1u, lanesOf(values[0]));
  unsigned threads = lanes * teams, columns = lanes * width;
  unsigned rounds = llvm::divideCeil(columns, threads);
  bool even = columns % threads == 0;
  SmallVector<llvm::Value *> offsets;
  for (unsigned round = 0; round < rounds; ++round)
    offsets.push_back(b.CreateNUWAdd(f.getThread(), f.index(round * threads)));

  SmallVector<SmallVector<llvm::Value *, 4>> combined(rounds);
  for (auto [a, mine] : llvm::zip_equal(accumulators, values)) {
    llvm::Type *t = a.type();
    Combine how = a.how;
    llvm::Value *ofThreads = f.shared(threads * width * t->getPrimitiveSizeInBits().getFixedValue() / 8);
    f.store(mine, f.element(ofThreads, t, b.CreateNUWMul(f.getThread(), f.index(width))));
    f.barrier();
    for (unsigned round = 0; round < rounds; ++round) {
      llvm::Value *offset = even ? offsets[round] : f.minimum(offsets[round], f.index(columns - 1));
      llvm::AllocaInst *sum = f.variable(t, f.load(t, f.element(ofThreads, t, offset)));
      auto add = [&](llvm::Value *teamBegin) {
        llvm::Value *theirs = f.load(t, f.element(ofThreads, t, b.CreateNUWAdd(teamBegin, offset)));
        f.set(sum, combine(how, f.get(sum), theirs));
      };
      constexpr unsigned mostUnrolled = 32;
      if (teams <= mostUnrolled)
        for (unsigned team = 1; team < teams; ++team)
          add(f.index(team * columns));
      else
        f.loop(f.index(columns), f.index(int64_t{teams} * columns), f.index(columns), add);
      combined[round].push_back(f.get(sum));
    }
  }
  for (unsigned round = 0; round < rounds; ++round) {
    llvm::Value *inside = even ? b.getTrue() : f.isBelow(offsets[round], f.index(columns));
    llvm::Value *column = b.CreateNUWAdd(begin, offsets[round]);
    inside = b.CreateAnd(inside, f.isBelow(column, f.index(f.getRegion().plan.getColumns())));
    use(column, inside, combined[round]);
  }
}

void eachTerm(BodyEmitter &body, ArrayRef<const Sweep::Step *> steps, llvm::function_ref<void(unsigned, Float)> use) {
  unsigned number = 0;
  for (const Sweep::Step *step : steps)
    for (Float term : body.terms(*step))
      use(number++, term);
}

void finishSteps(BodyEmitter &body, ArrayRef<const Sweep::Step *> steps, ArrayRef<llvm::Value *> values) {
  for (const Sweep::Step *step : steps) {
    unsigned taken = step->reduction.accumulators.size();
    body.finish(*step, values.take_front(taken));
    values = values.drop_front(taken);
  }
}

static bool isReducedBy(const FusionPlan &plan, Operation *op, const Sweep &next, Value result, Extent e) {
  return !result.use_empty() && plan.extent(result) == e && plan.available(result).sweep == next.index;
}

// Chooses the storage of the reduced result `v`. It is an output where the region yields it, else the workspace, for
// later sweeps.
static void placeReduced(GpuFusion &region, Value v, int64_t count) {
  auto [it, isNew] = region.stored.try_emplace(v);
  if (!isNew)
    return;
  for (OpOperand &use : v.getUses())
    if (isa<YieldOp>(use.getOwner()))
      it->second.output = use.getOperandNumber();
  if (!it->second.output)
    it->second.offset = region.allocate(count * 8);
}

static void finishAt(GpuFunction &f, llvm::ArrayRef<const Sweep::Step *> steps, const Sweep &next, Extent e,
                     GpuPosition &at, llvm::Value *inside, llvm::ArrayRef<llvm::Value *> values) {
  GpuFusion &region = f.getRegion();
  const FusionPlan &plan = region.plan;
  int64_t count = e == Extent::PerColumn ? plan.getColumns() : 1;
  // Its own: a column after another would find what the one before kept.
  BodyEmitter body(plan, f.conversion());
  llvm::MapVector<Operation *, unsigned> firstKept;
  for (const Sweep::Step *step : steps) {
    // Values of earlier kernels, or of this one's rows.
    unsigned earlier = f.getBody().firstKept(step->op);
    firstKept[step->op] = earlier != 0 ? earlier : f.getBody().kept(step->op).size();
    body.setFirstKept(step->op, firstKept[step->op]);
  }
  body.moveTo(at);
  finishSteps(body, steps, values);

  SmallVector<std::pair<llvm::Value *, llvm::Value *>> stores;
  for (auto [op, first] : firstKept) {
    auto &places = region.kept[op];
    for (auto [index, kept] : llvm::enumerate(body.kept(op))) {
      if (places.size() <= first + index)
        places.push_back({e, region.allocate(count * sizeof(float))});
      stores.push_back({f.workspace(places[first + index].offset), kept.value()});
    }
    for (Value result : op->getResults()) {
      if (!isReducedBy(plan, op, next, result, e))
        continue;
      placeReduced(region, result, count);
      if (!region.stored[result].output)
        stores.push_back({f.workspace(region.stored[result].offset), body.stored(result)});
    }
  }
  for (unsigned output : e == Extent::PerColumn ? next.columnStores : next.singleStores)
    stores.push_back({f.operand(region.numInputs() + output), body.stored(region.yielded(output))});
  f.when(inside, [&] {
    for (auto [base, v] : stores)
      at.storeTo(base, v, e);
  });
}

void finishColumn(GpuFunction &f, llvm::ArrayRef<const Sweep::Step *> steps, const Sweep &next, llvm::Value *column,
                  llvm::Value *inside, llvm::ArrayRef<llvm::Value *> values) {
  llvm::Value *last = f.index(f.getRegion().plan.getColumns() - 1);
  RowPosition at(f, /*row=*/nullptr, f.minimum(column, last), /*lanes=*/0);
  finishAt(f, steps, next, Extent::PerColumn, at, inside, values);
}

namespace {

/// The position after everything has been reduced. Code that uses the result comes after it, so nothing goes to the
/// kernel's entry.
class PlaceOfEverything final : public GpuPosition {
public:
  explicit PlaceOfEverything(GpuFunction &f) : GpuPosition(f, /*lanes=*/0) {}

  llvm::Instruction *anchor(Extent) override { return nullptr; }
  Unsigned column() override { llvm_unreachable("everything has no column"); }
  Long linearIndex() override { llvm_unreachable("everything is no element"); }

private:
  llvm::Value *indexOf(Extent e) override {
    assert(e == Extent::Single && "everything has a single value");
    return f.index(0);
  }
};

} // namespace

void finishAll(GpuFunction &f, llvm::ArrayRef<const Sweep::Step *> steps, const Sweep &next,
               llvm::ArrayRef<llvm::Value *> values) {
  PlaceOfEverything at(f);
  finishAt(f, steps, next, Extent::Single, at, f.builder().CreateICmpEQ(f.getThread(), f.index(0)), values);
}

// Combines one thread's share of `parts` values, `stride` apart, from `address` on. A few loads are under way together.
static llvm::Value *combineParts(GpuFunction &f, const Accumulator &a, llvm::Value *base, llvm::Value *offset,
                                 int64_t stride, llvm::Value *first, unsigned step, int64_t parts) {
  constexpr unsigned ahead = 4;
  llvm::IRBuilder<> &b = f.builder();
  llvm::Type *t = a.type();
  llvm::AllocaInst *sum = f.variable(t, identity(a.how));
  f.loop(first, f.index(parts), f.index(ahead * step), [&](llvm::Value *part) {
    SmallVector<llvm::Value *, ahead> loaded;
    for (unsigned i = 0; i < ahead; ++i) {
      llvm::Value *mine = b.CreateNUWAdd(part, f.index(i * step));
      llvm::Value *at = b.CreateNUWMul(f.minimum(mine, f.index(parts - 1)), f.index(stride));
      llvm::Value *v = f.load(t, f.element(base, t, b.CreateNUWAdd(at, offset)));
      loaded.push_back(b.CreateSelect(f.isBelow(mine, f.index(parts)), v, identity(a.how)));
    }
    for (llvm::Value *v : loaded)
      f.set(sum, combine(a.how, f.get(sum), v));
  });
  return f.get(sum);
}

void emitColumnCombination(GpuFusion &region, llvm::ArrayRef<const Sweep::Step *> steps, const Sweep &next,
                           const Partials &left) {
  constexpr unsigned threads = 256;
  // Many parts are read by many threads a column, few by few.
  unsigned lanes = steps.empty() ? threads : left.columnParts >= 64 ? 8 : 32;
  int64_t columns = region.plan.getColumns();
  GpuFunction f(region, llvm::divideCeil(columns, lanes), threads);
  llvm::IRBuilder<> &b = f.builder();
  llvm::Value *begin = b.CreateNUWMul(f.getBlock(), f.index(lanes));
  llvm::Value *column = b.CreateNUWAdd(begin, b.CreateURem(f.getThread(), f.index(lanes)));
  column = f.minimum(column, f.index(columns - 1));
  llvm::Value *team = b.CreateUDiv(f.getThread(), f.index(lanes));
  SmallVector<Accumulator> accumulators = accumulatorsOf(steps);
  SmallVector<llvm::Value *> values;
  for (auto [a, offset] : llvm::zip_equal(accumulators, left.columns))
    values.push_back(combineParts(f, a, f.workspace(offset), column, columns, team, threads / lanes, left.columnParts));
  combineTeams(f, accumulators, values, lanes, threads / lanes, begin,
               [&](llvm::Value *at, llvm::Value *inside, ArrayRef<llvm::Value *> combined) {
                 finishColumn(f, steps, next, at, inside, combined);
               });
  f.finish();
}

void emitCombination(GpuFusion &region, llvm::ArrayRef<const Sweep::Step *> steps, const Sweep &next,
                     const Partials &left) {
  unsigned threads = steps.empty() ? warpSize : 256;
  GpuFunction f(region, /*blocks=*/1, threads);
  SmallVector<llvm::Value *> values;
  for (auto [a, offset] : llvm::zip_equal(accumulatorsOf(steps), left.all)) {
    llvm::Value *mine =
        combineParts(f, a, f.workspace(offset), f.index(0), /*stride=*/1, f.getThread(), threads, left.allParts);
    values.push_back(f.acrossTeam(a.how, mine, threads));
  }
  finishAll(f, steps, next, values);
  f.finish();
}

} // namespace mpc::codegen
