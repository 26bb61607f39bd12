#include "tests/compiler/cpu_operation_device.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/code_generator.h"
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/dialect.h"
#include "compiler/lowering/lowering.h"
#include "kernels/cpu/kernel.h"
#include "mlir/Pass/PassManager.h"
#include "passes/passes.h"
#include "runtime/executable.h"
#include "tests/compiler/op_case_module.h"
#include "tests/kernels/cpu_kernel_device.h"

namespace mpc::test {
namespace {

using mlir::OpBuilder;
using mlir::func::FuncOp;

/// The types that the operation gives its results from its operands: a spec leaves out those of unused results.
absl::StatusOr<llvm::SmallVector<mlir::RankedTensorType>> InferredTypes(mlir::MLIRContext* context,
                                                                        llvm::ArrayRef<mlir::Type> operands,
                                                                        const KernelSpec& spec) {
  const auto registered = mlir::RegisteredOperationName::lookup("mpc." + spec.name, context);
  auto* inference = registered ? registered->getInterface<ShapeInferenceOpInterface>() : nullptr;
  if (inference == nullptr) return absl::UnimplementedError("there is no operation mpc." + spec.name);
  mlir::NamedAttrList attributes(toNamedAttributes(context, spec.attributes));
  auto types = inference->inferTypes(operands, attributes.getDictionary(context));
  if (!types) return absl::InvalidArgumentError(llvm::toString(types.takeError()));
  return *std::move(types);
}

/// A function of the operands of `spec` to its used results.
absl::StatusOr<FuncOp> BuildFunction(mlir::ModuleOp module, const KernelSpec& spec) {
  mlir::MLIRContext* context = module.getContext();
  const mlir::Location loc = mlir::UnknownLoc::get(context);
  llvm::SmallVector<mlir::Type> operands, results, used;
  for (const TensorSpec& input : spec.inputs) operands.push_back(toTensorType(context, input));
  const auto inferred = InferredTypes(context, operands, spec);
  if (!inferred.ok()) return inferred.status();
  for (std::size_t i = 0; i < spec.outputs.size(); ++i) {
    results.push_back(spec.uses(i) ? toTensorType(context, spec.outputs[i]) : (*inferred)[i]);
    if (spec.uses(i)) used.push_back(results.back());
  }
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto function = FuncOp::create(builder, loc, "operation", builder.getFunctionType(operands, used));
  builder.setInsertionPointToStart(function.addEntryBlock());
  mlir::OperationState state(loc, "mpc." + spec.name);
  state.addOperands(function.getArguments());
  state.addTypes(results);
  state.addAttributes(toNamedAttributes(context, spec.attributes));
  mlir::Operation* op = builder.create(state);
  llvm::SmallVector<mlir::Value> returned;
  for (mlir::OpResult result : op->getResults()) {
    if (spec.uses(result.getResultNumber())) returned.push_back(result);
  }
  mlir::func::ReturnOp::create(builder, loc, returned);
  return function;
}

absl::StatusOr<runtime::Program> CompileAlone(const KernelSpec& spec, const runtime::Device& cpu) {
  mlir::MLIRContext& context = ThreadContext();
  const mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  const absl::StatusOr<FuncOp> function = BuildFunction(*module, spec);
  if (!function.ok()) return function.status();
  mlir::PassManager passes(&context);
  passes.addNestedPass<FuncOp>(createLayoutPass());
  passes.addNestedPass<FuncOp>(createFusionPass());
  if (mlir::failed(passes.run(*module))) return absl::InternalError("the passes fail on mpc." + spec.name);
  auto target = codegen::hostTarget();
  if (!target) return absl::InternalError(llvm::toString(target.takeError()));
  auto code = codegen::generateCode(*function, *target, {"", 1});
  if (!code) return absl::InternalError(llvm::toString(code.takeError()));
  return compiler::lowerToProgram(*function, cpu, {}, *std::move(code));
}

/// What surrounds a buffer of `bytes` bytes, as inputs of a Program: results start as NaN, and what follows is a guard.
std::vector<std::uint8_t> GuardOf(std::size_t bytes) {
  std::vector<std::uint8_t> guard(bytes, 0xFF);
  guard.resize((bytes + 127) / 64 * 64, 0xA5);
  return guard;
}

/// A Program whose values and workspaces have places of their own, each with a guard: an input that is an output too.
/// After the results come the operands as the step leaves them, then the guards.
class GuardedProgram {
 public:
  explicit GuardedProgram(runtime::Program plain) : program(std::move(plain)) {
    program.arena_bytes = 0;
    for (const runtime::NamedValue& input : program.inputs) program.outputs.push_back(input);
    const std::size_t values = program.values.size();
    for (std::size_t i = 0; i < values; ++i) {
      const runtime::Value value = program.values[i];
      const bool is_input = value.storage == runtime::Storage::kInput;
      if (!is_input && value.storage != runtime::Storage::kTemporary) continue;
      const std::size_t bytes = value.spec.bytes();
      const auto [place, is_new] = offsets_.try_emplace(Place{value.storage, value.index, value.offset, bytes}, 0);
      if (is_new) place->second = is_input ? AddInput(bytes) : Add(bytes);
      program.values[i].offset = place->second;
    }
    for (runtime::Sequence& sequence : program.sequences) {
      for (runtime::Instruction& instruction : sequence.instructions) {
        instruction.workspace_offset = Add(instruction.workspace_bytes);
      }
    }
  }

