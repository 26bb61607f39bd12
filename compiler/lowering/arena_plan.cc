#include "compiler/lowering/arena_plan.h"

#include "runtime/memory_planner.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

namespace mpc::compiler {

namespace {

using Updates = std::vector<runtime::FlatUpdate>;

/// The most bytes that an arena with flat buffers may take. Some kilobytes never matter.
size_t mostBytes(size_t Loose, double FlatShare) {
  constexpr double Negligible = 64 << 10;
  double More = FlatShare * static_cast<double>(Loose);
  return Loose + static_cast<std::ptrdiff_t>(FlatShare > 0 ? std::max(More, Negligible) : More);
}

class ArenaPlanner {
public:
  ArenaPlanner(llvm::ArrayRef<ArenaPlace> Places, std::size_t Sequence, runtime::Program &Program)
      : Places(Places), IsStep(Sequence == 0), Program(Program) {
    for (auto [Index, Place] : llvm::enumerate(Places)) {
      size_t Bytes = 0;
      for (runtime::ValueId Id : Place.values) {
        Bytes = std::max(Bytes, Program.values[Id].spec.bytes());
        PlaceOf[Id] = Index;
      }
      Intervals.push_back({Bytes, Place.first, Place.last});
    }
    for (auto [Index, Instruction] : llvm::enumerate(Program.sequences[Sequence].instructions)) {
      if (Instruction.workspace_bytes == 0)
        continue;
      Intervals.push_back({Instruction.workspace_bytes, Index, Index});
      WithWorkspace.push_back(&Instruction);
    }
  }

  size_t run(const runtime::GroupOf &FlatGroup, double FlatShare) {
    runtime::MemoryPlan Plan = runtime::PlanMemory(Intervals);
    Updates Found = IsStep ? findUpdates(FlatGroup) : Updates();
    if (Found.empty())
      return place(Plan);
    size_t Most = mostBytes(Plan.arena_bytes, FlatShare);
    Candidate Best = planFlat(Found, /*EarliestFirst=*/true, Most);
    size_t Less = std::min(Most, Best.plan.arena_bytes - 1);
    if (Candidate Other = planFlat(Found, /*EarliestFirst=*/false, Less);
        Other.plan.arena_bytes < Best.plan.arena_bytes)
      Best = std::move(Other);
    if (Best.plan.arena_bytes <= Most) {
      Plan = std::move(Best.plan);
      Program.flat_updates = std::move(Best.updates);
    }
    return place(Plan);
  }

private:
  struct Candidate {
    Updates updates;
    runtime::MemoryPlan plan;
  };

  llvm::ArrayRef<ArenaPlace> Places;
  bool IsStep;
  runtime::Program &Program;
  std::vector<runtime::LiveInterval> Intervals; ///< the intervals of places, then those of workspaces
  std::vector<runtime::Instruction *> WithWorkspace;
  llvm::DenseMap<runtime::ValueId, size_t> PlaceOf;

  size_t place(const runtime::MemoryPlan &Plan) {
    for (auto [Place, Offset] : llvm::zip_first(Places, Plan.offsets))
      for (runtime::ValueId Id : Place.values)
        Program.values[Id].offset = Offset;
    for (auto [Instruction, Offset] : llvm::zip_equal(WithWorkspace, llvm::drop_begin(Plan.offsets, Places.size())))
      Instruction->workspace_offset = Offset;
    return Plan.arena_bytes;
  }

  Updates findUpdates(const runtime::GroupOf &FlatGroup) const {
    auto Place = [&](runtime::ValueId Id) { return static_cast<std::int32_t>(PlaceOf.lookup(Id)); };
    Updates Found = runtime::FindFlatUpdates(Program, Place, FlatGroup);
    llvm::erase_if(Found, [&](const runtime::FlatUpdate &Update) { return !hasOwnPlaces(Update); });
    return Found;
  }

