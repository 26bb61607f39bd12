#include "tests/compiler/codegen/compiled_region.h"

#include <string>
#include <thread>
#include <utility>

#include "compiler/codegen/code_generator.h"
#include "llvm/ExecutionEngine/Orc/CompileUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/TargetSelect.h"

namespace mpc::test {
namespace {

using llvm::orc::JITTargetMachineBuilder;

absl::Status Internal(llvm::Error error) { return absl::InternalError(llvm::toString(std::move(error))); }

absl::StatusOr<std::unique_ptr<llvm::orc::LLJIT>> CreateJit(const codegen::CodeTarget& target) {
  static const bool initialised = !llvm::InitializeNativeTarget() && !llvm::InitializeNativeTargetAsmPrinter();
  if (!initialised) return absl::InternalError("LLVM has no target for this processor");
  JITTargetMachineBuilder machine{llvm::Triple(target.triple)};
  machine.setCPU(target.cpu);
  machine.setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
  machine.getOptions().AllowFPOpFusion = llvm::FPOpFusion::Strict;
  auto jit = llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(std::move(machine)).create();
  if (!jit) return Internal(jit.takeError());
  return std::move(*jit);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CompiledRegion>> CompiledRegion::Create(FusionOp fusion,
                                                                       const codegen::CodeTarget& target) {
  std::unique_ptr<CompiledRegion> region(new CompiledRegion);
  auto context = std::make_unique<llvm::LLVMContext>();
  auto module = std::make_unique<llvm::Module>("region", *context);
  llvm::Expected<codegen::RegionCode> code = codegen::emitRegion(fusion, "region", target, *module);
  if (!code) return absl::InvalidArgumentError(llvm::toString(code.takeError()));
  region->code_ = *std::move(code);
  std::string message;
  llvm::raw_string_ostream stream(message);
  if (llvm::verifyModule(*module, &stream)) return absl::InternalError(message);

  auto jit = CreateJit(target);
  if (!jit.ok()) return jit.status();
  region->jit_ = *std::move(jit);
  module->setDataLayout(region->jit_->getDataLayout());
  if (llvm::Error error =
          region->jit_->addIRModule(llvm::orc::ThreadSafeModule(std::move(module), std::move(context)))) {
    return Internal(std::move(error));
  }
  for (const codegen::Stage& stage : region->code_.stages) {
    auto address = region->jit_->lookup(stage.function);
    if (!address) return Internal(address.takeError());
    region->functions_.push_back(address->toPtr<Function>());
  }
  return region;
}

CompiledRegion::~CompiledRegion() = default;

void CompiledRegion::Run(void* const* operands, void* workspace, Order order) const {
  for (auto [function, stage] : llvm::zip_equal(functions_, code_.stages)) {
    const auto run = [&, call = function, blocks = stage.blocks](std::int64_t first, std::int64_t step) {
      for (std::int64_t i = first; i < blocks; i += step) {
        call(operands, workspace, order == Order::kReverse ? blocks - 1 - i : i);
      }
    };
    if (order != Order::kTwoThreads) {
      run(0, 1);
      continue;
    }
    std::thread other(run, 1, 2);
    run(0, 2);
    other.join();
  }
}

codegen::CodeTarget HostTarget() { return llvm::cantFail(codegen::hostTarget()); }

codegen::CodeTarget NarrowTarget() {
  codegen::CodeTarget target = HostTarget();
  target.cpu = "x86-64-v3";
  target.vector_bits = 256;
  return target;
}

}  // namespace mpc::test
