#include "tests/kernels/attention_checks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/reference/functions.h"
#include "tests/kernels/kernel_checks.h"

namespace mpc::test {
namespace {

using op_cases::OpCase;
using reference::Tensor;

/// The case of attention, or of its gradient, that `packed` is a form of.
const OpCase& CaseApart(const OpCase& packed) {
  const std::string name = packed.name.substr(std::string("packed_").size());
  const std::vector<OpCase>& all = op_cases::AllOpCases();
  return *std::find_if(all.begin(), all.end(), [&](const OpCase& each) { return each.name == name; });
}

/// Operands of packed_attention (its gradient) as those of attention (its gradient).
std::vector<Tensor> OperandsApart(const std::vector<Tensor>& packed, std::int64_t heads, bool is_gradient) {
  const Tensor& qkv = packed[is_gradient ? 1 : 0];
  std::vector<Tensor> apart;
  if (is_gradient) apart.push_back(reference::HeadsOf(packed[0], heads, 1, 0));
  for (std::int64_t part = 0; part < 3; ++part) apart.push_back(reference::HeadsOf(qkv, heads, 3, part));
  // The gradient of attention takes no y.
  apart.insert(apart.end(), packed.begin() + (is_gradient ? 3 : 1), packed.end());
  return apart;
}

/// The bits of heads as they lie in a tensor of `spec` that has one part for each of them.
std::vector<std::uint8_t> Packed(const TensorSpec& spec, std::int64_t heads, const std::vector<Tensor>& parts) {
  Tensor packed{spec, std::vector<double>(static_cast<std::size_t>(spec.num_elements()))};
  const auto count = static_cast<std::int64_t>(parts.size());
  for (std::int64_t part = 0; part < count; ++part) {
    const std::vector<std::size_t> indices = reference::HeadIndices(spec.shape, heads, count, part);
    const std::vector<double>& values = parts[static_cast<std::size_t>(part)].values;
    for (std::size_t i = 0; i < indices.size(); ++i) packed.values[indices[i]] = values[i];
  }
  std::vector<std::uint8_t> bits(spec.bytes());
  reference::ToStorage(packed, bits.data());
  return bits;
}

}  // namespace

void ExpectPackedAttentionGivesTheBitsOfAttention(const KernelDevice& device) {
  for (const char* op : {"packed_attention", "packed_attention_grad"}) {
    const bool is_gradient = std::string(op) == "packed_attention_grad";
    ForEachCase(op, [&](const OpCase& packed_case, DType dtype) {
      const OpCase& apart_case = CaseApart(packed_case);
      const std::int64_t heads = packed_case.attributes.GetInt("heads");
      const std::vector<Tensor> inputs = op_cases::MakeInputs(packed_case, dtype);
      const auto packed = RunKernel(device, packed_case, dtype, inputs);
      const auto apart = RunKernel(device, apart_case, dtype, OperandsApart(inputs, heads, is_gradient));
      ASSERT_TRUE(packed.ok() && apart.ok()) << packed.status() << apart.status();
      const std::vector<TensorSpec> specs = op_cases::ResultSpecs(apart_case, dtype);
      std::vector<Tensor> parts;
      for (std::size_t i = 0; i < (is_gradient ? 3u : 1u); ++i) {
        parts.push_back(reference::FromStorage(specs[i], (*apart)[i].data()));
      }
      EXPECT_EQ((*packed)[0], Packed(op_cases::ResultSpecs(packed_case, dtype)[0], heads, parts));
      if (!is_gradient) {
        EXPECT_EQ((*packed)[1], (*apart)[1]) << "log_sum_exp";
      }
    });
  }
}

}  // namespace mpc::test
