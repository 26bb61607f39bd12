#include "tests/compiler/codegen/element_function.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "compiler/dialect/dialect.h"
#include "compiler/element/element_context.h"
#include "compiler/element/number_functions.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "tests/compiler/op_case_module.h"

namespace mpc::test {
namespace {

using namespace codegen;

/// Operands and results in memory, in 64 bits each.
class MemoryContext final : public ElementContext {
 public:
  MemoryContext(mlir::Operation* op, llvm::Function* function, unsigned lanes)
      : op_(op), lanes_(lanes), operands_(function->getArg(0)), results_(function->getArg(1)) {
    // A vector of elements begins at the third argument.
    llvm::IRBuilder<>& builder = EmissionScope::builder();
    first_ = function->getArg(2);
    element_ = spread(first_, lanes_);
    if (lanes_ != 0) element_ = builder.CreateAdd(element_, builder.CreateStepVector(WordType()));
  }

  Float operand(unsigned index) override { return FloatFromBits(Low(Load(index))); }
  Long integerOperand(unsigned index) override { return Load(index); }
  Bool boolOperand(unsigned index) override { return Load(index) != 0; }
  Unsigned column() override { return Low(Long(element_)); }
  Float atColumn(Unsigned wanted, Float there, Float elsewhere) override {
    return Select(column() == wanted, there, elsewhere);
  }
  Long linearIndex() override { return Long(element_); }
  Float once(llvm::function_ref<Float()> compute) override { return compute(); }
  std::int64_t count(Axis) const override { return ElementFunction::kElements; }

  void addTerm(Float) override { ADD_FAILURE() << "no reduction"; }
  Float accumulated(unsigned) override { return 0.0f; }
  Double accumulatedF64(unsigned) override { return 0.0; }
  void keep(Float) override { ADD_FAILURE() << "no reduction"; }
  Float kept(unsigned) override { return 0.0f; }

  void setResult(unsigned index, Float value) override { Store(index, BitsOf(value).value()); }
  void setResult(unsigned index, Bool value) override { Store(index, value.value()); }
  void setResult(unsigned index, Long value) override { Store(index, value.value()); }
  bool isUsed(unsigned) const override { return true; }

  bool AllSet() const { return set_.size() == op_->getNumResults(); }

 private:
  llvm::Type* WordType() const {
    llvm::Type* word = EmissionScope::builder().getInt64Ty();
    return lanes_ == 0 ? word : llvm::FixedVectorType::get(word, lanes_);
  }
  llvm::Value* Address(llvm::Value* columns, unsigned index) const {
    llvm::IRBuilder<>& builder = EmissionScope::builder();
    llvm::Value* column =
        builder.CreateLoad(builder.getPtrTy(), builder.CreateConstGEP1_64(builder.getPtrTy(), columns, index));
    return builder.CreateGEP(builder.getInt64Ty(), column, first_);
  }
  Long Load(unsigned index) const {
    llvm::IRBuilder<>& builder = EmissionScope::builder();
    // A scalar operand has the value of element 0.
    if (llvm::cast<mlir::RankedTensorType>(op_->getOperand(index).getType()).getNumElements() == 1) {
      llvm::Value* column =
          builder.CreateLoad(builder.getPtrTy(), builder.CreateConstGEP1_64(builder.getPtrTy(), operands_, index));
      return Long(builder.CreateLoad(builder.getInt64Ty(), column));
    }
    return Long(builder.CreateAlignedLoad(WordType(), Address(operands_, index), llvm::Align(8)));
  }
  void Store(unsigned index, llvm::Value* value) {
    llvm::IRBuilder<>& builder = EmissionScope::builder();
    value = spread(builder.CreateZExt(value, typeLike(builder.getInt64Ty(), value)), lanes_);
    builder.CreateAlignedStore(value, Address(results_, index), llvm::Align(8));
    EXPECT_TRUE(set_.insert(index).second) << "result " << index << " is set twice";
  }

