// What cuDNN and cuBLASLt are given, what is left to the project's own kernels, and which choices are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cuda/library/cudnn_kernel.h"

namespace mpc::cuda {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using Created = absl::StatusOr<std::unique_ptr<Kernel>>;

/// A 3x3 convolution of [8, 14, 14, channels] to as many channels, stride 1.
KernelSpec Convolution(DType dtype, std::int64_t channels = 64, std::int64_t batch = 8) {
  const TensorSpec image{dtype, {batch, 14, 14, channels}};
  return {"conv2d",
          {image, {dtype, {channels, channels, 3, 3}}},
          {image},
          {},
          {{"pad_mode", std::string("same")}, {"data_format", std::string("NHWC")}}};
}

KernelSpec WithBias(KernelSpec spec, DType dtype) {
  spec.inputs.push_back({dtype, {spec.outputs[0].shape.back()}});
  return spec;
}

KernelSpec WithActivation(KernelSpec spec, const std::string& activation) {
  spec.attributes.Set("activation", activation);
  return spec;
}

KernelSpec AttentionGrad(std::int64_t batch, std::int64_t length = 1024) {
  const TensorSpec head{DType::kBF16, {batch, 12, length, 64}};
  return {"attention_grad",
          {head, head, head, head, {DType::kF32, {batch, 12, length}}},
          {head, head, head},
          {},
          {{"scale", 0.125}, {"causal", true}}};
}

/// The same with query, key and value in one tensor.
KernelSpec PackedAttentionGrad(std::int64_t batch, std::int64_t length = 1024, bool causal = true) {
  const TensorSpec y{DType::kBF16, {batch, length, 768}}, qkv{DType::kBF16, {batch, length, 3 * 768}};
  return {"packed_attention_grad",
          {y, qkv, y, {DType::kF32, {batch, 12, length}}},
          {qkv},
          {},
          {{"heads", 12}, {"scale", 0.125}, {"causal", causal}}};
}

KernelSpec PackedAttention(DType dtype, const Shape& y, std::int64_t heads, bool causal) {
  return {"packed_attention",
          {{dtype, {y[0], y[1], 3 * y[2]}}},
          {{dtype, y}, {DType::kF32, {y[0], heads, y[1]}}},
          {},
          {{"heads", heads}, {"scale", 0.125}, {"causal", causal}}};
}

KernelSpec Matmul(DType a, DType b, DType y) {
  return {"matmul", {{a, {32, 64}}, {b, {48, 64}}}, {{y, {32, 48}}}, {}, {{"transpose_b", true}}};
}

std::string ChoiceOf(const KernelSpec& spec, const KernelContext& context = {}) {
  const Created kernel = CreateKernel(spec, context);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  return kernel.ok() ? (*kernel)->choice() : "";
}

absl::Status StatusWithChoice(const KernelSpec& spec, const std::string& choice) {
  KernelContext context;
  context.choice = choice;
  return CreateKernel(spec, context).status();
}

std::vector<std::string> NotesOf(const KernelSpec& spec, const KernelContext& context) {
  const Created kernel = CreateKernel(spec, context);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  const auto* cudnn = kernel.ok() ? dynamic_cast<const CudnnKernel*>(kernel->get()) : nullptr;
  EXPECT_NE(cudnn, nullptr);
  return cudnn == nullptr ? std::vector<std::string>() : cudnn->numerical_notes();
}

TEST(CudnnConvolution, UsesTensorCoresInF32OnlyWhereTf32IsAllowed) {
  KernelContext context;
  EXPECT_THAT(NotesOf(Convolution(DType::kF32), context), Not(Contains("TENSOR_CORE")));
  context.allow_tf32 = true;
  EXPECT_THAT(NotesOf(Convolution(DType::kF32), context), Contains("TENSOR_CORE"));
}

TEST(CudnnConvolution, RefusesATf32EngineThatWasChosenWhereTf32WasAllowed) {
  KernelContext context;
  context.allow_tf32 = true;
  const absl::Status status = StatusWithChoice(Convolution(DType::kF32), ChoiceOf(Convolution(DType::kF32), context));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("TENSOR_CORE"));
}

