#include "compiler/target/targets.h"

#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/state_attributes.h"
#include "compiler/dialect/step_signature.h"
#include "compiler/dialect/tensor_values.h"
#include "compiler/lowering/region_instruction.h"
#include "compiler/lowering/storage_assignment.h"
#include "runtime/memory_planner.h"

using namespace mlir;

namespace mpc::compiler {

namespace {

/// The facts of a backend that are known without a device.
struct Backend {
  std::string_view Name;
  std::int64_t BytesPerLaunch;
  LoneRegions Alone;
  bool FoldsGelu;
  bool PlansCheaply; ///< an instruction alone, to ask for its workspace
  bool GeneratesPtx;
  llvm::Expected<codegen::CodeTarget> (*Code)(std::string_view Arch);
};

constexpr Backend kBackends[] = {
    // About 2 us at 20 GB/s.
    {"cpu", 40'000, LoneRegions::WithoutKernelOrWorthIt, /*FoldsGelu=*/true, /*PlansCheaply=*/true,
     /*GeneratesPtx=*/false, [](std::string_view) { return codegen::hostTarget(); }},
    // About 3 us at 2.5 TB/s. cuBLASLt's gelu has neither a stated form nor a stated error. mpc's own products, which
    // have mpc's gelu, are for what libraries do not take.
    {"cuda", 7'500'000, LoneRegions::None, /*FoldsGelu=*/false, /*PlansCheaply=*/false, /*GeneratesPtx=*/true,
     [](std::string_view Arch) { return codegen::gpuTarget(llvm::StringRef(Arch.data(), Arch.size())); }},
};

const Backend *backendOf(std::string_view Name) {
  const Backend *Found = llvm::find_if(kBackends, [&](const Backend &Known) { return Known.Name == Name; });
  return Found == std::end(kBackends) ? nullptr : Found;
}

/// Whether \p Op becomes one instruction for which a kernel can be made: lowering refuses what nothing reads.
bool isLoneInstruction(Operation *Op) {
  return isa_and_present<MpcDialect>(Op->getDialect()) && !isa<FusionOp>(Op) && !isViewOrConstant(Op) &&
         !Op->use_empty() && llvm::all_of(Op->getOperandTypes(), isKnownTensor) &&
         llvm::all_of(Op->getResultTypes(), isKnownTensor);
}

/// A device, where it is here or is compiled for, with what is known of its backend.
class DeviceTarget : public TargetModel {
public:
  DeviceTarget(const Backend &Known, const runtime::Device *Device, TargetAttr Target) : Known(Known), Device(Device) {
    Options.allow_tf32 = Target.getTf32();
    Options.allow_winograd = Target.getWinograd();
  }

  std::int64_t bytesPerLaunch() const override { return Known.BytesPerLaunch; }
  LoneRegions loneRegions() const override { return Known.Alone; }
  bool foldsGelu() const override { return Known.FoldsGelu; }

  bool mayAlias(Operation *Op, unsigned Result, unsigned Operand) const override {
    return isa_and_present<MpcDialect>(Op->getDialect()) && compiler::mayAlias(Op, Result, Operand, Device);
  }

  std::int64_t workspaceBytes(Operation *Op) const override {
    if (auto Repeat = dyn_cast<RepeatOp>(Op))
      return bodyBytes(Repeat.getFunction());
    if (!Device || !Known.PlansCheaply || !isLoneInstruction(Op))
      return 0;
    runtime::Program Alone;
    runtime::Instruction Instruction = loneInstruction(Op, [&](Value V) {
      runtime::Value Record;
      Record.spec = toTensorSpec(cast<RankedTensorType>(V.getType()));
      Alone.values.push_back(Record);
      return static_cast<runtime::ValueId>(Alone.values.size() - 1);
    });
    // Lowering reports what the device cannot do.
    absl::StatusOr<runtime::InstructionPlan> Plan = Device->Plan(Alone, Instruction, Options);
    return Plan.ok() ? static_cast<std::int64_t>(Plan->workspace_bytes) : 0;
  }

