#include "compiler/codegen/host_accumulators.h"

#include "compiler/element/number_functions.h"

#include <numeric>

using namespace mlir;

namespace mpc::codegen {

static llvm::Type *vectorOf(llvm::Constant *Identity, unsigned Lanes) {
  return llvm::FixedVectorType::get(Identity->getType(), Lanes);
}

static llvm::Constant *identityLanes(Combine How, unsigned Lanes) {
  return llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(Lanes), identity(How));
}

// A term of all lanes that adds nothing in the lanes that \p Where leaves out.
static llvm::Value *maskedTerm(const HostPosition &Where, Combine How, Float Term) {
  llvm::Value *V = Where.lanes(accumulable(How, Term));
  if (!Where.mask())
    return V;
  return EmissionScope::builder().CreateSelect(Where.mask(), V, identityLanes(How, lanesOf(V)));
}

HostAccumulators::HostAccumulators(HostFunction &F, const HostSchedule &Schedule, const RegionPlan::Step &Step,
                                   unsigned Chains)
    : F(F), Step(&Step), Lanes(Schedule.lanes) {
  for (Combine How : Step.reduction.accumulators)
    for (auto &OfChains = Variables.emplace_back(); OfChains.size() < Chains;)
      OfChains.push_back(F.variable(vectorOf(identity(How), Lanes)));
  reset();
}

void HostAccumulators::reset() {
  for (auto [Index, OfChains] : llvm::enumerate(Variables))
    for (llvm::AllocaInst *Variable : OfChains)
      F.builder().CreateStore(identityLanes(how(Index), Lanes), Variable);
}

void HostAccumulators::add(const HostPosition &Where, ArrayRef<Float> Terms, unsigned Chain) {
  llvm::IRBuilder<> &B = F.builder();
  for (auto [Index, Term] : llvm::enumerate(Terms)) {
    llvm::AllocaInst *Variable = Variables[Index][Chain];
    llvm::Value *Sum = B.CreateLoad(Variable->getAllocatedType(), Variable);
    B.CreateStore(combine(how(Index), Sum, maskedTerm(Where, how(Index), Term)), Variable);
  }
}

SmallVector<llvm::Value *, 2> HostAccumulators::combined() {
  llvm::IRBuilder<> &B = F.builder();
  SmallVector<llvm::Value *, 2> Results;
  for (auto [Index, OfChains] : llvm::enumerate(Variables)) {
    SmallVector<llvm::Value *, 4> Values;
    for (llvm::AllocaInst *Variable : OfChains)
      Values.push_back(B.CreateLoad(Variable->getAllocatedType(), Variable));
    while (Values.size() > 1) {
      size_t Half = Values.size() / 2;
      for (size_t I = 0; I < Half; ++I)
        Values[I] = combine(how(Index), Values[2 * I], Values[2 * I + 1]);
      Values.resize(Half);
    }
    llvm::Value *V = Values.front();
    for (unsigned Half = Lanes / 2; Half > 0; Half /= 2) {
      SmallVector<int> Low(Half), High(Half);
      std::iota(Low.begin(), Low.end(), 0);
      std::iota(High.begin(), High.end(), Half);
      V = combine(how(Index), B.CreateShuffleVector(V, Low), B.CreateShuffleVector(V, High));
    }
    Results.push_back(B.CreateExtractElement(V, uint64_t(0)));
  }
  return Results;
}

HostColumnAccumulators::HostColumnAccumulators(HostRegion &Region, HostFunction &F, const RegionPlan::Step &Step,
                                               llvm::Value *RowTile)
    : F(F), Step(&Step) {
  llvm::IRBuilder<> &B = F.builder();
  for (const HostWorkspace::Partials &P : Region.workspace.partials(Step)) {
    llvm::Type *T = identity(P.how)->getType();
    llvm::Value *First = B.CreateMul(RowTile, F.index(Region.schedule.width));
    llvm::AllocaInst *Deviations =
        areMoments() ? F.variable(vectorOf(identity(Combine::Sum), Region.schedule.lanes)) : nullptr;
    Accumulators.push_back({P.how, T, B.CreateGEP(T, F.workspace(P.offset), First),
                            F.variable(vectorOf(identity(P.how), Region.schedule.lanes)), Deviations});
  }
}

