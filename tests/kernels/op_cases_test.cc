#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "tests/op_cases/op_case.h"

namespace mpc::op_cases {
namespace {

TEST(OpCases, CoverEveryReferenceOperation) {
  std::set<std::string> covered;
  for (const OpCase& op_case : AllOpCases()) {
    EXPECT_NE(reference::Find(op_case.op), nullptr) << op_case.name;
    covered.insert(op_case.op);
  }
  for (std::string_view name : reference::Names()) EXPECT_EQ(covered.count(std::string(name)), 1u) << name;
}

TEST(OpCases, NamesAreUnique) {
  std::set<std::string> names;
  for (const OpCase& op_case : AllOpCases()) EXPECT_TRUE(names.insert(op_case.name).second) << op_case.name;
}

TEST(OpCases, InputsAreReproducibleAndRepresentable) {
  for (const OpCase& op_case : AllOpCases()) {
    const DType dtype = op_case.low ? DType::kF16 : DType::kF32;
    const std::vector<reference::Tensor> first = MakeInputs(op_case, dtype);
    const std::vector<reference::Tensor> second = MakeInputs(op_case, dtype);
    ASSERT_EQ(first.size(), op_case.operands.size());
    for (std::size_t i = 0; i < first.size(); ++i) {
      ASSERT_EQ(first[i].values.size(), static_cast<std::size_t>(first[i].spec.num_elements())) << op_case.name;
      for (std::size_t e = 0; e < first[i].values.size(); ++e) {
        const double value = first[i].values[e];
        if (std::isnan(value)) continue;
        ASSERT_EQ(value, second[i].values[e]) << op_case.name;
        ASSERT_EQ(value, reference::RoundTo(first[i].spec.dtype, value)) << op_case.name;
      }
    }
  }
}

TEST(OpCases, LowFormsKeepTheNamedPositionsInF32) {
  for (const OpCase& op_case : AllOpCases()) {
    if (!op_case.low) continue;
    const std::vector<TensorSpec> specs = OperandSpecs(op_case, DType::kBF16);
    for (std::size_t position : op_case.f32_operands) {
      EXPECT_FALSE(IsLowPrecision(specs[position].dtype)) << op_case.name;
    }
  }
}

}  // namespace
}  // namespace mpc::op_cases
