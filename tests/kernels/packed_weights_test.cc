// Weights that an instruction of its own packs: the bits of a kernel that packs them itself, for every choice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/kernel.h"
#include "kernels/weight_packing.h"
#include "tests/kernels/cpu_kernel_device.h"
#include "tests/kernels/kernel_checks.h"

namespace mpc::test {
namespace {

using op_cases::OpCase;
using ::testing::HasSubstr;

/// The spec that a Program's instruction with a packed weight gives.
KernelSpec Packed(const KernelSpec& spec, const WeightPacking& packing) {
  KernelSpec packed = spec;
  MarkPacked(packing, spec.inputs[kWeightOperand], packed.attributes);
  packed.inputs[kWeightOperand] = packing.packed;
  EXPECT_TRUE(ReadPacked(packed).ok());
  return packed;
}

KernelSpec PackSpec(const KernelSpec& spec, const WeightPacking& packing) {
  return {kPackWeight, {spec.inputs[kWeightOperand]}, {packing.packed}, {}, PackingAttributes(packing)};
}

/// Two kernels, each with a workspace of its own.
class PackedKernel : public KernelDevice::Kernel {
 public:
  PackedKernel(std::unique_ptr<cpu::Kernel> pack, std::unique_ptr<cpu::Kernel> kernel, const WeightPacking& packing,
               std::size_t inputs)
      : pack_(std::move(pack)),
        kernel_(std::move(kernel)),
        packed_(packing.packed.bytes()),
        scratch_(pack_->workspace_bytes()),
        inputs_(inputs) {}

  std::size_t workspace_bytes() const override { return kernel_->workspace_bytes(); }
  absl::Status Run(const void* const* inputs, void* const* outputs, void* workspace) override {
    void* packed = packed_.data();
    pack_->Run({inputs + kWeightOperand, &packed, scratch_.data()});
    std::vector<const void*> operands(inputs, inputs + inputs_);
    operands[kWeightOperand] = packed;
    kernel_->Run({operands.data(), outputs, workspace});
    const bool intact = packed_.GuardIntact() && scratch_.GuardIntact();
    return intact ? absl::OkStatus() : absl::InternalError("packing writes past the end of a buffer");
  }

 private:
  std::unique_ptr<cpu::Kernel> pack_, kernel_;
  GuardedBuffer packed_, scratch_;
  std::size_t inputs_;
};

/// Packs weights before kernels of one choice run. The kernels must want it.
class PackingDevice : public KernelDevice {
 public:
  explicit PackingDevice(std::string choice) : choice_(std::move(choice)) {}

  absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelSpec& spec) const override {
    const auto unpacked = cpu::CreateKernel(spec, {.choice = choice_});
    if (!unpacked.ok()) return unpacked.status();
    const std::optional<WeightPacking> packing = (*unpacked)->packing();
    if (!packing) return absl::NotFoundError("it takes the weight as it lies");
    EXPECT_EQ(packing->choice, choice_);
    auto pack = cpu::CreateKernel(PackSpec(spec, *packing));
    if (!pack.ok()) return pack.status();
    auto kernel = cpu::CreateKernel(Packed(spec, *packing));
    if (!kernel.ok()) return kernel.status();
    EXPECT_EQ((*kernel)->choice(), choice_);
    EXPECT_FALSE((*kernel)->packing().has_value()) << "it is packed";
    EXPECT_LT((*kernel)->workspace_bytes(), (*unpacked)->workspace_bytes());
    return std::make_unique<PackedKernel>(*std::move(pack), *std::move(kernel), *packing, spec.inputs.size());
  }
  bool MayAlias(std::string_view name, std::size_t output, std::size_t input) const override {
    return cpu::MayAlias(name, output, input);
  }

