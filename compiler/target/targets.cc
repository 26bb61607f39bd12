#include "compiler/target/targets.h"

#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/state_attributes.h"
#include "compiler/dialect/step_signature.h"
#include "compiler/dialect/tensor_values.h"
#include "compiler/lowering/fusion_instruction.h"
#include "compiler/lowering/storage_assignment.h"
#include "kernels/narrow_convolution.h"
#include "runtime/memory_planner.h"
#include "runtime/packed_weights.h"

#include <algorithm>
#include <utility>

using namespace mlir;

namespace mpc::compiler {

namespace {

/// The facts of a backend that are known without a device.
struct Backend {
  std::string_view name;
  std::int64_t bytesPerLaunch;
  LoneFusions alone;
  bool foldsGelu;
  std::int64_t lowProductMultiple;
  bool packsAttention;
  bool foldsRelu;
  bool channelsLastAlways; ///< also for convolutions that are small and narrow
  bool plansCheaply;       ///< an instruction alone, to ask for its workspace
  bool generatesPtx;
  llvm::Expected<codegen::CodeTarget> (*code)(std::string_view arch);
};

constexpr Backend kBackends[] = {
    // About 2 us at 20 GB/s.
    {"cpu", 40'000, LoneFusions::WithoutKernelOrWorthIt, /*foldsGelu=*/true, /*lowProductMultiple=*/1,
     /*packsAttention=*/false, /*foldsRelu=*/false, /*channelsLastAlways=*/true, /*plansCheaply=*/true,
     /*generatesPtx=*/false, [](std::string_view) { return codegen::hostTarget(); }},
    // About 3 us at 2.5 TB/s. cuBLASLt's gelu has neither a stated form nor a stated error. mpc's own products, which
    // have mpc's gelu, are for what libraries do not take. Tensor cores read rows that begin at multiples of 16 bytes.
    {"cuda", 7'500'000, LoneFusions::ExpensiveElements, /*foldsGelu=*/false, /*lowProductMultiple=*/8,
     /*packsAttention=*/true, /*foldsRelu=*/true, /*channelsLastAlways=*/false, /*plansCheaply=*/false,
     /*generatesPtx=*/true,
     [](std::string_view arch) { return codegen::gpuTarget(llvm::StringRef(arch.data(), arch.size())); }},
};

const Backend *backendOf(std::string_view name) {
  const Backend *found = llvm::find_if(kBackends, [&](const Backend &known) { return known.name == name; });
  return found == std::end(kBackends) ? nullptr : found;
}

/// Whether \p op becomes one instruction for which a kernel can be made: lowering refuses what nothing reads.
bool isLoneInstruction(Operation *op) {
  return isa_and_present<MpcDialect>(op->getDialect()) && !isa<FusionOp>(op) && !isViewOrConstant(op) &&
         !op->use_empty() && llvm::all_of(op->getOperandTypes(), isKnownTensor) &&
         llvm::all_of(op->getResultTypes(), isKnownTensor);
}

/// Whether \p op is a convolution, or a derivative of one, that CUDA's own kernels take before cuDNN.
bool isSmallAndNarrow(Operation *op) {
  Value weight, y;
  int64_t groups = 1;
  if (auto forward = dyn_cast<Conv2dOp>(op)) {
    weight = forward.getWeight(), y = forward.getY(), groups = forward.getGroups();
  } else if (auto input = dyn_cast<Conv2dGradInputOp>(op)) {
    weight = input.getWeight(), y = input.getDy(), groups = input.getGroups();
  } else if (auto kernel = dyn_cast<Conv2dGradWeightOp>(op)) {
    weight = kernel.getDweight(), y = kernel.getDy(), groups = kernel.getGroups();
  } else {
    return false;
  }
  ArrayRef<int64_t> extents = cast<RankedTensorType>(weight.getType()).getShape();
  int64_t pixels = elementCount(y) / std::max<int64_t>(extents[0], 1);
  return mpc::IsSmallAndNarrow(extents[0] / std::max<int64_t>(groups, 1), extents[1], pixels * elementCount(weight));
}

/// A device, where it is here or is compiled for, with what is known of its backend.
class DeviceTarget : public TargetModel {
public:
  DeviceTarget(const Backend &known, const runtime::Device *device, TargetAttr target) : known(known), device(device) {
    options.allow_tf32 = target.getTf32();
    options.allow_winograd = target.getWinograd();
  }

  std::int64_t bytesPerLaunch() const override { return known.bytesPerLaunch; }
  LoneFusions loneFusions() const override { return known.alone; }
  bool foldsGelu() const override { return known.foldsGelu; }
  std::int64_t lowProductMultiple() const override { return known.lowProductMultiple; }
  bool packsAttention() const override { return known.packsAttention; }
  bool foldsRelu() const override { return known.foldsRelu; }
  bool prefersChannelsLast(Operation *op) const override { return known.channelsLastAlways || !isSmallAndNarrow(op); }
  DType nativeLowType() const override { return device ? device->native_low_type() : DType::kBF16; }

  Aliasing aliasing(Operation *op) const override {
    if (!isa_and_present<MpcDialect>(op->getDialect()))
      return [](unsigned, unsigned) { return false; };
    return aliasingOf(op, device);
  }