bool HostColumnAccumulators::areMoments() const {
  return Step->reduction.accumulators == SmallVector<Combine, 2>{Combine::SumF64, Combine::SquaresF64};
}

void HostColumnAccumulators::clear(const HostPosition &Where, llvm::Value *Column) {
  for (const Accumulator &A : Accumulators)
    Where.storeVector(identity(A.how), F.builder().CreateGEP(A.type, A.base, Column));
}

void HostColumnAccumulators::begin(const HostPosition &Where, llvm::Value *Column) {
  for (const Accumulator &A : Accumulators)
    F.builder().CreateStore(Where.loadVector(A.type, F.builder().CreateGEP(A.type, A.base, Column)), A.variable);
}

void HostColumnAccumulators::add(const HostPosition &Where, ArrayRef<Float> Terms) {
  llvm::IRBuilder<> &B = F.builder();
  if (Pivot)
    return addAbout(Where, Terms.front());
  for (auto [A, Term] : llvm::zip_equal(Accumulators, Terms)) {
    llvm::Value *Sum = B.CreateLoad(A.variable->getAllocatedType(), A.variable);
    B.CreateStore(combine(A.how, Sum, Where.lanes(accumulable(A.how, Term))), A.variable);
  }
}

void HostColumnAccumulators::end(const HostPosition &Where, llvm::Value *Column) {
  for (const Accumulator &A : Accumulators)
    Where.storeVector(F.builder().CreateLoad(A.variable->getAllocatedType(), A.variable),
                      F.builder().CreateGEP(A.type, A.base, Column));
}

void HostColumnAccumulators::beginAbout(const HostPosition &Where, Float First) {
  // About an infinity everything would be NaN.
  Float Chosen(Where.lanes(First.value()));
  Pivot = Select(Abs(Chosen) < __builtin_inff(), Chosen, Float(0.0)).value();
  for (const Accumulator &A : Accumulators)
    F.builder().CreateStore(Where.lanes(identity(Combine::Sum)), A.deviations);
}

void HostColumnAccumulators::addAbout(const HostPosition &Where, Float Term) {
  llvm::IRBuilder<> &B = F.builder();
  Float D = Float(Where.lanes(Term.value())) - Float(Pivot);
  llvm::AllocaInst *Sum = Accumulators[0].deviations, *Squares = Accumulators[1].deviations;
  B.CreateStore((Float(B.CreateLoad(Sum->getAllocatedType(), Sum)) + D).value(), Sum);
  B.CreateStore(Fma(D, D, Float(B.CreateLoad(Squares->getAllocatedType(), Squares))).value(), Squares);
}

void HostColumnAccumulators::endAbout(const HostPosition &Where, llvm::Value *Column, llvm::Value *Rows) {
  llvm::IRBuilder<> &B = F.builder();
  auto Deviation = [&](const Accumulator &A) {
    return ToDouble(Float(B.CreateLoad(A.deviations->getAllocatedType(), A.deviations)));
  };
  auto Add = [&](const Accumulator &A, Double More) {
    llvm::Value *Address = B.CreateGEP(A.type, A.base, Column);
    Where.storeVector((Double(Where.loadVector(A.type, Address)) + More).value(), Address);
  };
  Double P = ToDouble(Float(Pivot)), N = ToDouble(Long(Rows));
  Double Sum = Deviation(Accumulators[0]);
  // sum x = sum d + n p, and sum x^2 = sum d^2 + p (2 sum d + n p).
  Double Shift = N * P;
  Add(Accumulators[0], Sum + Shift);
  Add(Accumulators[1], Deviation(Accumulators[1]) + P * (Sum + Sum + Shift));
  Pivot = nullptr;
}

} // namespace mpc::codegen
