#include "compiler/codegen/host_accumulators.h"

#include "compiler/element/number_functions.h"

#include <numeric>

using namespace mlir;

namespace mpc::codegen {

static llvm::Type *vectorOf(llvm::Constant *identity, unsigned lanes) {
  return llvm::FixedVectorType::get(identity->getType(), lanes);
}

static llvm::Constant *identityLanes(Combine how, unsigned lanes) {
  return llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(lanes), identity(how));
}

// A term of all lanes that adds nothing in the lanes that \p where leaves out.
static llvm::Value *maskedTerm(const HostPosition &where, Combine how, Float term) {
  llvm::Value *v = where.lanes(accumulable(how, term));
  if (!where.getMask())
    return v;
  return EmissionScope::builder().CreateSelect(where.getMask(), v, identityLanes(how, lanesOf(v)));
}

HostAccumulators::HostAccumulators(HostFunction &f, const HostSchedule &schedule, const FusionPlan::Step &step,
                                   unsigned chains)
    : f(f), step(&step), lanes(schedule.lanes) {
  for (Combine how : step.reduction.accumulators)
    for (auto &ofChains = variables.emplace_back(); ofChains.size() < chains;)
      ofChains.push_back(f.variable(vectorOf(identity(how), lanes)));
  reset();
}

void HostAccumulators::reset() {
  for (auto [index, ofChains] : llvm::enumerate(variables))
    for (llvm::AllocaInst *variable : ofChains)
      f.builder().CreateStore(identityLanes(how(index), lanes), variable);
}

void HostAccumulators::add(const HostPosition &where, ArrayRef<Float> terms, unsigned chain) {
  llvm::IRBuilder<> &b = f.builder();
  for (auto [index, term] : llvm::enumerate(terms)) {
    llvm::AllocaInst *variable = variables[index][chain];
    llvm::Value *sum = b.CreateLoad(variable->getAllocatedType(), variable);
    b.CreateStore(combine(how(index), sum, maskedTerm(where, how(index), term)), variable);
  }
}

SmallVector<llvm::Value *, 2> HostAccumulators::combined() {
  llvm::IRBuilder<> &b = f.builder();
  SmallVector<llvm::Value *, 2> results;
  for (auto [index, ofChains] : llvm::enumerate(variables)) {
    SmallVector<llvm::Value *, 4> values;
    for (llvm::AllocaInst *variable : ofChains)
      values.push_back(b.CreateLoad(variable->getAllocatedType(), variable));
    while (values.size() > 1) {
      size_t half = values.size() / 2;
      for (size_t i = 0; i < half; ++i)
        values[i] = combine(how(index), values[2 * i], values[2 * i + 1]);
      values.resize(half);
    }
    llvm::Value *v = values.front();
    for (unsigned half = lanes / 2; half > 0; half /= 2) {
      SmallVector<int> low(half), high(half);
      std::iota(low.begin(), low.end(), 0);
      std::iota(high.begin(), high.end(), half);
      v = combine(how(index), b.CreateShuffleVector(v, low), b.CreateShuffleVector(v, high));
    }
    results.push_back(b.CreateExtractElement(v, uint64_t(0)));
  }
  return results;
}

HostColumnAccumulators::HostColumnAccumulators(HostFusion &region, HostFunction &f, const FusionPlan::Step &step,
                                               llvm::Value *rowTile)
    : f(f), step(&step) {
  llvm::IRBuilder<> &b = f.builder();
  for (const HostWorkspace::Partials &p : region.workspace.partials(step)) {
    llvm::Type *t = identity(p.how)->getType();
    llvm::Value *first = b.CreateMul(rowTile, f.index(region.schedule.width));
    llvm::AllocaInst *deviations =
        areMoments() ? f.variable(vectorOf(identity(Combine::Sum), region.schedule.lanes)) : nullptr;
    accumulators.push_back({p.how, t, b.CreateGEP(t, f.workspace(p.offset), first),
                            f.variable(vectorOf(identity(p.how), region.schedule.lanes)), deviations});
  }
}

bool HostColumnAccumulators::areMoments() const {
  return step->reduction.accumulators == SmallVector<Combine, 2>{Combine::SumF64, Combine::SquaresF64};
}

void HostColumnAccumulators::clear(const HostPosition &where, llvm::Value *column) {
  for (const Accumulator &a : accumulators)
    where.storeVector(identity(a.how), f.builder().CreateGEP(a.type, a.base, column));
}

void HostColumnAccumulators::begin(const HostPosition &where, llvm::Value *column) {
  for (const Accumulator &a : accumulators)
    f.builder().CreateStore(where.loadVector(a.type, f.builder().CreateGEP(a.type, a.base, column)), a.variable);
}

void HostColumnAccumulators::add(const HostPosition &where, ArrayRef<Float> terms) {
  llvm::IRBuilder<> &b = f.builder();
  if (pivot)
    return addAbout(where, terms.front());
  for (auto [a, term] : llvm::zip_equal(accumulators, terms)) {
    llvm::Value *sum = b.CreateLoad(a.variable->getAllocatedType(), a.variable);
    b.CreateStore(combine(a.how, sum, where.lanes(accumulable(a.how, term))), a.variable);
  }
}

void HostColumnAccumulators::end(const HostPosition &where, llvm::Value *column) {
  for (const Accumulator &a : accumulators)
    where.storeVector(f.builder().CreateLoad(a.variable->getAllocatedType(), a.variable),
                      f.builder().CreateGEP(a.type, a.base, column));
}

void HostColumnAccumulators::beginAbout(const HostPosition &where, Float first) {
  // About an infinity everything would be NaN.
  Float chosen(where.lanes(first.value()));
  pivot = Select(Abs(chosen) < __builtin_inff(), chosen, Float(0.0)).value();
  for (const Accumulator &a : accumulators)
    f.builder().CreateStore(where.lanes(identity(Combine::Sum)), a.deviations);
}

void HostColumnAccumulators::addAbout(const HostPosition &where, Float term) {
  llvm::IRBuilder<> &b = f.builder();
  Float d = Float(where.lanes(term.value())) - Float(pivot);
  llvm::AllocaInst *sum = accumulators[0].deviations, *squares = accumulators[1].deviations;
  b.CreateStore((Float(b.CreateLoad(sum->getAllocatedType(), sum)) + d).value(), sum);
  b.CreateStore(Fma(d, d, Float(b.CreateLoad(squares->getAllocatedType(), squares))).value(), squares);
}

void HostColumnAccumulators::endAbout(const HostPosition &where, llvm::Value *column, llvm::Value *rows) {
  llvm::IRBuilder<> &b = f.builder();
  auto deviation = [&](const Accumulator &a) {
    return ToDouble(Float(b.CreateLoad(a.deviations->getAllocatedType(), a.deviations)));
  };
  auto add = [&](const Accumulator &a, Double more) {
    llvm::Value *address = b.CreateGEP(a.type, a.base, column);
    where.storeVector((Double(where.loadVector(a.type, address)) + more).value(), address);
  };
  Double p = ToDouble(Float(pivot)), n = ToDouble(Long(rows));
  Double sum = deviation(accumulators[0]);
  // sum x = sum d + n p, and sum x^2 = sum d^2 + p (2 sum d + n p).
  Double shift = n * p;
  add(accumulators[0], sum + shift);
  add(accumulators[1], deviation(accumulators[1]) + p * (sum + sum + shift));
  pivot = nullptr;
}

} // namespace mpc::codegen
