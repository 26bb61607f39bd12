// Products, convolutions, attention, pooling and recurrent cells beyond the table of operation cases: every way in
// which work is dealt out, shapes of several tiles, mixed types.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/fast_divisor.h"
#include "kernels/cuda/kernel.h"
#include "kernels/float16.h"
#include "tests/cuda/bits_of_the_cpu.h"
#include "tests/cuda/emulated_kernel_device.h"
#include "tests/kernels/kernel_checks.h"
#include "tests/op_cases/families.h"

namespace mpc::test {
namespace {

using op_cases::F32;
using op_cases::Fixed;
using op_cases::Normal;
using op_cases::OpCase;
using Ints = std::vector<std::int64_t>;

/// One multiprocessor: large tiles, sums in one part. Many: small tiles, sums in as many parts as there may be.
std::unique_ptr<KernelDevice> DeviceWith(int multiprocessors) {
  cuda::KernelContext context = EmulatedContext();
  context.target.multiprocessors = multiprocessors;
  return EmulatedKernelsIn(context);
}

constexpr int kDevices[] = {1, 16, 100000};

void ExpectMatchesReferenceOnEveryDevice(const std::vector<OpCase>& cases) {
  for (int multiprocessors : kDevices) {
    const auto device = DeviceWith(multiprocessors);
    for (const OpCase& op_case : cases) {
      for (DType dtype : TypesOf(op_case)) {
        SCOPED_TRACE(absl::StrCat(op_case.name, " in ", std::string(DTypeName(dtype)), " on ", multiprocessors));
        ExpectMatchesReference(*device, op_case, dtype);
      }
    }
  }
}

TEST(FastDivisor, GivesTheQuotientOfEveryNumber) {
  constexpr int kLargest = std::numeric_limits<int>::max();
  for (const int divisor :
       {1, 2, 3, 5, 6, 7, 25, 64, 641, 65535, 65537, 1 << 30, (1 << 30) + 1, kLargest - 1, kLargest}) {
    const cuda::FastDivisor fast = cuda::FastDivisor::Create(divisor);
    const auto check = [&](std::int64_t number) {
      if (number < 0 || number > kLargest) return;
      ASSERT_EQ(fast.Quotient(static_cast<int>(number)), number / divisor) << number << " / " << divisor;
    };
    // Errors would show beside multiples, and first at the largest of them.
    for (std::int64_t i = 0; i < 1000; ++i) {
      const std::int64_t multiple = i * divisor, last = (kLargest / divisor - i) * divisor;
      for (const std::int64_t number : {multiple - 1, multiple, last - 1, last, kLargest - i}) check(number);
    }
  }
}

/// Takes launches as a GPU would, and starts none.
class GridsOnly : public cuda::LaunchQueue {
 public:
  absl::Status Launch(const cuda::KernelFunction&, const cuda::LaunchShape& shape,
                      absl::Span<const cuda::KernelArgument>) override {
    ++launches;
    most_blocks_y = std::max(most_blocks_y, shape.blocks_y);
    return absl::OkStatus();
  }
  absl::Status Copy(void*, const void*, std::size_t) override { return absl::OkStatus(); }
  absl::Status Fill(void*, std::uint8_t, std::size_t) override { return absl::OkStatus(); }
  void* stream() override { return nullptr; }

