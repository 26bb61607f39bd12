// bf16 in generated host code: rounding to nearest even whatever the bits, and what of it is left out for NaN.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/host_conversion.h"
#include "compiler/codegen/short_nan.h"
#include "compiler/element/number_functions.h"
#include "kernels/float16.h"
#include "mlir/IR/Builders.h"
#include "tests/compiler/codegen/compiled_fusion.h"
#include "tests/compiler/codegen/fusion_run.h"

namespace mpc::test {
namespace {

template <typename T>
T* Aligned(std::vector<T>& storage) {
  const auto address = reinterpret_cast<std::uintptr_t>(storage.data());
  const std::size_t skipped = (64 - address % 64) % 64 / sizeof(T);
  return storage.data() + skipped;
}

// The targets that have forms of their own, and stores around the caches.
std::vector<codegen::CodeTarget> Targets() { return {HostTarget(), NarrowTarget(), StreamedTarget()}; }

// Every upper half beside lower ones about a tie, and a number of elements that leaves a tail.
TEST(HostBf16, RoundsEveryUpperHalfToNearestEven) {
  std::vector<float> x(64);
  for (const std::uint32_t lower : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
    for (std::uint32_t upper = 0; upper < 0x10000; ++upper) x.push_back(std::bit_cast<float>(upper << 16 | lower));
  }
  const std::size_t count = x.size() - 64 - 7;
  float* first = Aligned(x);

  FusionCase region;
  region.name = "cast";
  const std::string wide = absl::StrCat("tensor<", count, "xf32>"), low = absl::StrCat("tensor<", count, "xbf16>");
  region.operands = {{wide}};
  region.body = absl::StrCat("    %r0 = mpc.cast %a0 : (", wide, ") -> ", low, "\n");
  region.results = {low};
  const ParsedFusion parsed(region);
  ASSERT_TRUE(parsed.fusion);
  for (const codegen::CodeTarget& target : Targets()) {
    auto compiled = CompiledFusion::Create(parsed.fusion, target);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    std::vector<std::uint16_t> y(count + 64);
    std::uint16_t* rounded = Aligned(y);
    void* operands[] = {first, rounded};
    (*compiled)->Run(operands, nullptr);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(rounded[i], BFloat16(first[i]).bits) << std::hex << std::bit_cast<std::uint32_t>(first[i]);
    }
  }
}

// Rounding of what was computed from bf16 has no step for NaN.
TEST(HostBf16, NanOfWidenedOperandsStayNan) {
  constexpr std::uint16_t kOthers[] = {0x0000, 0x3f80, 0x0001, 0x7f7f, 0x7f80, 0xff80, 0x7f81, 0x7fff, 0xffc0};
  std::vector<std::uint16_t> a(64), b(64);
  for (const std::uint16_t other : kOthers) {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      a.push_back(static_cast<std::uint16_t>(bits));
      b.push_back(other);
    }
  }
  const std::size_t count = a.size() - 64 - 7;
  std::uint16_t *first = Aligned(a), *second = Aligned(b);

  FusionCase region;
  region.name = "sum_and_product";
  const std::string low = absl::StrCat("tensor<", count, "xbf16>");
  const std::string types = absl::StrCat(" : (", low, ", ", low, ") -> ", low, "\n");
  region.operands = {{low}, {low}};
  region.body = absl::StrCat("    %r0 = mpc.add %a0, %a1", types, "    %r1 = mpc.mul %r0, %a0", types);
  region.results = {low, low};
  const ParsedFusion parsed(region);
  ASSERT_TRUE(parsed.fusion);
  const auto number = [](std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); };
  const auto expect_same = [&](std::uint16_t ours, float exact) {
    const std::uint16_t theirs = BFloat16(exact).bits;
    return ours == theirs || (std::isnan(number(ours)) && std::isnan(exact));
  };
  for (const codegen::CodeTarget& target : Targets()) {
    auto compiled = CompiledFusion::Create(parsed.fusion, target);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    std::vector<std::uint16_t> y(count + 64), z(count + 64);
    std::uint16_t *sums = Aligned(y), *products = Aligned(z);
    void* operands[] = {first, second, sums, products};
    (*compiled)->Run(operands, nullptr);
    for (std::size_t i = 0; i < count; ++i) {
      const float x = number(first[i]);
      ASSERT_TRUE(expect_same(sums[i], x + number(second[i]))) << std::hex << first[i] << " " << second[i];
      ASSERT_TRUE(expect_same(products[i], number(sums[i]) * x)) << std::hex << first[i] << " " << sums[i];
    }
  }
}

// An f32 that a row shares may be a NaN whose payload rounding would carry away.
TEST(HostBf16, NanOfWhatRowsShareStayNan) {
  constexpr int kRows = 3, kColumns = 75;
  FusionCase region;
  region.name = "gradient";
  region.operands = {{"tensor<3xf32>"}, {"tensor<3x75xbf16>"}, {"tensor<3xi32>"}, {"tensor<3xf32>"}};
  region.body = R"(
    %r0 = mpc.softmax_cross_entropy_grad %a0, %a1, %a2, %a3 {reduction = "none"} :
        (tensor<3xf32>, tensor<3x75xbf16>, tensor<3xi32>, tensor<3xf32>) -> tensor<3x75xbf16>
)";
  region.results = {"tensor<3x75xbf16>"};
  const ParsedFusion parsed(region);
  ASSERT_TRUE(parsed.fusion);
  const float nan = std::bit_cast<float>(0x7f800001u);
  float cotangents[kRows] = {nan, 1, 1}, log_sum_exps[kRows] = {2, nan, 2};
  std::int32_t labels[kRows] = {3, 70, 0};
  std::vector<std::uint16_t> x(64 + kRows * kColumns, 0x3f80), y(64 + kRows * kColumns);
  for (const codegen::CodeTarget& target : Targets()) {
    auto compiled = CompiledFusion::Create(parsed.fusion, target);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    std::uint16_t* gradient = Aligned(y);
    void* operands[] = {cotangents, Aligned(x), labels, log_sum_exps, gradient};
    (*compiled)->Run(operands, nullptr);
    for (int i = 0; i < kRows * kColumns; ++i) {
      const float value = std::bit_cast<float>(std::uint32_t{gradient[i]} << 16);
      ASSERT_EQ(std::isnan(value), i < 2 * kColumns) << i / kColumns << ", " << i % kColumns;
    }
  }
}

