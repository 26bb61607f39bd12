#include "compiler/codegen/host_region.h"

#include "compiler/codegen/host_sweep.h"

namespace mpc::codegen {

namespace {

/// The functions of a region in their order, those that run in one block joined to their neighbours.
class Stages {
public:
  Stages(llvm::StringRef Name, const CodeTarget &Target, llvm::Module &Module)
      : Name(Name), Target(Target), Module(Module) {}

  template <typename Emit> void add(int64_t Blocks, Emit Function) {
    HostFunction F(Module, (Name + "_part_" + llvm::Twine(Parts.size())).str(), Target);
    Function(F);
    F.finish();
    Parts.push_back({F.function(), Blocks});
  }

  llvm::SmallVector<Stage, 3> join();

private:
  struct Part {
    llvm::Function *function;
    int64_t blocks;
  };
  std::string nameOf(size_t Index) const { return (Name + "_" + llvm::Twine(Index)).str(); }

  llvm::StringRef Name;
  const CodeTarget &Target;
  llvm::Module &Module;
  llvm::SmallVector<Part> Parts;
};

} // namespace

llvm::SmallVector<Stage, 3> Stages::join() {
  llvm::SmallVector<Stage, 3> Result;
  for (size_t First = 0; First < Parts.size();) {
    size_t End = First + 1;
    while (End < Parts.size() && Parts[First].blocks == 1 && Parts[End].blocks == 1)
      ++End;
    std::string StageName = nameOf(Result.size());
    if (End == First + 1) {
      Parts[First].function->setName(StageName);
    } else {
      HostFunction Joined(Module, StageName, Target);
      for (size_t Index = First; Index < End; ++Index) {
        llvm::Function *Part = Parts[Index].function;
        Part->setLinkage(llvm::Function::InternalLinkage);
        Joined.builder().CreateCall(Part, {Joined.function()->getArg(0), Joined.function()->getArg(1), Joined.tile()});
      }
      Joined.finish();
    }
    Result.push_back({StageName, Parts[First].blocks});
    First = End;
  }
  return Result;
}

// Outputs that no reduction precedes and that have fewer values than the space.
static bool sharesOutputs(const RegionOutputs &Outputs) {
  return llvm::any_of(Outputs.all(), [](const RegionOutputs::Output &O) {
    return O.extent == Extent::PerColumn || O.extent == Extent::Single;
  });
}

RegionCode emitHostRegion(FusionOp Fusion, const RegionPlan &Plan, llvm::StringRef Name, const CodeTarget &Target,
                          llvm::Module &Module) {
  RegionOutputs Outputs(Fusion, Plan);
  HostSchedule Schedule = HostSchedule::of(Fusion, Plan, Target);
  if (Schedule.streams)
    Outputs.putOffSums();
  HostWorkspace Workspace(Plan, Schedule);
  HostRegion Region{Fusion, Plan, Outputs, Schedule, Workspace};

  Stages Functions(Name, Target, Module);
  for (unsigned Sweep = 0; Sweep < Plan.numSweeps(); ++Sweep) {
    if (hasWork(Region, Sweep))
      Functions.add(Schedule.tiles(), [&](HostFunction &F) { emitSweep(Region, F, Sweep); });
    if (Plan.endsInCombination(Sweep))
      Functions.add(combinationBlocks(Region), [&](HostFunction &F) { emitCombination(Region, F, Sweep); });
  }
  if (!Plan.endsInCombination(0) && sharesOutputs(Outputs))
    Functions.add(combinationBlocks(Region), [&](HostFunction &F) { emitSharedOutputs(Region, F); });

  RegionCode Code;
  Code.stages = Functions.join();
  Code.workspace_bytes = Workspace.bytes();
  return Code;
}

} // namespace mpc::codegen
