#include "tests/compiler/operation_case.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>

#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/dialect.h"
#include "tests/kernels/acceptance.h"
#include "tests/kernels/error_bounds.h"

namespace mpc::test {

using reference::Tensor;

TensorSpec SpecOf(mlir::Value value) { return toTensorSpec(mlir::cast<mlir::RankedTensorType>(value.getType())); }

op_cases::OpCase CaseOf(mlir::Operation& op) {
  op_cases::OpCase op_case;
  op_case.op = op.getName().stripDialect().str();
  op_case.name = op_case.op;
  op_case.attributes = kernelAttributes(&op);
  op_case.low = false;
  for (mlir::Value operand : op.getOperands()) op_case.operands.push_back({SpecOf(operand)});
  for (mlir::Value result : op.getResults()) op_case.results.push_back(SpecOf(result));
  return op_case;
}

static std::vector<double> ValuesOf(ConstantOp constant, std::size_t count) {
  auto elements = mlir::cast<mlir::DenseElementsAttr>(constant.getValue());
  std::vector<double> values;
  if (mlir::isa<mlir::FloatType>(elements.getElementType())) {
    for (const llvm::APFloat& element : elements.getValues<llvm::APFloat>()) {
      values.push_back(element.convertToDouble());
    }
  } else {
    const bool is_bool = elements.getElementType().isInteger(1);
    for (const llvm::APInt& element : elements.getValues<llvm::APInt>()) {
      values.push_back(is_bool ? element.getZExtValue() : element.getSExtValue());
    }
  }
  EXPECT_EQ(values.size(), count);
  return values;
}

std::vector<Tensor> ExactResults(mlir::Operation& op, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> exact;
  for (mlir::Value result : op.getResults()) {
    exact.push_back({SpecOf(result), std::vector<double>(static_cast<std::size_t>(SpecOf(result).num_elements()))});
  }
  if (auto constant = mlir::dyn_cast<ConstantOp>(op)) {
    exact[0].values = ValuesOf(constant, exact[0].values.size());
    return exact;
  }
  const std::string name = op.getName().stripDialect().str();
  const auto function = reference::Find(name);
  EXPECT_NE(function, nullptr) << name;
  if (function != nullptr) function(kernelAttributes(&op), inputs, absl::MakeSpan(exact));
  return exact;
}

void ExpectWithinBounds(mlir::Operation& op, const std::vector<Tensor>& inputs, const std::vector<Tensor>& exact,
                        const std::vector<const Tensor*>& actual) {
  const auto errors = ArithmeticErrors(CaseOf(op), inputs, exact);
  for (std::size_t r = 0; r < exact.size(); ++r) {
    if (actual[r] == nullptr) continue;
    for (std::size_t i = 0; i < exact[r].values.size(); ++i) {
      const std::optional<double> error = errors[r] ? std::optional((*errors[r])[i]) : std::nullopt;
      // An infinity or NaN among its terms makes a bound NaN: then it says nothing of a finite value.
      if (error && std::isnan(*error) && std::isfinite(exact[r].values[i])) continue;
      // Infinities among its terms make a sum infinite or NaN, by the order in which they meet.
      if (error && !std::isfinite(exact[r].values[i]) && !std::isfinite(actual[r]->values[i])) continue;
      ASSERT_TRUE(Accepts(exact[r].spec.dtype, actual[r]->values[i], exact[r].values[i], error))
          << op.getName().getStringRef().str() << " result " << r << " [" << i << "]: " << actual[r]->values[i]
          << ", exactly " << exact[r].values[i] << ", arithmetic error bound " << error.value_or(0);
    }
  }
}

}  // namespace mpc::test