TEST(CudnnConvolution, RefusesChoicesThatNameNoEngine) {
  for (const char* choice : {"eng", "eng9999", "engine5", "eng0_k", "eng0_k2=x", "eng0_k77=1", "algo:00"}) {
    const absl::Status status = StatusWithChoice(Convolution(DType::kF16), choice);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << choice;
    EXPECT_THAT(std::string(status.message()), HasSubstr(choice));
  }
}

TEST(CudnnConvolution, RefusesAnEngineThatNeedsMoreWorkspaceThanAllowed) {
  const KernelSpec spec = Convolution(DType::kF16);
  KernelContext context;
  context.choice = ChoiceOf(spec);
  context.workspace_cap = 0;
  const absl::Status status = CreateKernel(spec, context).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << "the packed filter alone needs 72 KiB";
}

TEST(CudnnConvolution, OffersCandidatesThatCanAllBeChosenTheHeuristicOneFirst) {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const KernelSpec spec = Convolution(dtype);
    const absl::StatusOr<std::vector<std::string>> candidates = CandidateChoices(spec, {});
    ASSERT_TRUE(candidates.ok()) << candidates.status();
    ASSERT_GE(candidates->size(), 3u);
    EXPECT_LE(candidates->size(), 17u);
    EXPECT_EQ(candidates->front(), ChoiceOf(spec));
    EXPECT_EQ(candidates->back(), "own");
    for (const std::string& candidate : *candidates) {
      KernelContext context;
      context.choice = candidate;
      EXPECT_EQ(ChoiceOf(spec, context), candidate);
    }
  }
}

TEST(CudnnConvolution, LeavesSmallWorkOnFewChannelsToTheDirectKernelUnlessItIsChosen) {
  const KernelSpec spec = Convolution(DType::kF16, 8);
  EXPECT_EQ(ChoiceOf(spec), "own");
  const absl::StatusOr<std::vector<std::string>> candidates = CandidateChoices(spec, {});
  ASSERT_TRUE(candidates.ok()) << candidates.status();
  KernelContext context;
  context.choice = candidates->front();
  EXPECT_THAT(ChoiceOf(spec, context), StartsWith("eng"));
}

TEST(CudnnConvolution, TakesABiasOfEitherTypeIntoTheSameRounding) {
  EXPECT_THAT(ChoiceOf(WithBias(Convolution(DType::kF16), DType::kF16)), StartsWith("eng"));
  EXPECT_THAT(ChoiceOf(WithBias(Convolution(DType::kF16), DType::kF32)), StartsWith("eng"));
  EXPECT_THAT(ChoiceOf(WithBias(Convolution(DType::kF32), DType::kF32)), StartsWith("eng"));
}

TEST(CudnnConvolution, LeavesActivationsThatDoNotCommuteWithRoundingToTheOwnKernel) {
  EXPECT_THAT(ChoiceOf(WithActivation(Convolution(DType::kF16), "relu")), StartsWith("eng"));
  EXPECT_EQ(ChoiceOf(WithActivation(Convolution(DType::kF16), "tanh")), "own");
  EXPECT_EQ(ChoiceOf(WithActivation(Convolution(DType::kF16), "gelu")), "own");
}

TEST(CudnnConvolution, LeavesOperandsOfSeveralTypesToTheOwnKernel) {
  KernelSpec spec = Convolution(DType::kF16);
  spec.inputs[1].dtype = DType::kF32;
  EXPECT_EQ(ChoiceOf(spec), "own");
  KernelSpec widened = Convolution(DType::kF16);
  widened.outputs[0].dtype = DType::kF32;
  EXPECT_EQ(ChoiceOf(widened), "own");
}

