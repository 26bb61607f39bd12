// Maps, selection, random numbers and step flags: CUDA's bits are the CPU's. Random shapes here; the table of operation
// cases is cuda_kernel_test's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/strided.h"
#include "kernels/float16.h"
#include "kernels/state_hash.h"
#include "tests/cuda/bits_of_the_cpu.h"

namespace mpc::test {
namespace {

TEST(Divisor, DividesExactlyAtEveryWidth) {
  constexpr std::int64_t kDivisors[] = {1,       2,          3,          5,          7,          8,     9,
                                        49,      127,        128,        641,        3136,       65535, 65537,
                                        1000003, 0x7ffffffe, 0x7fffffff, 0x80000000, 0x100000001};
  for (std::int64_t divisor : kDivisors) {
    const cuda::Divisor divides(divisor);
    EXPECT_EQ(divides.value(), divisor);
    for (std::int64_t quotient :
         {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, std::int64_t{12345}, 0x7fffffff / divisor,
          0x7fffffff / divisor + 1, 0xffffffff / divisor}) {
      for (std::int64_t remainder : {std::int64_t{0}, divisor / 2, divisor - 1}) {
        const std::int64_t index = quotient * divisor + remainder;
        EXPECT_EQ(divides.Quotient(index), index / divisor) << index << " / " << divisor;
      }
    }
  }
}

TEST(CudaMaps, BroadcastingGivesTheCpusBits) {
  Random random(1);
  constexpr const char* kOps[] = {"add",   "sub",     "mul",  "div",       "maximum",       "minimum",
                                  "equal", "greater", "less", "not_equal", "greater_equal", "less_equal"};
  for (int round = 0; round < 400; ++round) {
    KernelSpec spec;
    spec.name = OneOf(random, kOps);
    const bool compares = std::find(kOps + 6, std::end(kOps), spec.name) != std::end(kOps);
    const Shape result = RandomShape(random);
    std::vector<Bytes> values;
    for (int i = 0; i < 2; ++i) {
      const DType dtype = compares ? kStored[Pick(random, 0, 4)] : OneOf(random, kFloating);
      spec.inputs.push_back({dtype, RandomOperand(random, result)});
      values.push_back(RandomValues(random, spec.inputs.back()));
    }
    spec.outputs = {{compares ? DType::kBool : OneOf(random, kFloating), result}};
    ExpectTheBitsOfTheCpu(spec, values);
  }
}

TEST(CudaMaps, LargeTensorsGiveTheCpusBits) {
  Random random(11);
  const TensorSpec x{DType::kF16, {401, 701}}, row{DType::kF32, {701}}, y{DType::kBF16, x.shape};
  ExpectTheBitsOfTheCpu({"add", {x, row}, {y}, {}, {}}, {RandomValues(random, x), RandomValues(random, row)});
  ExpectTheBitsOfTheCpu({"maximum", {x, x}, {x}, {}, {}}, {RandomValues(random, x), RandomValues(random, x)});
}

TEST(CudaMaps, GradientsOfBroadcastOperandsGiveTheCpusBits) {
  Random random(2);
  for (int round = 0; round < 100; ++round) {
    KernelSpec spec;
    constexpr const char* kOps[] = {"div_grad", "maximum_grad", "minimum_grad"};
    spec.name = OneOf(random, kOps);
    const Shape shape = RandomShape(random);
    spec.inputs = {{OneOf(random, kFloating), shape},
                   {OneOf(random, kFloating), RandomOperand(random, shape)},
                   {OneOf(random, kFloating), RandomOperand(random, shape)}};
    spec.outputs = {{OneOf(random, kFloating), shape}};
    if (spec.name != "div_grad") {
      spec.outputs.push_back({OneOf(random, kFloating), shape});
      const std::int64_t unused = Pick(random, 0, 2);
      spec.output_used = {unused != 0, unused != 1};
    }
    std::vector<Bytes> values;
    for (const TensorSpec& input : spec.inputs) values.push_back(RandomValues(random, input));
    ExpectTheBitsOfTheCpu(spec, values);
  }
}

// The tables of a launch take 16 terms, or 254; what is beyond is a chain of launches.
TEST(CudaMaps, SumsOfAnyNumberOfTermsGiveTheCpusBits) {
  Random random(5);
  for (const int count : {1, 16, 17, 253, 254, 255, 256, 507, 508, 600}) {
    for (const DType result : kFloating) {
      const Shape shape = {Pick(random, 1, 30)};
      KernelSpec spec{"sum_n", {}, {{result, shape}}, {}, {}};
      std::vector<Bytes> values;
      for (int i = 0; i < count; ++i) {
        spec.inputs.push_back({OneOf(random, kFloating), shape});
        values.push_back(OrdinaryValues(random, spec.inputs.back()));
      }
      SCOPED_TRACE(absl::StrCat(count, " terms"));
      ExpectTheBitsOfTheCpu(spec, values);
    }
  }
}

// A sum that were rounded to f16 between launches would be 2346 in place of 2348.
TEST(CudaMaps, ALongSumIsRoundedOnce) {
  const TensorSpec one{DType::kF16, {1}};
  const auto stored = [](float value) {
    const std::uint16_t bits = Half::FromFloat(value);
    return Bytes{static_cast<std::uint8_t>(bits), static_cast<std::uint8_t>(bits >> 8)};
  };
  std::vector<Bytes> values(600, stored(0.5f));
  values[0] = stored(2048);
  EXPECT_EQ(OnCuda({"sum_n", std::vector<TensorSpec>(values.size(), one), {one}, {}, {}}, values)[0],
            stored(2048 + 0.5f * 599));
}

TEST(CudaSelection, WhereAndSelectGiveTheCpusBits) {
  Random random(3);
  for (int round = 0; round < 100; ++round) {
    const Shape shape = RandomShape(random);
    KernelSpec where;
    where.name = "where";
    where.inputs = {{DType::kBool, RandomOperand(random, shape)},
                    {OneOf(random, kFloating), RandomOperand(random, shape)},
                    {OneOf(random, kFloating), RandomOperand(random, shape)}};
    where.outputs = {{OneOf(random, kFloating), shape}};
    std::vector<Bytes> values;
    for (const TensorSpec& input : where.inputs) values.push_back(RandomValues(random, input));
    ExpectTheBitsOfTheCpu(where, values);

    KernelSpec select;
    select.name = "select";
    const TensorSpec chosen{OneOf(random, kStored), shape};
    select.inputs = {{DType::kBool, Pick(random, 0, 1) == 0 ? Shape{} : shape}, chosen, chosen};
    select.outputs = {chosen};
    values.clear();
    for (const TensorSpec& input : select.inputs) values.push_back(RandomBits(random, input));
    ExpectTheBitsOfTheCpu(select, values, Nan::kSamePayload);
  }
}

TEST(CudaSelection, LogicGivesTheCpusBits) {
  Random random(7);
  constexpr const char* kOps[] = {"logical_and", "logical_or", "logical_not"};
  for (int round = 0; round < 100; ++round) {
    const Shape shape = RandomShape(random);
    KernelSpec spec;
    spec.name = OneOf(random, kOps);
    const bool is_unary = spec.name == "logical_not";
    spec.inputs.push_back({DType::kBool, is_unary ? shape : RandomOperand(random, shape)});
    if (!is_unary) spec.inputs.push_back({DType::kBool, RandomOperand(random, shape)});
    spec.outputs = {{DType::kBool, shape}};
    std::vector<Bytes> values;
    for (const TensorSpec& input : spec.inputs) values.push_back(RandomBits(random, input));
    ExpectTheBitsOfTheCpu(spec, values);
  }
}

TEST(CudaMaps, IntegerArithmeticGivesTheCpusBits) {
  Random random(8);
  constexpr const char* kOps[] = {"int_add", "int_sub",     "int_mul",     "int_floor_div", "int_mod",
                                  "int_neg", "int_maximum", "int_minimum", "int_abs"};
  for (int round = 0; round < 150; ++round) {
    const Shape shape = RandomShape(random);
    const DType dtype = Pick(random, 0, 1) == 0 ? DType::kI32 : DType::kI64;
    KernelSpec spec;
    spec.name = OneOf(random, kOps);
    const bool is_unary = spec.name == "int_neg" || spec.name == "int_abs";
    spec.inputs.push_back({dtype, is_unary ? shape : RandomOperand(random, shape)});
    if (!is_unary) spec.inputs.push_back({dtype, RandomOperand(random, shape)});
    spec.outputs = {{dtype, shape}};
    std::vector<Bytes> values;
    for (const TensorSpec& input : spec.inputs) values.push_back(RandomBits(random, input));
    ExpectTheBitsOfTheCpu(spec, values);
  }
}

TEST(CudaSelection, IntegersBeyondTheFractionOfADoubleCompareExactly) {
  const std::vector<std::int64_t> a = {(std::int64_t{1} << 53) + 1, -(std::int64_t{1} << 53) - 1, 5};
  const std::vector<std::int64_t> b = {std::int64_t{1} << 53, -(std::int64_t{1} << 53), 5};
  const auto bytes = [](const std::vector<std::int64_t>& values) {
    const auto* data = reinterpret_cast<const std::uint8_t*>(values.data());
    return Bytes(data, data + values.size() * sizeof(std::int64_t));
  };
  KernelSpec spec{"greater", {{DType::kI64, {3}}, {DType::kI64, {3}}}, {{DType::kBool, {3}}}, {}, {}};
  EXPECT_EQ(OnCuda(spec, {bytes(a), bytes(b)})[0], (Bytes{1, 0, 0}));
}

TEST(CudaSelection, EveryCastGivesTheCpusBits) {
  Random random(4);
  for (DType from : kStored) {
    for (DType to : kStored) {
      const Shape shape = {3, 67};
      const KernelSpec spec{"cast", {{from, shape}}, {{to, shape}}, {}, {}};
      ExpectTheBitsOfTheCpu(spec, {RandomValues(random, spec.inputs[0])});
      ExpectTheBitsOfTheCpu(spec, {RandomBits(random, spec.inputs[0])});
    }
  }
}

TEST(CudaActivations, GiveTheCpusBits) {
  Random random(5);
  for (const char* op :
       {"abs", "floor", "square", "log1p", "sin", "cos", "silu", "gelu", "leaky_relu", "pow", "clamp"}) {
    // The CPU takes a whole block through <cmath> where one argument is huge: bits are compared with none of these.
    const bool periodic = std::string(op) == "sin" || std::string(op) == "cos";
    const auto values = periodic ? OrdinaryValues : RandomValues;
    for (const char* form : {"none", "tanh"}) {
      const Shape shape = {5, 41};
      const Attributes attributes = {
          {"exponent", -1.5}, {"minimum", -0.5}, {"maximum", 1.0}, {"approximate", std::string(form)}};
      const DType dtype = OneOf(random, kFloating);
      const TensorSpec x{dtype, shape};
      ExpectTheBitsOfTheCpu({op, {x}, {{OneOf(random, kFloating), shape}}, {}, attributes}, {values(random, x)});
      if (std::string(op) == "floor") continue;
      const TensorSpec dy{OneOf(random, kFloating), shape};
      ExpectTheBitsOfTheCpu({std::string(op) + "_grad", {dy, x}, {{OneOf(random, kFloating), shape}}, {}, attributes},
                            {RandomValues(random, dy), values(random, x)});
    }
  }
}

TEST(CudaRandom, DrawsAreTheCpus) {
  const std::int64_t seed = 0x123456789abcdef;
  const std::int32_t step = 41;
  Bytes seed_bytes(sizeof(seed)), step_bytes(sizeof(step));
  std::memcpy(seed_bytes.data(), &seed, sizeof(seed));
  std::memcpy(step_bytes.data(), &step, sizeof(step));
  Random random(6);
  for (std::int64_t count : {1, 7, 8, 1021, 3000}) {
    for (DType dtype : kFloating) {
      for (const char* distribution : {"uniform", "normal", "truncated_normal"}) {
        const Attributes attributes = {
            {"distribution", std::string(distribution)}, {"stream", std::int64_t{3}}, {"a", 0.25}, {"b", 2.0}};
        ExpectTheBitsOfTheCpu({"random", {{DType::kI64, {}}}, {{dtype, {count}}}, {}, attributes}, {seed_bytes});
      }
      const TensorSpec x{dtype, {count}};
      ExpectTheBitsOfTheCpu(
          {"dropout", {x, {DType::kI64, {}}, {DType::kI32, {}}}, {x}, {}, {{"p", 0.3}, {"call_site", std::int64_t{9}}}},
          {RandomValues(random, x), seed_bytes, step_bytes});
    }
  }
}

TEST(CudaStepFlags, AnyNumberOfScalarsMeets) {
  Random random(10);
  for (std::size_t count : {std::size_t{1}, std::size_t{33}, std::size_t{256}, std::size_t{257}, std::size_t{900}}) {
    for (int round = 0; round < 3; ++round) {
      std::vector<Bytes> checks, flags;
      for (std::size_t i = 0; i < count; ++i) {
        const auto check = static_cast<std::int32_t>(Pick(random, -2, round == 0 ? -1 : 5));
        Bytes bytes(sizeof(check));
        std::memcpy(bytes.data(), &check, sizeof(check));
        checks.push_back(bytes);
        flags.push_back({static_cast<std::uint8_t>(round == 2 ? Pick(random, 0, 1) : round)});
      }
      const std::vector<TensorSpec> integers(count, {DType::kI32, {}}), bools(count, {DType::kBool, {}});
      ExpectTheBitsOfTheCpu({"merge_checks", integers, {integers[0]}, {}, {}}, checks);
      ExpectTheBitsOfTheCpu({"all_of", bools, {bools[0]}, {}, {}}, flags);
      ExpectTheBitsOfTheCpu({"any_of", bools, {bools[0]}, {}, {}}, flags);
    }
  }
}

// More entries than one launch takes, of sizes that end within a word.
TEST(CudaStateHash, AnyNumberOfEntriesMeets) {
  Random random(11);
  for (const std::size_t count : {std::size_t{1}, std::size_t{90}, std::size_t{300}}) {
    std::vector<TensorSpec> specs;
    std::vector<Bytes> contents;
    std::vector<std::int64_t> keys;
    for (std::size_t i = 0; i < count; ++i) {
      specs.push_back({DType::kF16, {static_cast<std::int64_t>(Pick(random, 0, i % 50 == 7 ? 9000 : 60))}});
      contents.push_back(RandomValues(random, specs.back()));
      keys.push_back(static_cast<std::int64_t>(HashKey(absl::StrCat(i))));
    }
    ExpectTheBitsOfTheCpu({kStateHash, specs, {{DType::kI64, {}}}, {}, {{kHashKeys, keys}}}, contents);
  }
}

TEST(CudaMaps, TensorsWithoutElementsDoNothing) {
  const TensorSpec none{DType::kF16, {3, 0, 5}}, row{DType::kF32, {5}}, flags{DType::kBool, {3, 0, 5}};
  const Bytes row_values(row.bytes());
  EXPECT_EQ(OnCuda({"add", {none, row}, {none}, {}, {}}, {{}, row_values})[0], Bytes());
  EXPECT_EQ(OnCuda({"maximum_grad", {none, none, row}, {none, none}, {}, {}}, {{}, {}, row_values})[1], Bytes());
  EXPECT_EQ(OnCuda({"less", {none, row}, {flags}, {}, {}}, {{}, row_values})[0], Bytes());
  EXPECT_EQ(OnCuda({"where", {flags, none, row}, {none}, {}, {}}, {{}, {}, row_values})[0], Bytes());
  EXPECT_EQ(OnCuda({"select", {flags, none, none}, {none}, {}, {}}, {{}, {}, {}})[0], Bytes());
  EXPECT_EQ(OnCuda({"cast", {none}, {{DType::kI32, none.shape}}, {}, {}}, {{}})[0], Bytes());
  EXPECT_EQ(OnCuda({"gelu", {none}, {none}, {}, {}}, {{}})[0], Bytes());
}

}  // namespace
}  // namespace mpc::test