 private:
  std::string choice_;
};

class PackedWeights : public testing::TestWithParam<std::string> {};

TEST_P(PackedWeights, GiveTheBitsOfAKernelThatPacksThem) {
  std::size_t packings = 0;
  ForEachCase(GetParam(), [&](const OpCase& op_case, DType dtype) {
    const std::vector<reference::Tensor> inputs = op_cases::MakeInputs(op_case, dtype);
    for (const std::string& choice : cpu::CandidateChoices(SpecOf(op_case, dtype))) {
      SCOPED_TRACE(choice);
      const absl::StatusOr<ResultBits> packed = RunKernel(PackingDevice(choice), op_case, dtype, inputs, {});
      if (packed.status().code() == absl::StatusCode::kNotFound) continue;
      ASSERT_TRUE(packed.ok()) << packed.status();
      ++packings;
      const absl::StatusOr<ResultBits> unpacked = RunKernel(*CpuKernelsChosen(choice), op_case, dtype, inputs, {});
      ASSERT_TRUE(unpacked.ok()) << unpacked.status();
      EXPECT_EQ(*packed, *unpacked);
    }
  });
  EXPECT_GT(packings, 0u) << "no kernel wants its weight packed";
}

INSTANTIATE_TEST_SUITE_P(Ops, PackedWeights,
                         testing::Values("conv2d", "conv2d_grad_input", "conv2d_statistics", "conv_transpose2d",
                                         "matmul"),
                         [](const auto& info) { return info.param; });

/// 3x3 windows from 24 channels to 40, neither whole blocks of 16.
KernelSpec Convolution(DType dtype = DType::kF32) {
  return {"conv2d",
          {{dtype, {2, 9, 7, 24}}, {dtype, {40, 24, 3, 3}}},
          {{dtype, {2, 9, 7, 40}}},
          {},
          {{"pad_mode", std::string("same")}, {"data_format", std::string("NHWC")}}};
}

WeightPacking PackingOf(const KernelSpec& spec) {
  const auto kernel = cpu::CreateKernel(spec);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  return (*kernel)->packing().value();
}

TEST(PackWeight, PadsToWholeBlocks) {
  const WeightPacking packing = PackingOf(Convolution());
  EXPECT_EQ(packing.extents, (std::vector<std::int64_t>{40, 24, 3, 3}));
  EXPECT_EQ(packing.packed.shape.size(), 1u);
  EXPECT_GE(packing.packed.num_elements(), 40 * 24 * 9);
  EXPECT_EQ(packing.packed.dtype, DType::kF32);
  EXPECT_EQ(PackingOf(Convolution(DType::kF16)).packed.dtype, DType::kF32) << "f16 is widened";
}

/// `change` breaks the instruction that packs a convolution's weight.
absl::Status ErrorOf(void (*change)(KernelSpec& spec)) {
  KernelSpec spec = PackSpec(Convolution(), PackingOf(Convolution()));
  change(spec);
  return cpu::CreateKernel(spec).status();
}

TEST(PackWeight, RefusesWhatDoesNotFitByName) {
  const std::vector<std::pair<void (*)(KernelSpec&), std::string>> errors = {
      {[](KernelSpec& spec) { spec.attributes.Set("layout", std::string("ABcd16")); }, "\"ABcd16\" names no layout"},
      {[](KernelSpec& spec) { spec.attributes.Set("layout", std::string("abc")); }, "\"abc\" names no layout"},
      {[](KernelSpec& spec) { spec.attributes.Set("layout", std::string("aacd")); }, "\"aacd\" names no layout"},
      {[](KernelSpec& spec) { spec.attributes.Set("layout", std::string("Abcd99999999a")); }, "names no layout"},
      {[](KernelSpec& spec) { spec.attributes.Set("layout", std::string("abcd16a")); }, "names no layout"},
      {[](KernelSpec& spec) {
         spec.attributes.Set("strides", std::vector<std::int64_t>{1, 1, 1, 1});
       },
       "at strides [1,1,1,1]"},
      {[](KernelSpec& spec) { spec.attributes.Set("extents", std::vector<std::int64_t>{8640}); }, "extents [8640]"},
      {[](KernelSpec& spec) { spec.outputs[0].shape[0] -= 1; }, "a flat tensor of"},
      {[](KernelSpec& spec) { spec.outputs.clear(); }, "one weight to one packed weight"},
      {[](KernelSpec& spec) { spec.inputs[0].dtype = DType::kI32; }, "pack_weight has no CPU kernel for"},
      {[](KernelSpec& spec) { spec.outputs[0].dtype = DType::kBF16; }, "pack_weight has no CPU kernel for"},
  };
  for (const auto& [change, message] : errors) {
    EXPECT_THAT(std::string(ErrorOf(change).message()), HasSubstr(message));
  }
}

TEST(PackWeight, AnotherLayoutIsRefusedByTheKernel) {
  WeightPacking packing = PackingOf(Convolution());
  packing.layout = "ABcd2a2b";
  const absl::Status status = cpu::CreateKernel(Packed(Convolution(), packing)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("with the weight packed as \"ABcd2a2b\" on this processor"));
}

TEST(PackWeight, AKernelWithoutPackingRefusesIt) {
  KernelSpec sum{"add", {{DType::kF32, {8}}, {DType::kF32, {8}}}, {{DType::kF32, {8}}}, {}, {}};
  sum.weight_layout = "A8a";
  EXPECT_THAT(std::string(cpu::CreateKernel(sum).status().message()), HasSubstr("mpc.add takes no weight packed"));
}

TEST(PackWeight, AttributesThatNameNoWeightAreRefused) {
  KernelSpec spec = Convolution();
  spec.attributes.Set("packed_layout", std::string("ABcd16b16a"));
  const absl::Status status = ReadPacked(spec);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("conv2d of 2 inputs says that its second is packed"));
}

}  // namespace
}  // namespace mpc::test