  mlir::Operation* op_;
  unsigned lanes_;
  llvm::Value* operands_;
  llvm::Value* results_;
  llvm::Value* first_;
  llvm::Value* element_;
  std::set<unsigned> set_;
};

std::string TypeOf(char kind) {
  if (kind == 'r') return "tensor<1x16xf32>";
  if (kind == 'O') return "tensor<1xf32>";
  const std::string elements = std::islower(static_cast<unsigned char>(kind)) != 0 ? "16x" : "";
  switch (std::tolower(static_cast<unsigned char>(kind))) {
    case 'f':
      return "tensor<" + elements + "f32>";
    case 'h':
      return "tensor<" + elements + "f16>";
    case 'l':
      return "tensor<" + elements + "i64>";
    case 'i':
      return "tensor<" + elements + "i32>";
    case 'y':
      return "tensor<" + elements + "i8>";
    default:
      return "tensor<" + elements + "i1>";
  }
}

std::string TypesOf(std::string_view kinds) {
  std::string types;
  for (const char kind : kinds) types += (types.empty() ? "" : ", ") + TypeOf(kind);
  return types;
}

std::string ModuleText(std::string_view op, std::string_view operands, std::string_view results,
                       std::string_view attributes) {
  std::string names, arguments;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::string name = (i == 0 ? "%x" : ", %x") + std::to_string(i);
    names += name;
    arguments += name + ": " + TypeOf(operands[i]);
  }
  return "func.func @f(" + arguments + ") {\n  \"mpc." + std::string(op) + "\"(" + names + ") {" +
         std::string(attributes) + "} : (" + TypesOf(operands) + ") -> (" + TypesOf(results) + ")\n  return\n}\n";
}

void Optimise(llvm::Module& module) {
  llvm::PassBuilder passes;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager calls;
  llvm::ModuleAnalysisManager modules;
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(calls);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, calls, modules);
  passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

}  // namespace

ElementFunction::ElementFunction(std::string_view op, std::string_view operands, std::string_view results,
                                 std::string_view attributes, unsigned lanes)
    : step_(std::max(lanes, 1u)) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto parsed = ParseModule(ThreadContext(), ModuleText(op, operands, results, attributes));
  if (!parsed) {
    ADD_FAILURE() << op;
    return;
  }
  FusibleOpInterface fusible;
  parsed->walk([&](FusibleOpInterface found) { fusible = found; });
  results_ = fusible->getNumResults();

  auto context = std::make_unique<llvm::LLVMContext>();
  auto module = std::make_unique<llvm::Module>("element", *context);
  llvm::IRBuilder<> builder(*context);
  auto* type = llvm::FunctionType::get(builder.getVoidTy(),
                                       {builder.getPtrTy(), builder.getPtrTy(), builder.getInt64Ty()}, false);
  auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "element", *module);
  builder.SetInsertPoint(llvm::BasicBlock::Create(*context, "", function));
  {
    EmissionScope scope(builder);
    MemoryContext elements(fusible, function, lanes);
    fusible.emitElement(elements);
    EXPECT_TRUE(elements.AllSet()) << op;
  }
  builder.CreateRetVoid();
  if (llvm::verifyModule(*module, &llvm::errs())) {
    ADD_FAILURE() << op;
    return;
  }
  Optimise(*module);

  jit_ = llvm::cantFail(llvm::orc::LLJITBuilder().create());
  llvm::cantFail(jit_->addIRModule(llvm::orc::ThreadSafeModule(std::move(module), std::move(context))));
  function_ = llvm::cantFail(jit_->lookup("element")).toPtr<Function>();
}

Columns ElementFunction::Run(const Columns& operands, std::int64_t count) const {
  Columns results(results_, std::vector<std::uint64_t>(static_cast<std::size_t>(count)));
  if (function_ == nullptr) return results;
  std::vector<const std::uint64_t*> in;
  std::vector<std::uint64_t*> out;
  for (const auto& column : operands) in.push_back(column.data());
  for (auto& column : results) out.push_back(column.data());
  for (std::int64_t i = 0; i < count; i += step_) function_(in.data(), out.data(), i);
  return results;
}

}  // namespace mpc::test