TEST(CudnnConvolution, LeavesAnEmptyBatchToTheOwnKernel) {
  EXPECT_EQ(ChoiceOf(Convolution(DType::kF16, 64, 0)), "own");
}

/// Takes the launches of this project's own kernels.
class NoQueue : public LaunchQueue {
 public:
  absl::Status Launch(const KernelFunction&, const LaunchShape&, absl::Span<const KernelArgument>) override {
    return absl::OkStatus();
  }
  absl::Status Copy(void*, const void*, std::size_t) override { return absl::InternalError("not here"); }
  absl::Status Fill(void*, std::uint8_t, std::size_t) override { return absl::InternalError("not here"); }
  void* stream() override { return nullptr; }
};

TEST(Libraries, PlannedWithoutADeviceDoNotRun) {
  for (const KernelSpec& spec : {Convolution(DType::kF16), Matmul(DType::kF16, DType::kF16, DType::kF16)}) {
    const Created kernel = CreateKernel(spec, {});
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const void* const inputs[] = {nullptr, nullptr};
    void* const outputs[] = {nullptr};
    NoQueue queue;
    EXPECT_EQ((*kernel)->Enqueue({inputs, outputs, nullptr}, queue).code(), absl::StatusCode::kFailedPrecondition)
        << spec.name;
  }
}

TEST(CudnnAttention, DividesALargeBatchSoThatItsGradientFitsTheWorkspace) {
  for (const bool is_packed : {false, true}) {
    const Created small = CreateKernel(is_packed ? PackedAttentionGrad(8) : AttentionGrad(8), {});
    const Created large = CreateKernel(is_packed ? PackedAttentionGrad(32) : AttentionGrad(32), {});
    ASSERT_TRUE(small.ok() && large.ok());
    EXPECT_THAT((*small)->choice(), ::testing::EndsWith("+1"));
    EXPECT_THAT((*large)->choice(), ::testing::EndsWith("+4"));
    EXPECT_LE((*large)->workspace_bytes(), KernelContext().workspace_cap);
  }
}

TEST(CudnnAttention, RefusesGradientChoicesThatDoNotFit) {
  const KernelSpec spec = AttentionGrad(8, 64);
  const std::string choice = ChoiceOf(spec);
  EXPECT_TRUE(StatusWithChoice(spec, choice).ok());
  const std::string engines = choice.substr(0, choice.rfind('+'));
  for (const std::string& wrong : {engines + "+3", engines, engines + "+0", std::string("eng1+eng2+1+1")}) {
    EXPECT_EQ(StatusWithChoice(spec, wrong).code(), absl::StatusCode::kFailedPrecondition) << wrong;
  }
}

TEST(CudnnAttention, TakesPackedHeadsWhereTheyLie) {
  // GPT-2's and BERT's.
  for (int capability : {80, 90}) {
    KernelContext context;
    context.target.compute_capability = capability;
    for (DType dtype : {DType::kF16, DType::kBF16}) {
      EXPECT_THAT(ChoiceOf(PackedAttention(dtype, {32, 1024, 768}, 12, true), context), StartsWith("eng"));
      EXPECT_THAT(ChoiceOf(PackedAttention(dtype, {64, 128, 768}, 12, false), context), StartsWith("eng"));
    }
    EXPECT_THAT(ChoiceOf(PackedAttentionGrad(64, 128, false), context),
                ::testing::MatchesRegex("eng[0-9_=k]+\\+[0-9]+"));
  }
  EXPECT_EQ(ChoiceOf(PackedAttention(DType::kF32, {2, 16, 64}, 2, true)), "own");
  EXPECT_EQ(ChoiceOf(PackedAttention(DType::kF16, {2, 16, 60}, 5, true)), "own") << "12 elements a row";
}