  runtime::Program program;
  std::vector<std::size_t> guarded;  ///< bytes of the buffers with guards

 private:
  /// Views lie where what they show lies.
  using Place = std::tuple<runtime::Storage, std::int32_t, std::size_t, std::size_t>;

  /// The guard covers the buffer too.
  std::size_t Add(std::size_t bytes) {
    const std::size_t offset = program.arena_bytes;
    const auto size = static_cast<std::int64_t>(GuardOf(bytes).size());
    const auto index = static_cast<std::int32_t>(program.inputs.size());
    const auto id = static_cast<runtime::ValueId>(program.values.size());
    program.values.push_back({{DType::kI8, {size}}, runtime::Storage::kInput, index, offset});
    program.inputs.push_back({absl::StrCat("guard", index), id});
    program.outputs.push_back(program.inputs.back());
    program.arena_bytes += GuardOf(bytes).size();
    guarded.push_back(bytes);
    return offset;
  }
  /// Nothing writes an input: its guard follows it at the next aligned place.
  std::size_t AddInput(std::size_t bytes) {
    const std::size_t offset = program.arena_bytes;
    program.arena_bytes += (bytes + 63) / 64 * 64;
    Add(0);
    return offset;
  }

  std::map<Place, std::size_t> offsets_;
};

/// Runs a GuardedProgram.
class CompiledOperation : public KernelDevice::Kernel {
 public:
  CompiledOperation(std::unique_ptr<runtime::Executable> step, const KernelSpec& spec,
                    const std::vector<std::size_t>& guarded)
      : step_(std::move(step)), spec_(spec), guarded_(guarded) {
    for (std::size_t bytes : guarded_) guards_.push_back(GuardOf(bytes));
  }
  std::size_t workspace_bytes() const override { return 0; }
  absl::Status Run(const void* const* inputs, void* const* outputs, void*) override {
    std::vector<absl::Span<const std::uint8_t>> bytes;
    for (std::size_t i = 0; i < spec_.inputs.size(); ++i) {
      bytes.emplace_back(static_cast<const std::uint8_t*>(inputs[i]), spec_.inputs[i].bytes());
    }
    bytes.insert(bytes.end(), guards_.begin(), guards_.end());
    if (absl::Status status = step_->Run(bytes); !status.ok()) return status;
    std::size_t next = 0;
    for (std::size_t i = 0; i < spec_.outputs.size(); ++i) {
      if (!spec_.uses(i)) continue;
      const absl::Span<const std::uint8_t> result = step_->output(next++);
      std::copy(result.begin(), result.end(), static_cast<std::uint8_t*>(outputs[i]));
    }
    for (std::size_t i = 0; i < spec_.inputs.size(); ++i, ++next) {
      if (step_->output(next) != bytes[i])
        return absl::InternalError(absl::StrCat(spec_.name, " writes to operand ", i));
    }
    for (std::size_t i = 0; i < guards_.size(); ++i, ++next) {
      if (step_->output(next).subspan(guarded_[i]) != absl::MakeConstSpan(guards_[i]).subspan(guarded_[i])) {
        return absl::InternalError(absl::StrCat(spec_.name, " writes past the end of a buffer"));
      }
    }
    return absl::OkStatus();
  }

 private:
  std::unique_ptr<runtime::Executable> step_;
  KernelSpec spec_;
  std::vector<std::size_t> guarded_;
  std::vector<std::vector<std::uint8_t>> guards_;
};

class CpuOperationDevice : public KernelDevice {
 public:
  absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelSpec& spec) const override {
    if (HasCpuKernel(spec.name)) return CpuKernels().Create(spec);
    const absl::StatusOr<const runtime::Device*> cpu = runtime::GetDevice("cpu");
    if (!cpu.ok()) return cpu.status();
    absl::StatusOr<runtime::Program> program = CompileAlone(spec, **cpu);
    if (!program.ok()) return program.status();
    GuardedProgram guarded(*std::move(program));
    absl::StatusOr<std::unique_ptr<runtime::Executable>> step =
        (*cpu)->Load(std::make_shared<const runtime::Program>(std::move(guarded.program)), runtime::StateStore());
    if (!step.ok()) return step.status();
    return std::make_unique<CompiledOperation>(*std::move(step), spec, guarded.guarded);
  }
  /// Of a Program's results none lies over its inputs.
  bool MayAlias(std::string_view name, std::size_t output, std::size_t input) const override {
    return HasCpuKernel(name) && CpuKernels().MayAlias(name, output, input);
  }
};

}  // namespace

bool HasCpuKernel(std::string_view name) {
  const std::vector<std::string_view> names = cpu::KernelNames();
  return std::find(names.begin(), names.end(), name) != names.end();
}

const KernelDevice& CpuOperations() {
  static const auto* const device = new CpuOperationDevice;
  return *device;
}

}  // namespace mpc::test