  int launches = 0;
  unsigned most_blocks_y = 0;
};

// Bands of an image are blocks along y, of which a grid has 65,535.
TEST(Convolutions, LargeImagesAreNoMoreBandsThanAGridHasBlocks) {
  cuda::KernelContext context = EmulatedContext();
  context.target.multiprocessors = 100000;
  for (const std::int64_t height : {100, 1500}) {
    const TensorSpec x{DType::kF32, {1, 1, height, 1500}}, y{DType::kF32, {1, 8, height, 1500}};
    const KernelSpec spec{"conv2d", {x, {DType::kF32, {8, 1, 3, 3}}}, {y}, {}, {{"pad_mode", std::string("same")}}};
    const auto kernel = cuda::CreateKernel(spec, context);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const void* const inputs[] = {nullptr, nullptr};
    void* const outputs[] = {nullptr};
    GridsOnly queue;
    ASSERT_TRUE((*kernel)->Enqueue({inputs, outputs, nullptr}, queue).ok());
    EXPECT_EQ(queue.launches, 1);
    EXPECT_LE(queue.most_blocks_y, 65535u) << height;
    if (height == 100) {
      EXPECT_GT(queue.most_blocks_y, 5000u) << "in bands";
    }
  }
}

class Products : public testing::TestWithParam<std::string> {};

TEST_P(Products, AnyNumberOfMultiprocessorsIsWithinTheBounds) {
  for (int multiprocessors : kDevices) ExpectMatchesReference(*DeviceWith(multiprocessors), GetParam());
}

TEST_P(Products, WithoutRoomForPartialSumsTheyAreOneSum) {
  cuda::KernelContext context = EmulatedContext();
  context.workspace_cap = 0;
  ExpectMatchesReference(*EmulatedKernelsIn(context), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Ops, Products,
                         testing::Values("matmul", "batch_matmul", "conv2d", "conv2d_grad_input", "conv2d_grad_weight",
                                         "conv_transpose2d"),
                         [](const auto& info) { return info.param; });

OpCase Product(Shape leading, std::int64_t m, std::int64_t k, std::int64_t n, bool transpose_a, bool transpose_b) {
  const auto joined = [&](std::int64_t rows, std::int64_t columns) {
    Shape shape = leading;
    shape.insert(shape.end(), {rows, columns});
    return shape;
  };
  const std::string op = leading.empty() ? "matmul" : "batch_matmul";
  OpCase op_case{absl::StrCat(op, "/", m, "x", k, "x", n, transpose_a ? "_ta" : "", transpose_b ? "_tb" : ""),
                 op,
                 {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}},
                 {Fixed(transpose_a ? joined(k, m) : joined(m, k)),
                  Fixed(transpose_b ? joined(n, k) : joined(k, n), Normal(0, 1 / std::sqrt(static_cast<double>(k))))},
                 {F32(joined(m, n))}};
  if (leading.empty()) {
    op_case.attributes.Set("activation", std::string("tanh"));
    op_case.operands.push_back(Fixed({n}));
  }
  return op_case;
}

TEST(Matmul, SeveralTilesAndPartsMatchTheReference) {
  std::vector<OpCase> cases;
  for (bool transpose_a : {false, true}) {
    for (bool transpose_b : {false, true}) {
      cases.push_back(Product({}, 70, 131, 133, transpose_a, transpose_b));
      cases.push_back(Product({}, 72, 328, 136, transpose_a, transpose_b));
      cases.push_back(Product({}, 3, 2000, 2, transpose_a, transpose_b));
      cases.push_back(Product({}, 40, 600, 20, transpose_a, transpose_b));
      cases.push_back(Product({3}, 66, 40, 90, transpose_a, transpose_b));
    }
  }
  ExpectMatchesReferenceOnEveryDevice(cases);
}

struct Convolution {
  std::int64_t batch, channels, height, width, results, kernel_height, kernel_width;
  Attributes attributes;
};

/// The forward operation and both derivatives in both data formats.
std::vector<OpCase> CasesOf(const Convolution& convolution) {
  const auto& [n, c, h, w, o, kh, kw, more] = convolution;
  std::vector<OpCase> cases;
  for (const char* format : {"NCHW", "NHWC"}) {
    const bool channels_last = std::string(format) == "NHWC";
    const Attributes attributes = op_cases::With(more, {{"data_format", std::string(format)}});
    const Shape x = channels_last ? Shape{n, h, w, c} : Shape{n, c, h, w};
    const Shape weight = {o, c / attributes.GetInt("groups", 1), kh, kw};
    const Shape y = op_cases::WindowResultShape(attributes, x, kh, kw, o);
    const auto scaled = [](std::int64_t terms) { return Normal(0, 1 / std::sqrt(static_cast<double>(terms))); };
    const std::int64_t terms = NumElements(weight) / o;
    const std::string name = absl::StrCat(c, "x", h, "x", w, "_to_", o, "_by_", kh, "x", kw, "_", format);
    cases.push_back({"conv2d/" + name,
                     "conv2d",
                     op_cases::With(attributes, {{"activation", std::string("relu")}}),
                     {Fixed(x), Fixed(weight, scaled(terms)), Fixed({o})},
                     {F32(y)}});
    cases.push_back({"conv2d_grad_input/" + name,
                     "conv2d_grad_input",
                     op_cases::With(attributes, {{"input_shape", x}}),
                     {Fixed(y), Fixed(weight, scaled(terms))},
                     {F32(x)}});
    cases.push_back({"conv2d_grad_weight/" + name,
                     "conv2d_grad_weight",
                     op_cases::With(attributes, {{"weight_shape", weight}}),
                     {Fixed(x), Fixed(y, scaled(NumElements(y) / o))},
                     {F32(weight)}});
  }
  return cases;
}

TEST(Convolution, EveryFormMatchesTheReference) {
  const Attributes same = {{"pad_mode", std::string("same")}};
  const Convolution convolutions[] = {
      // Tiles: vectors of channels, of pixels, of neither; strides, dilations and groups among them.
      {2, 24, 8, 8, 40, 3, 3, same},
      {1, 70, 9, 11, 68, 2, 3, {{"strides", Ints{2, 3}}, {"dilations", Ints{2, 1}}}},
      {2,
       40,
       7,
       6,
       80,
       3,
       3,
       {{"groups", std::int64_t{2}}, {"pad_mode", std::string("pad")}, {"padding", Ints{2, 0, 1, 3}}}},
      // Direct: more weights than a block keeps at a time, sixteen results, a wide window, many groups.
      {1, 64, 9, 8, 16, 5, 5, {}},
      {2, 5, 12, 9, 13, 1, 8, same},
      {3, 130, 5, 6, 130, 3, 3, op_cases::With(same, {{"groups", std::int64_t{130}}})},
      // Staged: images in bands, strides, dilations and groups, many images, an image that does not fit a block.
      {3, 6, 9, 11, 16, 5, 5, {}},
      {2, 10, 13, 9, 14, 3, 3, {{"groups", std::int64_t{2}}, {"strides", Ints{2, 1}}, {"dilations", Ints{1, 2}}}},
      {40, 12, 6, 7, 9, 2, 7, same},
      {1, 8, 40, 60, 6, 3, 3, op_cases::With(same, {{"dilations", Ints{2, 1}}})},
      {1, 5, 3, 900, 5, 1, 4, {}},
  };
  for (const Convolution& convolution : convolutions) ExpectMatchesReferenceOnEveryDevice(CasesOf(convolution));
}

// Sixteen results' weights of a window of 3072 taps are 192 KiB; a block of sm_80 has 163 KiB.
TEST(Convolution, WeightsOfTheLargestDirectWindowsFitABlockOfEveryDevice) {
  for (const auto& [taps, results] : {std::pair{3072, 16}, {1536, 16}, {769, 13}, {3073, 16}}) {
    const std::int64_t width = taps % 2 == 0 ? taps / 48 : 1, height = taps / width;
    // Pixels that fill two blocks of the device with one multiprocessor.
    const Shape x = {1, 1, height, width + 200}, weight = {results, 1, height, width};
    const Shape y = op_cases::WindowResultShape({}, x, height, width, results);
    OpCase op_case{absl::StrCat("conv2d/", taps, "_taps"),
                   "conv2d",
                   {},
                   {Fixed(x), Fixed(weight, Normal(0, 1 / std::sqrt(static_cast<double>(taps))))},
                   {F32(y)}};
    SCOPED_TRACE(op_case.name);
    ExpectMatchesReference(*DeviceWith(1), op_case, DType::kF32);
  }
}

OpCase AttentionCase(Shape shape, bool causal, bool backward) {
  const std::int64_t b = shape[0], h = shape[1], t = shape[2], s = shape[3], d = shape[4], e = shape[5];
  const op_cases::OperandCase query = Fixed({b, h, t, d});
  const op_cases::OperandCase key = Fixed({b, h, s, d});
  const op_cases::OperandCase value = Fixed({b, h, s, e});
  const op_cases::OperandCase mask = {op_cases::Bool({b, 1, t, s}), op_cases::Integers(0, 2), false};
  const Attributes attributes = {{"scale", 1 / std::sqrt(static_cast<double>(d))}, {"causal", causal}};
  const std::string name = absl::StrCat(t, "x", s, "x", d, "x", e, causal ? "_causal" : "");
  if (!backward) {
    OpCase op_case{
        "attention/" + name, "attention", attributes, {query, key, value, mask}, {F32({b, h, t, e}), F32({b, h, t})}};
    op_case.f32_results = {1};
    return op_case;
  }
  OpCase op_case{"attention_grad/" + name,
                 "attention_grad",
                 attributes,
                 {Fixed({b, h, t, e}), query, key, value,
                  Fixed({b, h, t}, op_cases::Computed("attention", 1, {1, 2, 3, 5})), mask},
                 {query.spec, key.spec, value.spec}};
  op_case.f32_operands = {4};
  return op_case;
}

TEST(Attention, SeveralTilesMatchTheReference) {
  std::vector<OpCase> cases;
  for (bool backward : {false, true}) {
    for (bool causal : {false, true}) {
      cases.push_back(AttentionCase({1, 2, 130, 150, 8, 8}, causal, backward));
      cases.push_back(AttentionCase({2, 1, 67, 64, 70, 67}, causal, backward));
      cases.push_back(AttentionCase({1, 1, 150, 70, 5, 72}, causal, backward));
    }
  }
  for (const OpCase& op_case : cases) {
    for (DType dtype : TypesOf(op_case)) {
      SCOPED_TRACE(op_case.name + " in " + std::string(DTypeName(dtype)));
      ExpectMatchesReference(EmulatedKernels(), op_case, dtype);
    }
  }
}

Bytes Widened(const TensorSpec& spec, const Bytes& stored) {
  if (spec.dtype == DType::kF32) return stored;
  Bytes wide(stored.size() * 2);
  for (std::size_t i = 0; i < stored.size() / 2; ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, stored.data() + 2 * i, 2);
    const float value =
        spec.dtype == DType::kF16 ? Half::ToFloat(bits) : std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
    std::memcpy(wide.data() + 4 * i, &value, 4);
  }
  return wide;
}

Bytes Rounded(const TensorSpec& spec, const Bytes& wide) {
  if (spec.dtype == DType::kF32) return wide;
  Bytes stored(wide.size() / 2);
  for (std::size_t i = 0; i < wide.size() / 4; ++i) {
    float value;
    std::memcpy(&value, wide.data() + 4 * i, 4);
    const std::uint16_t bits = spec.dtype == DType::kF16 ? Half::FromFloat(value) : BFloat16::FromFloat(value);
    std::memcpy(stored.data() + 2 * i, &bits, 2);
  }
  return stored;
}

TEST(Products, MixedTypesGiveTheRoundedResultOfWidenedOperands) {
  Random random(7);
  const KernelSpec specs[] = {
      {"matmul", {F32({40, 72}), F32({72, 48}), F32({48})}, {F32({40, 48})}, {}, {}},
      {"batch_matmul", {F32({2, 5, 9}), F32({2, 9, 7})}, {F32({2, 5, 7})}, {}, {}},
      {"conv2d", {F32({2, 6, 8, 8}), F32({16, 6, 5, 5}), F32({16})}, {F32({2, 16, 4, 4})}, {}, {}},
      {"conv2d", {F32({2, 24, 5, 5}), F32({24, 24, 3, 3}), F32({24})}, {F32({2, 24, 3, 3})}, {}, {}},
      {"conv2d_grad_input", {F32({2, 16, 4, 4}), F32({16, 6, 5, 5})}, {F32({2, 6, 8, 8})}, {}, {}},
      {"conv2d_grad_weight", {F32({2, 6, 8, 8}), F32({2, 16, 4, 4})}, {F32({16, 6, 5, 5})}, {}, {}},
      {"conv2d_grad_weight", {F32({2, 24, 5, 5}), F32({2, 24, 3, 3})}, {F32({24, 24, 3, 3})}, {}, {}},
  };
  for (const KernelSpec& wide : specs) {
    for (int round = 0; round < 8; ++round) {
      KernelSpec mixed = wide;
      std::vector<Bytes> stored, widened;
      for (TensorSpec& input : mixed.inputs) {
        input.dtype = OneOf(random, kFloating);
        stored.push_back(OrdinaryValues(random, input));
        widened.push_back(Widened(input, stored.back()));
      }
      mixed.outputs[0].dtype = OneOf(random, kFloating);
      EXPECT_EQ(OnCuda(mixed, stored)[0], Rounded(mixed.outputs[0], OnCuda(wide, widened)[0])) << mixed.name;
    }
  }
}

TEST(EmptyTensors, GiveEmptyResultsAndZeroSums) {
  const auto zeros = [](const TensorSpec& spec) { return Bytes(spec.bytes(), 0); };
  const KernelSpec specs[] = {
      {"matmul", {F32({0, 5}), F32({5, 3})}, {F32({0, 3})}, {}, {}},
      {"batch_matmul", {F32({2, 3, 0}), F32({2, 0, 4})}, {F32({2, 3, 4})}, {}, {}},
      {"conv2d", {F32({0, 2, 4, 4}), F32({3, 2, 3, 3})}, {F32({0, 3, 2, 2})}, {}, {}},
      {"conv2d_grad_weight", {F32({0, 2, 4, 4}), F32({0, 3, 2, 2})}, {F32({3, 2, 3, 3})}, {}, {}},
      {"conv2d_grad_weight", {F32({0, 9, 4, 4}), F32({0, 20, 2, 2})}, {F32({20, 9, 3, 3})}, {}, {}},
      {"avg_pool2d", {F32({0, 2, 4, 4})}, {F32({0, 2, 4, 4})}, {}, {}},
      {"lstm_cell", {F32({0, 8}), F32({0, 2})}, {F32({0, 2}), F32({0, 2}), F32({0, 8})}, {}, {}},
  };
  for (const KernelSpec& spec : specs) {
    std::vector<Bytes> inputs;
    for (const TensorSpec& input : spec.inputs) inputs.push_back(zeros(input));
    EXPECT_EQ(OnCuda(spec, inputs)[0], zeros(spec.outputs[0])) << spec.name;
  }
}

TEST(Attention, WithoutKeysIsZeroAndItsLogSumMinusInfinity) {
  const KernelSpec spec{"attention",
                        {F32({1, 2, 3, 4}), F32({1, 2, 0, 4}), F32({1, 2, 0, 5})},
                        {F32({1, 2, 3, 5}), F32({1, 2, 3})},
                        {},
                        {}};
  const std::vector<Bytes> results = OnCuda(spec, {Bytes(96, 0), {}, {}});
  EXPECT_EQ(results[0], Bytes(120, 0));
  for (std::size_t i = 0; i < 6; ++i) {
    float value;
    std::memcpy(&value, results[1].data() + 4 * i, 4);
    EXPECT_EQ(value, -INFINITY);
  }
}

TEST(Pooling, GivesTheCpusBits) {
  Random random(3);
  for (int round = 0; round < 150; ++round) {
    const bool channels_last = Pick(random, 0, 1) == 1;
    const std::int64_t n = Pick(random, 1, 3), c = OneOf(random, {1, 3, 8, 16}), h = Pick(random, 3, 9);
    const std::int64_t w = Pick(random, 3, 9);
    const Shape x = channels_last ? Shape{n, h, w, c} : Shape{n, c, h, w};
    const Ints size = {Pick(random, 1, 3), Pick(random, 1, 3)};
    const Attributes attributes = {{"kernel_size", size},
                                   {"strides", Ints{Pick(random, 1, 3), Pick(random, 1, 3)}},
                                   {"pad_mode", std::string(Pick(random, 0, 1) == 1 ? "same" : "valid")},
                                   {"count_include_pad", Pick(random, 0, 1) == 1},
                                   {"data_format", std::string(channels_last ? "NHWC" : "NCHW")}};
    const Shape y = op_cases::WindowResultShape(attributes, x, size[0], size[1], c);
    const auto typed = [&](const Shape& shape) { return TensorSpec{OneOf(random, kFloating), shape}; };
    const TensorSpec values = typed(x);
    const Bytes bits = RandomValues(random, values);
    const TensorSpec indices{Pick(random, 0, 3) == 0 ? DType::kI32 : DType::kI8, y};
    const KernelSpec max_pool{"max_pool2d", {values}, {typed(y), indices}, {}, attributes};
    ExpectTheBitsOfTheCpu(max_pool, {bits});
    ExpectTheBitsOfTheCpu({"avg_pool2d", {values}, {typed(y)}, {}, attributes}, {bits});
    const TensorSpec dy = typed(y);
    const Bytes cotangents = OrdinaryValues(random, dy);
    ExpectTheBitsOfTheCpu({"avg_pool2d_grad", {dy}, {typed(x)}, {}, attributes}, {cotangents});
    ExpectTheBitsOfTheCpu({"max_pool2d_grad", {dy, indices}, {typed(x)}, {}, attributes},
                          {cotangents, OnCuda(max_pool, {bits})[1]});
    // Any positions, many of them in the padding or outside the window.
    const TensorSpec narrow{DType::kI8, y};
    Bytes positions(narrow.bytes());
    for (std::uint8_t& position : positions) position = static_cast<std::uint8_t>(Pick(random, -2, 10));
    ExpectTheBitsOfTheCpu({"max_pool2d_grad", {dy, narrow}, {typed(x)}, {}, attributes}, {cotangents, positions});
  }
}

TEST(Resize, GivesTheCpusBits) {
  Random random(9);
  constexpr const char* kCoordinates[] = {"asymmetric", "half_pixel", "align_corners"};
  for (int round = 0; round < 150; ++round) {
    const bool channels_last = Pick(random, 0, 1) == 1;
    const std::int64_t n = Pick(random, 1, 2), c = OneOf(random, {1, 3, 8});
    const auto image = [&](std::int64_t height, std::int64_t width) {
      return channels_last ? Shape{n, height, width, c} : Shape{n, c, height, width};
    };
    const Shape x = image(Pick(random, 1, 9), Pick(random, 1, 9)), y = image(Pick(random, 1, 9), Pick(random, 1, 9));
    const Attributes attributes = {{"interpolation", std::string(Pick(random, 0, 2) == 0 ? "nearest" : "bilinear")},
                                   {"coordinates", std::string(OneOf(random, kCoordinates))},
                                   {"data_format", std::string(channels_last ? "NHWC" : "NCHW")}};
    const auto typed = [&](const Shape& shape) { return TensorSpec{OneOf(random, kFloating), shape}; };
    const TensorSpec values = typed(x), dy = typed(y);
    ExpectTheBitsOfTheCpu({"resize", {values}, {typed(y)}, {}, attributes}, {OrdinaryValues(random, values)});
    ExpectTheBitsOfTheCpu({"resize_grad", {dy}, {typed(x)}, {}, attributes}, {OrdinaryValues(random, dy)});
  }
}

TEST(Resize, RefusesAxesThatThirtyTwoBitsDoNotHold) {
  const Shape x = {1, 1, 1, 70000}, y = {1, 1, 1, 80000};
  const absl::Status status = cuda::CreateKernel({"resize", {F32(x)}, {F32(y)}, {}, {}}, EmulatedContext()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(),
            "mpc.resize on CUDA takes axes whose extents before and after have a product of at most about 2^30; got "
            "70000 and 80000");
}

TEST(Recurrent, GivesTheCpusBits) {
  Random random(5);
  for (std::int64_t width : {1, 7, 8, 40, 257}) {
    for (int round = 0; round < 6; ++round) {
      const Shape state = {3, width}, gates = {3, 4 * width};
      const TensorSpec low_gates{OneOf(random, kFloating), gates}, low_state{OneOf(random, kFloating), state};
      const auto values = [&](const std::vector<TensorSpec>& specs) {
        std::vector<Bytes> bytes;
        for (const TensorSpec& spec : specs) bytes.push_back(RandomValues(random, spec));
        return bytes;
      };
      const KernelSpec forward{"lstm_cell", {low_gates, F32(state)}, {low_state, F32(state), F32(gates)}, {}, {}};
      ExpectTheBitsOfTheCpu(forward, values(forward.inputs));
      const KernelSpec backward{"lstm_cell_grad",
                                {low_state, F32(state), F32(gates), F32(state), F32(state)},
                                {low_gates, F32(state)},
                                {},
                                {}};
      ExpectTheBitsOfTheCpu(backward, values(backward.inputs));
    }
  }
}

}  // namespace
}  // namespace mpc::test