TEST(CudnnAttention, DoesNotComputeAStoredYAgain) {
  const Created apart = CreateKernel(AttentionGrad(8), {});
  const Created packed = CreateKernel(PackedAttentionGrad(8), {});
  ASSERT_TRUE(apart.ok() && packed.ok());
  constexpr std::size_t kY = std::size_t{8} * 1024 * 768 * 2;
  EXPECT_EQ((*packed)->workspace_bytes() + kY, (*apart)->workspace_bytes());
  EXPECT_EQ((*apart)->choice().find((*packed)->choice()), (*apart)->choice().find('+') + 1) << "the same engine";
}

TEST(CudnnAttention, RefusesChoicesOfTheOtherGradient) {
  const std::string apart = ChoiceOf(AttentionGrad(8, 64));
  const std::string packed = ChoiceOf(PackedAttentionGrad(8, 64));
  EXPECT_TRUE(StatusWithChoice(PackedAttentionGrad(8, 64), packed).ok());
  const absl::Status status = StatusWithChoice(PackedAttentionGrad(8, 64), apart);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("mpc.packed_attention_grad is written \"eng6_k24=26+4\""));
  EXPECT_EQ(StatusWithChoice(AttentionGrad(8, 64), packed).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(CudnnAttention, LeavesMasksOddHeadsAndRowsWithoutColumnsToTheOwnKernel) {
  const auto attention = [](std::int64_t rows, std::int64_t columns, std::int64_t width) {
    const TensorSpec query{DType::kF16, {2, 4, rows, width}};
    const TensorSpec key{DType::kF16, {2, 4, columns, width}};
    return KernelSpec{
        "attention", {query, key, key}, {query, {DType::kF32, {2, 4, rows}}}, {}, {{"scale", 0.125}, {"causal", true}}};
  };
  EXPECT_THAT(ChoiceOf(attention(32, 32, 64)), StartsWith("eng"));
  EXPECT_THAT(ChoiceOf(attention(32, 48, 64)), StartsWith("eng"));
  EXPECT_EQ(ChoiceOf(attention(32, 32, 60)), "own");
  EXPECT_EQ(ChoiceOf(attention(48, 32, 64)), "own");
  KernelSpec masked = attention(32, 32, 64);
  masked.inputs.push_back({DType::kBool, {32, 32}});
  EXPECT_EQ(ChoiceOf(masked), "own");
}

TEST(CublasLt, IsPlannedWithoutADevice) {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const Created kernel = CreateKernel(Matmul(dtype, dtype, dtype), {});
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    EXPECT_EQ((*kernel)->choice(), "") << "the device that will run it chooses";
    EXPECT_GE((*kernel)->workspace_bytes(), std::size_t{1} << 20);
    EXPECT_LE((*kernel)->workspace_bytes(), (std::size_t{32} << 20) + 256);
  }
}

TEST(CublasLt, KeepsItsWorkspaceWithinTheCap) {
  KernelContext context;
  context.workspace_cap = 65536;
  const Created kernel = CreateKernel(Matmul(DType::kF16, DType::kF16, DType::kF16), context);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_LE((*kernel)->workspace_bytes(), context.workspace_cap);
}