class ShortNan : public testing::Test {
 protected:
  using Float = codegen::Float;

  ShortNan() : module_("numbers", context_), builder_(context_), scope_(builder_) {
    llvm::Type* wide = llvm::FixedVectorType::get(builder_.getFloatTy(), 16);
    llvm::Type* low = llvm::FixedVectorType::get(builder_.getInt16Ty(), 16);
    auto* type = llvm::FunctionType::get(builder_.getVoidTy(), {wide, low}, /*isVarArg=*/false);
    auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "f", module_);
    builder_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", function));
    wide_ = function->getArg(0);
    stored_ = function->getArg(1);
  }

  Float Widened(mlir::Type type) { return codegen::HostConversion().widen(stored_, type); }
  Float Bf16() { return Widened(mlir::Builder(&types_).getBF16Type()); }
  static bool IsShort(Float x) { return codegen::hasShortNan(x.value()); }

  mlir::MLIRContext types_;
  llvm::LLVMContext context_;
  llvm::Module module_;
  llvm::IRBuilder<> builder_;
  codegen::EmissionScope scope_;
  llvm::Value* wide_;
  llvm::Value* stored_;
};

TEST_F(ShortNan, IsWhatArithmeticMakesOfWidenedNumbers) {
  const Float x = Bf16();
  EXPECT_TRUE(IsShort(x));
  EXPECT_TRUE(IsShort(Fma(x, Float(1.5f), -x) / Abs(x)));
  EXPECT_TRUE(IsShort(Select(x > Float(0.0f), x * x, Float(0.0f))));
}

TEST_F(ShortNan, IsNotWhatAnF32MayHold) {
  const Float x = Bf16(), any(wide_);
  EXPECT_FALSE(IsShort(any));
  EXPECT_FALSE(IsShort(x + any));
  EXPECT_FALSE(IsShort(Select(x > Float(0.0f), x, any)));
  EXPECT_FALSE(IsShort(Widened(mlir::Builder(&types_).getF16Type()))) << "an f16 has payload below a bf16's";
}

TEST_F(ShortNan, IsWhatReplacesAnother) {
  const Float any(wide_), replaced(codegen::withShortNan(wide_));
  EXPECT_TRUE(IsShort(replaced));
  EXPECT_TRUE(IsShort(Bf16() * replaced));
  EXPECT_FALSE(IsShort(Select(any != any, any, Bf16())));
}

TEST_F(ShortNan, IsInABufferThatHoldsNoOther) {
  const auto buffer = [&] { return builder_.CreateAlloca(llvm::ArrayType::get(builder_.getFloatTy(), 32)); };
  const auto store = [&](llvm::Value* to, Float x, unsigned at) {
    builder_.CreateStore(x.value(), builder_.CreateConstGEP1_64(builder_.getFloatTy(), to, at));
  };
  llvm::AllocaInst *low = buffer(), *mixed = buffer();
  store(low, Bf16(), 0);
  store(low, Bf16(), 16);
  store(mixed, Bf16(), 0);
  store(mixed, Float(wide_), 16);
  const auto loaded = [&](llvm::Value* from) { return Float(builder_.CreateLoad(wide_->getType(), from)); };
  EXPECT_TRUE(IsShort(loaded(low)));
  EXPECT_FALSE(IsShort(loaded(mixed)));
}

TEST_F(ShortNan, EndsInALoop) {
  llvm::BasicBlock* const entry = builder_.GetInsertBlock();
  const Float x = Bf16();
  auto* const loop = llvm::BasicBlock::Create(context_, "loop", entry->getParent());
  builder_.CreateBr(loop);
  builder_.SetInsertPoint(loop);
  llvm::PHINode* const sum = builder_.CreatePHI(wide_->getType(), 2);
  const Float next = Float(sum) + x;
  sum->addIncoming(x.value(), entry);
  sum->addIncoming(next.value(), loop);
  // What a loop carries counts as an f32, which is never wrong.
  EXPECT_FALSE(IsShort(Float(sum)));
  EXPECT_FALSE(IsShort(next));
}

TEST_F(ShortNan, FollowsBitsThatWereShifted) {
  const Float x = Bf16();
  EXPECT_TRUE(IsShort(x * FloatFromBits(BitsOf(x + Float(0x1.8p23f)) << codegen::Unsigned(23))));
  EXPECT_FALSE(IsShort(x * FloatFromBits(BitsOf(x) << codegen::Unsigned(8))));
  EXPECT_FALSE(IsShort(x * FloatFromBits(codegen::Unsigned(0x7ef311c7) - BitsOf(x))));
}

}  // namespace
}  // namespace mpc::test