  KernelPlan kernelPlan(Operation *op) const override {
    if (auto repeat = dyn_cast<RepeatOp>(op))
      return {.workspaceBytes = bodyBytes(repeat.getFunction())};
    if (!device || !known.plansCheaply || !isLoneInstruction(op))
      return {};
    runtime::Program alone;
    runtime::Instruction instruction = loneInstruction(op, [&](Value v) {
      runtime::Value record;
      record.spec = toTensorSpec(cast<RankedTensorType>(v.getType()));
      alone.values.push_back(record);
      return static_cast<runtime::ValueId>(alone.values.size() - 1);
    });
    // Lowering reports what the device cannot do.
    absl::StatusOr<runtime::InstructionPlan> plan = device->Plan(alone, instruction, options);
    if (!plan.ok())
      return {};
    if (!plan->packing)
      return {.workspaceBytes = static_cast<std::int64_t>(plan->workspace_bytes)};
    runtime::Instruction pack = runtime::PackWeight(*plan->packing, alone, instruction);
    return {.workspaceBytes = std::max(workspaceOf(alone, pack), workspaceOf(alone, instruction)),
            .packing = std::move(plan->packing)};
  }

  std::size_t arenaBytes(func::FuncOp function, llvm::function_ref<std::int64_t(Operation *)> scratchOf,
                         std::size_t most) const override {
    StorageAssignment storage(function, device);
    std::vector<runtime::LiveInterval> intervals;
    // Arguments of a sequence lie where it is called.
    auto isElsewhere = [&](Value v) {
      return v.getDefiningOp<ConstantOp>() || isState(roleOf(v)) || (isa<BlockArgument>(v) && isSequence(function));
    };
    auto add = [&](Value v) {
      if (storage.root(v) != v || isElsewhere(v))
        return;
      auto [first, last] = storage.life(v);
      intervals.push_back({static_cast<std::size_t>(bytesOf(v)), first, last});
    };
    for (BlockArgument argument : function.getArguments())
      add(argument);
    for (auto [index, op] : llvm::enumerate(storage.getInstructions())) {
      for (Value result : op->getResults())
        if (!result.use_empty() || isa<FusionOp, RepeatOp>(op))
          add(result);
      if (std::int64_t bytes = scratchOf(op))
        intervals.push_back({static_cast<std::size_t>(bytes), index, index});
    }
    return runtime::PlanMemory(intervals, {}, most).arena_bytes;
  }

private:
  std::int64_t workspaceOf(const runtime::Program &alone, const runtime::Instruction &instruction) const {
    absl::StatusOr<runtime::InstructionPlan> plan = device->Plan(alone, instruction, options);
    return plan.ok() ? static_cast<std::int64_t>(plan->workspace_bytes) : 0;
  }

  /// The bytes that a function needs beside its arguments. They are the workspace of the operation that calls it.
  std::int64_t bodyBytes(func::FuncOp called) const {
    if (!called.getBody().hasOneBlock())
      return 0;
    if (auto known = bodies.find(called); known != bodies.end())
      return known->second;
    // A weight that every call reads alike may be packed outside. It is counted here all the same.
    auto scratchOf = [&](Operation *op) {
      KernelPlan plan = kernelPlan(op);
      return plan.workspaceBytes + plan.packedBytes();
    };
    auto bytes = static_cast<std::int64_t>(arenaBytes(called, scratchOf, SIZE_MAX));
    bodies[called] = bytes;
    return bytes;
  }

  const Backend &known;
  const runtime::Device *device; ///< null where it is not here
  runtime::PlanOptions options;
  mutable llvm::DenseMap<Operation *, std::int64_t> bodies; ///< bytes of called functions, which stay as they are
};

class DeviceTargets : public TargetModels {
public:
  using TargetModels::TargetModels;

  llvm::Expected<std::unique_ptr<TargetModel>> resolve(TargetAttr target) const override {
    absl::StatusOr<const runtime::Device *> device = runtime::GetTarget(target.getName().str(), target.getArch().str());
    // A device of one's own has a name of its own.
    const Backend *known = backendOf(device.ok() ? std::string((*device)->backend()) : target.getName().str());
    if (!known)
      return llvm::createStringError("unknown target '" + target.getName() + "'; choose " + names());
    if (device.status().code() == absl::StatusCode::kInvalidArgument)
      return llvm::createStringError(std::string(device.status().message()));
    return std::make_unique<DeviceTarget>(*known, device.ok() ? *device : nullptr, target);
  }

private:
  // "cpu or cuda".
  static std::string names() {
    std::string names;
    for (const Backend &known : kBackends)
      names += (names.empty() ? "" : " or ") + std::string(known.name);
    return names;
  }
};

} // namespace

void registerTargets(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, MpcDialect *dialect) { dialect->addInterfaces<DeviceTargets>(); });
}

void registerTargets(MLIRContext &context) {
  DialectRegistry registry;
  registerTargets(registry);
  context.appendDialectRegistry(registry);
}

llvm::Expected<codegen::CodeTarget> codeTargetOf(const runtime::Device &device) {
  const Backend *known = backendOf(device.backend());
  if (!known)
    return llvm::createStringError("no code is made for the backend '" + std::string(device.backend()) + "'");
  return known->code(device.arch());
}

bool generatesPtx(std::string_view device) {
  const Backend *known = backendOf(device);
  return known && known->generatesPtx;
}

} // namespace mpc::compiler