TEST(CublasLt, CopiesRowsThatAreNotAlignedWithinTheCap) {
  const auto product = [](DType dtype, std::int64_t m, std::int64_t k, std::int64_t n, bool transpose_a) {
    const Shape a = transpose_a ? Shape{k, m} : Shape{m, k};
    return KernelSpec{"matmul", {{dtype, a}, {dtype, {k, n}}}, {{dtype, {m, n}}}, {}, {{"transpose_a", transpose_a}}};
  };
  const auto workspace = [&](const KernelSpec& spec) {
    const Created kernel = CreateKernel(spec, {});
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    EXPECT_EQ((*kernel)->choice(), "");
    return kernel.ok() ? (*kernel)->workspace_bytes() : 0;
  };
  constexpr std::size_t kWithoutCopies = (std::size_t{32} << 20) + 256;
  const std::size_t cap = KernelContext().workspace_cap;
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    constexpr std::size_t kWeight = std::size_t{50264} * 768 * 2;
    for (const auto& [spec, copied_whole] : {std::pair(product(dtype, 32768, 50257, 768, false), kWeight),
                                             std::pair(product(dtype, 50257, 32768, 768, true), std::size_t{0})}) {
      EXPECT_GT(workspace(spec), kWithoutCopies + cap / 2 + copied_whole);
      EXPECT_LE(workspace(spec), kWithoutCopies + cap + copied_whole);
    }
    // Rows are aligned, or b would be too large, or the copies would cost more than they gain.
    EXPECT_LE(workspace(product(dtype, 32768, 50264, 768, false)), kWithoutCopies);
    EXPECT_LE(workspace(product(dtype, 32768, 50257, 8192, false)), kWithoutCopies);
    EXPECT_LE(workspace(product(dtype, 32768, 50257, 256, false)), kWithoutCopies);
  }
  EXPECT_LE(workspace(product(DType::kF32, 32768, 50257, 768, false)), kWithoutCopies);
}

TEST(CublasLt, RefusesAChoiceOfOtherBlocks) {
  KernelSpec spec = Matmul(DType::kF16, DType::kF16, DType::kF16);
  const absl::Status status = StatusWithChoice(spec, "blocks:64:algo:" + std::string(128, '0'));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is not divided into blocks"));
}

TEST(CublasLt, LeavesABiasOfRowsThatAreNotAlignedToTheOwnKernel) {
  const auto choices = [](DType dtype) {
    std::vector<std::string> found;
    for (const auto& [m, n] : {std::pair(1, 8), std::pair(4, 9), std::pair(4, 8)}) {
      found.push_back(
          ChoiceOf({"matmul", {{dtype, {m, 33}}, {dtype, {33, n}}, {dtype, {n}}}, {{dtype, {m, n}}}, {}, {}}));
    }
    return found;
  };
  EXPECT_THAT(choices(DType::kF16), ElementsAre("own", "own", ""));
  EXPECT_THAT(choices(DType::kF32), ElementsAre("", "", ""));
}

TEST(CublasLt, LeavesMixedOperandsAndEmptyProductsToTheOwnKernel) {
  EXPECT_EQ(ChoiceOf(Matmul(DType::kF16, DType::kF32, DType::kF32)), "own");
  for (const char* activation : {"sigmoid", "gelu", "gelu_tanh"}) {
    EXPECT_EQ(ChoiceOf(WithActivation(Matmul(DType::kF16, DType::kF16, DType::kF16), activation)), "own");
  }
  KernelSpec empty = Matmul(DType::kF16, DType::kF16, DType::kF16);
  empty.inputs[0].shape[0] = empty.outputs[0].shape[0] = 0;
  EXPECT_EQ(ChoiceOf(empty), "own");
}

TEST(CublasLt, KeepsAChoiceThatIsWrittenRightAndRefusesOthers) {
  const KernelSpec spec = Matmul(DType::kF16, DType::kF16, DType::kF16);
  const std::string choice = "algo:" + std::string(128, '0') + ":id0:tile0:stages0:splits1";
  KernelContext context;
  context.choice = choice;
  EXPECT_EQ(ChoiceOf(spec, context), choice);
  for (const std::string& wrong : {std::string("algo:12"), "algo:" + std::string(128, 'g'), std::string("eng0")}) {
    const absl::Status status = StatusWithChoice(spec, wrong);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << wrong;
    EXPECT_THAT(std::string(status.message()), HasSubstr("algo:<128 hexadecimal digits>"));
  }
}

TEST(Libraries, AreNotUsedWhereTheyAreSwitchedOff) {
  KernelContext context;
  context.use_libraries = false;
  EXPECT_EQ(ChoiceOf(Convolution(DType::kF16), context), "own");
  EXPECT_EQ(ChoiceOf(Matmul(DType::kF16, DType::kF16, DType::kF16), context), "own");
}

}  // namespace
}  // namespace mpc::cuda