  std::size_t arenaBytes(func::FuncOp Function, llvm::function_ref<std::int64_t(Operation *)> WorkspaceOf,
                         std::size_t Most) const override {
    StorageAssignment Storage(Function, Device);
    std::vector<runtime::LiveInterval> Intervals;
    // Arguments of a sequence lie where it is called.
    auto IsElsewhere = [&](Value V) {
      return V.getDefiningOp<ConstantOp>() || isState(roleOf(V)) || (isa<BlockArgument>(V) && isSequence(Function));
    };
    auto Add = [&](Value V) {
      if (Storage.root(V) != V || IsElsewhere(V))
        return;
      auto [First, Last] = Storage.life(V);
      Intervals.push_back({static_cast<std::size_t>(bytesOf(V)), First, Last});
    };
    for (BlockArgument Argument : Function.getArguments())
      Add(Argument);
    for (auto [Index, Op] : llvm::enumerate(Storage.instructions())) {
      for (Value Result : Op->getResults())
        if (!Result.use_empty() || isa<FusionOp, RepeatOp>(Op))
          Add(Result);
      if (std::int64_t Bytes = WorkspaceOf(Op))
        Intervals.push_back({static_cast<std::size_t>(Bytes), Index, Index});
    }
    return runtime::PlanMemory(Intervals, {}, Most).arena_bytes;
  }

private:
  /// The bytes that a function needs beside its arguments. They are the workspace of the operation that calls it.
  std::int64_t bodyBytes(func::FuncOp Called) const {
    if (!Called.getBody().hasOneBlock())
      return 0;
    if (auto Known = Bodies.find(Called); Known != Bodies.end())
      return Known->second;
    auto WorkspaceOf = [&](Operation *Op) { return workspaceBytes(Op); };
    auto Bytes = static_cast<std::int64_t>(arenaBytes(Called, WorkspaceOf, SIZE_MAX));
    Bodies[Called] = Bytes;
    return Bytes;
  }

  const Backend &Known;
  const runtime::Device *Device; ///< null where it is not here
  runtime::PlanOptions Options;
  mutable llvm::DenseMap<Operation *, std::int64_t> Bodies; ///< bytes of called functions, which stay as they are
};

class DeviceTargets : public TargetModels {
public:
  using TargetModels::TargetModels;

  llvm::Expected<std::unique_ptr<TargetModel>> resolve(TargetAttr Target) const override {
    absl::StatusOr<const runtime::Device *> Device = runtime::GetTarget(Target.getName().str(), Target.getArch().str());
    // A device of one's own has a name of its own.
    const Backend *Known = backendOf(Device.ok() ? std::string((*Device)->backend()) : Target.getName().str());
    if (!Known)
      return llvm::createStringError("unknown target '" + Target.getName() + "'; choose " + names());
    if (Device.status().code() == absl::StatusCode::kInvalidArgument)
      return llvm::createStringError(std::string(Device.status().message()));
    return std::make_unique<DeviceTarget>(*Known, Device.ok() ? *Device : nullptr, Target);
  }

private:
  // "cpu or cuda".
  static std::string names() {
    std::string Names;
    for (const Backend &Known : kBackends)
      Names += (Names.empty() ? "" : " or ") + std::string(Known.Name);
    return Names;
  }
};

} // namespace

void registerTargets(DialectRegistry &Registry) {
  Registry.addExtension(+[](MLIRContext *, MpcDialect *Dialect) { Dialect->addInterfaces<DeviceTargets>(); });
}

void registerTargets(MLIRContext &Context) {
  DialectRegistry Registry;
  registerTargets(Registry);
  Context.appendDialectRegistry(Registry);
}

llvm::Expected<codegen::CodeTarget> codeTargetOf(const runtime::Device &Device) {
  const Backend *Known = backendOf(Device.backend());
  if (!Known)
    return llvm::createStringError("no code is made for the backend '" + std::string(Device.backend()) + "'");
  return Known->Code(Device.arch());
}

bool generatesPtx(std::string_view Device) {
  const Backend *Known = backendOf(Device);
  return Known && Known->GeneratesPtx;
}

} // namespace mpc::compiler