  // A plan of more than \p Most bytes is none.
  Candidate planFlat(const Updates &Found, bool EarliestFirst, size_t Most) const {
    Candidate Flat{Found, {}};
    for (runtime::FlatUpdate &Update : Flat.updates)
      layOut(Update, EarliestFirst);
    std::vector<runtime::RigidIntervals> Buffers = buffersOf(Flat.updates);
    // The padding behind a tensor is its own.
    std::vector<runtime::LiveInterval> Padded = Intervals;
    for (const runtime::RigidIntervals &Buffer : Buffers)
      for (size_t Interval : Buffer.intervals) {
        const TensorSpec &Spec = Program.values[Places[Interval].values.front()].spec;
        Padded[Interval].bytes = runtime::PaddedElements(Spec.num_elements()) * ElementSize(Spec.dtype);
      }
    Flat.plan = runtime::PlanMemory(Padded, Buffers, Most);
    return Flat;
  }

  // Whether each tensor of the update in the arena is all that its place holds.
  bool hasOwnPlaces(const runtime::FlatUpdate &Update) const {
    return llvm::all_of(runtime::FlatTensorsOf(Program, Update), [&](const runtime::FlatTensors &Tensors) {
      return Tensors.storage == runtime::Storage::kState || llvm::all_of(Tensors.values, [&](runtime::ValueId Id) {
               auto Place = PlaceOf.find(Id);
               return Place != PlaceOf.end() && Intervals[Place->second].bytes == Program.values[Id].spec.bytes();
             });
    });
  }

  // Orders tensors by the instructions at which the lives of gradients begin. Groups of state alone keep the order of
  // the instructions.
  void layOut(runtime::FlatUpdate &Update, bool EarliestFirst) const {
    std::vector<size_t> Order(Update.offsets.size());
    std::iota(Order.begin(), Order.end(), size_t{0});
    for (const runtime::FlatTensors &Tensors : runtime::FlatTensorsOf(Program, Update))
      if (Tensors.storage == runtime::Storage::kTemporary)
        llvm::stable_sort(Order, [&](size_t A, size_t B) {
          size_t First = Intervals[PlaceOf.at(Tensors.values[A])].first;
          size_t Second = Intervals[PlaceOf.at(Tensors.values[B])].first;
          return EarliestFirst ? First < Second : First > Second;
        });
    runtime::LayOut(Program, Order, Update);
  }

  // Makes one buffer for each type, with the updates' tensors one after the other.
  std::vector<runtime::RigidIntervals> buffersOf(const Updates &Of) const {
    std::map<DType, runtime::RigidIntervals> Buffers;
    std::map<DType, size_t> Ends;
    for (const runtime::FlatUpdate &Update : Of)
      for (const runtime::FlatTensors &Tensors : runtime::FlatTensorsOf(Program, Update)) {
        if (Tensors.storage == runtime::Storage::kState)
          continue;
        runtime::RigidIntervals &Buffer = Buffers[Tensors.dtype];
        size_t &End = Ends[Tensors.dtype], Width = ElementSize(Tensors.dtype);
        for (auto [Id, Offset] : llvm::zip_equal(Tensors.values, Update.offsets)) {
          Buffer.intervals.push_back(PlaceOf.at(Id));
          Buffer.distances.push_back(End + Offset * Width);
        }
        End += runtime::PaddedElements(Update.elements) * Width;
      }
    std::vector<runtime::RigidIntervals> Result;
    for (auto &[Type, Buffer] : Buffers)
      Result.push_back(std::move(Buffer));
    return Result;
  }
};

} // namespace

size_t planArena(llvm::ArrayRef<ArenaPlace> Places, size_t Sequence, const runtime::GroupOf &FlatGroup,
                 double FlatShare, runtime::Program &Program) {
  return ArenaPlanner(Places, Sequence, Program).run(FlatGroup, FlatShare);
}

} // namespace mpc::compiler
