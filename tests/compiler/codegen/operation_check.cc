#include "tests/compiler/codegen/operation_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "compiler/dialect/attribute_conversion.h"
#include "tests/compiler/cpu_operation_device.h"
#include "tests/compiler/operation_case.h"

namespace mpc::test {
namespace {

using reference::Tensor;

// Products of three numbers below it, and sums of many, stay in the range of f32, in which the bounds hold.
constexpr double kLargest = 0x1p36;

bool LeavesTheRange(const std::vector<Tensor>& inputs) {
  for (const Tensor& input : inputs) {
    for (double value : input.values) {
      if (std::isfinite(value) && std::abs(value) > kLargest) return true;
    }
  }
  return false;
}

class OperationCheck {
 public:
  OperationCheck(FusionOp fusion, const std::vector<Bits>& inputs, const std::vector<Bits>& outputs)
      : body_(fusion.getBody().front()) {
    fusion->walk([&](FusibleOpInterface op) {
      for (const codegen::Reduction& reduction : op.getReductions()) {
        takes_maxima_ |= llvm::is_contained(reduction.accumulators, codegen::Combine::MaxNum) ||
                         llvm::is_contained(reduction.accumulators, codegen::Combine::Maximum);
      }
    });
    for (auto [argument, bits] : llvm::zip_equal(body_.getArguments(), inputs)) known_[argument] = bits;
    for (auto [value, bits] : llvm::zip_equal(body_.getTerminator()->getOperands(), outputs)) yielded_[value] = &bits;
  }

  /// Returns how many operations were left out.
  int Run() {
    int left_out = 0;
    for (mlir::Operation& op : body_.without_terminator()) {
      if (!llvm::all_of(op.getOperands(), [&](mlir::Value operand) { return known_.contains(operand); })) {
        ++left_out;
        for (mlir::Value result : op.getResults()) {
          if (const Bits* bits = Yielded(result)) known_[result] = *bits;
        }
        continue;
      }
      SCOPED_TRACE(op.getName().getStringRef().str());
      if (mlir::isa<mlir::ViewLikeOpInterface>(op)) {
        ExpectReshaped(op);
      } else if (mlir::cast<FusibleOpInterface>(op).getReductions().empty()) {
        ExpectKernelBits(op);
      } else {
        ExpectReduced(op);
      }
      if (testing::Test::HasFatalFailure()) break;
    }
    return left_out;
  }

 private:
  const Bits* Yielded(mlir::Value value) const { return yielded_.lookup(value); }

  static Tensor AsTensor(mlir::Value value, const Bits& bits) {
    return reference::FromStorage(SpecOf(value), bits.data());
  }

  void ExpectBits(mlir::OpResult result, const Bits& expected) {
    known_[result] = expected;
    const Bits* actual = Yielded(result);
    if (actual == nullptr || SameValues(SpecOf(result), *actual, expected)) return;
    const Tensor ours = AsTensor(result, *actual), theirs = AsTensor(result, expected);
    for (std::size_t i = 0; i < ours.values.size(); ++i) {
      const double a = ours.values[i], b = theirs.values[i];
      if (std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(a) && std::isnan(b))) continue;
      if (takes_maxima_ && a == b) continue;
      ADD_FAILURE() << "result " << result.getResultNumber() << " [" << i << "]: " << a << ", the kernel gives " << b;
      return;
    }
  }

  void ExpectReshaped(mlir::Operation& op) {
    const Bits bits = known_[op.getOperand(0)];
    ExpectBits(op.getResult(0), bits);
  }

  void ExpectKernelBits(mlir::Operation& op) {
    KernelSpec spec;
    spec.name = op.getName().stripDialect().str();
    spec.attributes = kernelAttributes(&op);
    std::vector<const void*> operands;
    for (mlir::Value operand : op.getOperands()) {
      spec.inputs.push_back(SpecOf(operand));
      operands.push_back(known_[operand].data());
    }
    for (mlir::Value result : op.getResults()) spec.outputs.push_back(SpecOf(result));
    auto kernel = CpuOperations().Create(spec);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    std::vector<Bits> results;
    for (const TensorSpec& output : spec.outputs) results.emplace_back(output.bytes());
    std::vector<void*> outputs;
    for (Bits& bits : results) outputs.push_back(bits.data());
    std::vector<double> workspace((*kernel)->workspace_bytes() / sizeof(double) + 1);
    ASSERT_TRUE((*kernel)->Run(operands.data(), outputs.data(), workspace.data()).ok());
    for (auto [result, bits] : llvm::zip_equal(op.getResults(), results)) ExpectBits(result, bits);
  }

  void ExpectReduced(mlir::Operation& op) {
    std::vector<Tensor> inputs, yielded;
    for (mlir::Value operand : op.getOperands()) {
      inputs.push_back(AsTensor(operand, known_[operand]));
    }
    yielded.reserve(op.getNumResults());
    std::vector<const Tensor*> actual(op.getNumResults());
    for (mlir::OpResult result : op.getResults()) {
      const Bits* bits = Yielded(result);
      if (bits == nullptr) continue;
      known_[result] = *bits;
      actual[result.getResultNumber()] = &yielded.emplace_back(AsTensor(result, *bits));
    }
    if (!LeavesTheRange(inputs)) ExpectWithinBounds(op, inputs, ExactResults(op, inputs), actual);
  }

  mlir::Block& body_;
  /// Then the sign of a zero is open: which of two zeros is the larger follows from the order of the reduction, which
  /// threads that combine theirs with each other's see from two sides.
  bool takes_maxima_ = false;
  llvm::DenseMap<mlir::Value, const Bits*> yielded_;
  llvm::DenseMap<mlir::Value, Bits> known_;
};

}  // namespace

bool SameValues(const TensorSpec& spec, const Bits& ours, const Bits& theirs) {
  if (ours == theirs) return true;
  if (ours.size() != theirs.size()) return false;
  const std::vector<double> a = reference::FromStorage(spec, ours.data()).values;
  const std::vector<double> b = reference::FromStorage(spec, theirs.data()).values;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof a[i]) != 0 && !(std::isnan(a[i]) && std::isnan(b[i]))) return false;
  }
  return true;
}

int ExpectOperations(FusionOp fusion, const std::vector<Bits>& inputs, const std::vector<Bits>& outputs) {
  return OperationCheck(fusion, inputs, outputs).Run();
}

}  // namespace mpc::test
