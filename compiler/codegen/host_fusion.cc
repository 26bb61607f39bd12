#include "compiler/codegen/host_fusion.h"

#include "compiler/codegen/host_sweep.h"

namespace mpc::codegen {

namespace {

/// The functions of a region in their order, those that run in one block joined to their neighbours.
class Stages {
public:
  Stages(llvm::StringRef name, const CodeTarget &target, llvm::Module &module)
      : name(name), target(target), module(module) {}

  template <typename Emit> void add(int64_t blocks, Emit function) {
    HostFunction f(module, (name + "_part_" + llvm::Twine(parts.size())).str(), target);
    function(f);
    f.finish();
    parts.push_back({f.function(), blocks});
  }

  llvm::SmallVector<Stage, 3> join();

private:
  struct Part {
    llvm::Function *function;
    int64_t blocks;
  };
  std::string nameOf(size_t index) const { return (name + "_" + llvm::Twine(index)).str(); }

  llvm::StringRef name;
  const CodeTarget &target;
  llvm::Module &module;
  llvm::SmallVector<Part> parts;
};

} // namespace

llvm::SmallVector<Stage, 3> Stages::join() {
  llvm::SmallVector<Stage, 3> result;
  for (size_t first = 0; first < parts.size();) {
    size_t end = first + 1;
    while (end < parts.size() && parts[first].blocks == 1 && parts[end].blocks == 1)
      ++end;
    std::string stageName = nameOf(result.size());
    if (end == first + 1) {
      parts[first].function->setName(stageName);
    } else {
      HostFunction joined(module, stageName, target);
      for (size_t index = first; index < end; ++index) {
        llvm::Function *part = parts[index].function;
        part->setLinkage(llvm::Function::InternalLinkage);
        joined.builder().CreateCall(part, {joined.function()->getArg(0), joined.function()->getArg(1), joined.tile()});
      }
      joined.finish();
    }
    result.push_back({stageName, parts[first].blocks});
    first = end;
  }
  return result;
}

// Outputs that no reduction precedes and that have fewer values than the space.
static bool sharesOutputs(const FusionOutputs &outputs) {
  return llvm::any_of(outputs.all(), [](const FusionOutputs::Output &o) {
    return o.extent == Extent::PerColumn || o.extent == Extent::Single;
  });
}

FusionCode emitHostFusion(FusionOp fusion, const FusionPlan &plan, llvm::StringRef name, const CodeTarget &target,
                          llvm::Module &module) {
  FusionOutputs outputs(fusion, plan);
  HostSchedule schedule = HostSchedule::create(fusion, plan, target);
  if (schedule.streams)
    outputs.putOffSums();
  HostWorkspace workspace(plan, schedule);
  HostFusion region{fusion, plan, outputs, schedule, workspace};

  Stages functions(name, target, module);
  for (unsigned sweep = 0; sweep < plan.numSweeps(); ++sweep) {
    if (hasWork(region, sweep))
      functions.add(schedule.tiles(), [&](HostFunction &f) { emitSweep(region, f, sweep); });
    if (plan.endsInCombination(sweep))
      functions.add(combinationBlocks(region), [&](HostFunction &f) { emitCombination(region, f, sweep); });
  }
  if (!plan.endsInCombination(0) && sharesOutputs(outputs))
    functions.add(combinationBlocks(region), [&](HostFunction &f) { emitSharedOutputs(region, f); });

  FusionCode code;
  code.stages = functions.join();
  code.workspace_bytes = workspace.getBytes();
  return code;
}

} // namespace mpc::codegen
