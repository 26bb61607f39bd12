#include "compiler/lowering/arena_plan.h"

#include "runtime/memory_planner.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <numeric>
#include <vector>

namespace mpc::compiler {

namespace {

using Updates = std::vector<runtime::FlatUpdate>;

/// The most bytes that an arena with flat buffers may take. Some kilobytes never matter.
size_t mostBytes(size_t loose, double flatShare) {
  constexpr double negligible = 64 << 10;
  double more = flatShare * static_cast<double>(loose);
  return loose + static_cast<std::ptrdiff_t>(flatShare > 0 ? std::max(more, negligible) : more);
}

class ArenaPlanner {
public:
  ArenaPlanner(llvm::ArrayRef<ArenaPlace> places, std::size_t sequence, runtime::Program &program)
      : places(places), isStep(sequence == 0), program(program) {
    for (auto [index, place] : llvm::enumerate(places)) {
      assert(place.first <= place.last && "a place lives from its first instruction to its last");
      size_t bytes = 0;
      for (runtime::ValueId id : place.values) {
        bytes = std::max(bytes, program.values[id].spec.bytes());
        placeOf[id] = index;
      }
      intervals.push_back({bytes, place.first, place.last});
    }
    for (auto [index, instruction] : llvm::enumerate(program.sequences[sequence].instructions)) {
      if (instruction.workspace_bytes == 0)
        continue;
      intervals.push_back({instruction.workspace_bytes, index, index});
      withWorkspace.push_back(&instruction);
    }
  }

  size_t run(const runtime::GroupOf &flatGroup, double flatShare) {
    runtime::MemoryPlan plan = runtime::PlanMemory(intervals);
    Updates found = isStep ? findUpdates(flatGroup) : Updates();
    if (found.empty())
      return place(plan);
    size_t most = mostBytes(plan.arena_bytes, flatShare);
    Candidate best = planFlat(found, /*earliestFirst=*/true, most);
    size_t less = std::min(most, best.plan.arena_bytes - 1);
    if (Candidate other = planFlat(found, /*earliestFirst=*/false, less);
        other.plan.arena_bytes < best.plan.arena_bytes)
      best = std::move(other);
    if (best.plan.arena_bytes <= most) {
      plan = std::move(best.plan);
      program.flat_updates = std::move(best.updates);
    }
    return place(plan);
  }

private:
  struct Candidate {
    Updates updates;
    runtime::MemoryPlan plan;
  };

  llvm::ArrayRef<ArenaPlace> places;
  bool isStep;
  runtime::Program &program;
  std::vector<runtime::LiveInterval> intervals; ///< the intervals of places, then those of workspaces
  std::vector<runtime::Instruction *> withWorkspace;
  llvm::DenseMap<runtime::ValueId, size_t> placeOf;

  size_t place(const runtime::MemoryPlan &plan) {
    assert(plan.offsets.size() == intervals.size() && "the plan has an offset for each interval");
    for (auto [place, offset] : llvm::zip_first(places, plan.offsets))
      for (runtime::ValueId id : place.values)
        program.values[id].offset = offset;
    for (auto [instruction, offset] : llvm::zip_equal(withWorkspace, llvm::drop_begin(plan.offsets, places.size())))
      instruction->workspace_offset = offset;
    return plan.arena_bytes;
  }

  Updates findUpdates(const runtime::GroupOf &flatGroup) const {
    auto place = [&](runtime::ValueId id) { return static_cast<std::int32_t>(placeOf.lookup(id)); };
    Updates found = runtime::FindFlatUpdates(program, place, flatGroup);
    llvm::erase_if(found, [&](const runtime::FlatUpdate &update) { return !hasOwnPlaces(update); });
    return found;
  }

  // A plan of more than \p most bytes is none.
  Candidate planFlat(const Updates &found, bool earliestFirst, size_t most) const {
    Candidate flat{found, {}};
    for (runtime::FlatUpdate &update : flat.updates)
      layOut(update, earliestFirst);
    std::vector<runtime::RigidIntervals> buffers = buffersOf(flat.updates);
    // The padding behind a tensor is its own.
    std::vector<runtime::LiveInterval> padded = intervals;
    for (const runtime::RigidIntervals &buffer : buffers)
      for (size_t interval : buffer.intervals) {
        const TensorSpec &spec = program.values[places[interval].values.front()].spec;
        assert(interval < places.size() && "flat buffers hold tensors, no workspaces");
        padded[interval].bytes = runtime::PaddedElements(spec.num_elements()) * ElementSize(spec.dtype);
      }
    flat.plan = runtime::PlanMemory(padded, buffers, most);
    return flat;
  }

  // Whether each tensor of the update in the arena is all that its place holds.
  bool hasOwnPlaces(const runtime::FlatUpdate &update) const {
    return llvm::all_of(runtime::FlatTensorsOf(program, update), [&](const runtime::FlatTensors &tensors) {
      return tensors.storage == runtime::Storage::kState || llvm::all_of(tensors.values, [&](runtime::ValueId id) {
               auto place = placeOf.find(id);
               return place != placeOf.end() && intervals[place->second].bytes == program.values[id].spec.bytes();
             });
    });
  }

  // Orders tensors by the instructions at which the lives of gradients begin. Groups of state alone keep the order of
  // the instructions.
  void layOut(runtime::FlatUpdate &update, bool earliestFirst) const {
    std::vector<size_t> order(update.offsets.size());
    std::iota(order.begin(), order.end(), size_t{0});
    for (const runtime::FlatTensors &tensors : runtime::FlatTensorsOf(program, update))
      if (tensors.storage == runtime::Storage::kTemporary)
        llvm::stable_sort(order, [&](size_t a, size_t b) {
          size_t first = intervals[placeOf.at(tensors.values[a])].first;
          size_t second = intervals[placeOf.at(tensors.values[b])].first;
          return earliestFirst ? first < second : first > second;
        });
    runtime::LayOut(program, order, update);
  }

  // Makes one buffer for each type, with the updates' tensors one after the other.
  std::vector<runtime::RigidIntervals> buffersOf(const Updates &of) const {
    std::map<DType, runtime::RigidIntervals> buffers;
    std::map<DType, size_t> ends;
    for (const runtime::FlatUpdate &update : of)
      for (const runtime::FlatTensors &tensors : runtime::FlatTensorsOf(program, update)) {
        if (tensors.storage == runtime::Storage::kState)
          continue;
        runtime::RigidIntervals &buffer = buffers[tensors.dtype];
        size_t &end = ends[tensors.dtype], width = ElementSize(tensors.dtype);
        for (auto [id, offset] : llvm::zip_equal(tensors.values, update.offsets)) {
          buffer.intervals.push_back(placeOf.at(id));
          buffer.distances.push_back(end + offset * width);
        }
        end += runtime::PaddedElements(update.elements) * width;
      }
    std::vector<runtime::RigidIntervals> result;
    for (auto &[type, buffer] : buffers)
      result.push_back(std::move(buffer));
    return result;
  }
};

} // namespace

size_t planArena(llvm::ArrayRef<ArenaPlace> places, size_t sequence, const runtime::GroupOf &flatGroup,
                 double flatShare, runtime::Program &program) {
  return ArenaPlanner(places, sequence, program).run(flatGroup, flatShare);
}

} // namespace mpc::compiler
