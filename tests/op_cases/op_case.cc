#include "tests/op_cases/op_case.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "kernels/scalar/philox.h"
#include "tests/op_cases/families.h"

namespace mpc::op_cases {
namespace {

std::uint64_t SeedOf(std::string_view name) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (char character : name) hash = (hash ^ static_cast<unsigned char>(character)) * 1099511628211u;
  return hash;
}

std::vector<double> Draw(const OpCase& op_case, const OperandCase& operand, std::uint32_t position) {
  const std::uint64_t seed = SeedOf(op_case.name);
  const Values& source = operand.values;
  const auto a = static_cast<float>(source.a);
  const auto b = static_cast<float>(source.b);
  std::vector<double> values(static_cast<std::size_t>(operand.spec.num_elements()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    switch (source.kind) {
      case Values::Kind::kNormal:
        values[i] = RandomNormal(seed, position, i, a, b);
        break;
      case Values::Kind::kUniform:
        values[i] = RandomUniform(seed, position, i, a, b);
        break;
      case Values::Kind::kIntegers:
        values[i] = source.a + static_cast<double>(PhiloxBlock(seed, 0, position, i)[0] %
                                                   static_cast<std::uint32_t>(source.b - source.a));
        break;
      case Values::Kind::kOneHot: {
        const auto classes = static_cast<std::size_t>(operand.spec.shape.back());
        values[i] = PhiloxBlock(seed, 0, position, i / classes)[0] % classes == i % classes ? 1 : 0;
        break;
      }
      case Values::Kind::kList:
        values[i] = source.list[i % source.list.size()];
        break;
      case Values::Kind::kComputed:
        break;
    }
  }
  return values;
}

DType StorageOf(DType declared, DType dtype, bool low, const std::vector<std::size_t>& f32_positions,
                std::size_t position) {
  const bool stays = !low || declared != DType::kF32 ||
                     std::find(f32_positions.begin(), f32_positions.end(), position) != f32_positions.end();
  return stays ? declared : dtype;
}

// The specs that operation `op` gives to all its results, for a computed operand of shape `spec`. Only the result asked
// for is kept; the others are scratch of at most that many elements.
reference::Tensor Compute(const OpCase& op_case, const OperandCase& operand,
                          const std::vector<reference::Tensor>& known) {
  std::vector<reference::Tensor> inputs;
  for (std::size_t position : operand.values.from) inputs.push_back(known[position]);
  std::vector<reference::Tensor> outputs;
  for (const Shape& shape : ForwardShapes(operand.values.op, op_case.attributes, inputs)) {
    outputs.push_back({{DType::kF64, shape}, std::vector<double>(static_cast<std::size_t>(NumElements(shape)))});
  }
  reference::Find(operand.values.op)(op_case.attributes, inputs, absl::MakeSpan(outputs));
  return outputs[operand.values.result];
}

}  // namespace

Values Normal(double mean, double deviation) { return {Values::Kind::kNormal, mean, deviation, {}, {}, 0, {}}; }
Values Uniform(double low, double high) { return {Values::Kind::kUniform, low, high, {}, {}, 0, {}}; }
Values Integers(std::int64_t low, std::int64_t high) {
  return {Values::Kind::kIntegers, static_cast<double>(low), static_cast<double>(high), {}, {}, 0, {}};
}
Values OneHot() { return {Values::Kind::kOneHot, 0, 1, {}, {}, 0, {}}; }
Values List(std::vector<double> list) { return {Values::Kind::kList, 0, 1, std::move(list), {}, 0, {}}; }
Values Computed(std::string op, std::size_t result, std::vector<std::size_t> from) {
  return {Values::Kind::kComputed, 0, 1, {}, std::move(op), result, std::move(from)};
}

std::vector<TensorSpec> OperandSpecs(const OpCase& op_case, DType dtype) {
  std::vector<TensorSpec> specs;
  for (std::size_t i = 0; i < op_case.operands.size(); ++i) {
    const TensorSpec& spec = op_case.operands[i].spec;
    specs.push_back({StorageOf(spec.dtype, dtype, op_case.low, op_case.f32_operands, i), spec.shape});
  }
  return specs;
}

std::vector<TensorSpec> ResultSpecs(const OpCase& op_case, DType dtype) {
  std::vector<TensorSpec> specs;
  for (std::size_t i = 0; i < op_case.results.size(); ++i) {
    const TensorSpec& spec = op_case.results[i];
    specs.push_back({StorageOf(spec.dtype, dtype, op_case.low, op_case.f32_results, i), spec.shape});
  }
  return specs;
}

std::vector<reference::Tensor> MakeInputs(const OpCase& op_case, DType dtype) {
  const std::vector<TensorSpec> specs = OperandSpecs(op_case, dtype);
  std::vector<OperandCase> all = op_case.operands;
  all.insert(all.end(), op_case.auxiliary.begin(), op_case.auxiliary.end());
  std::vector<reference::Tensor> tensors(all.size());
  // Drawn operands first: computed ones read them, and computed ones never read each other.
  for (const bool computed : {false, true}) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if ((all[i].values.kind == Values::Kind::kComputed) != computed) continue;
      reference::Tensor& tensor = tensors[i];
      tensor.values =
          computed ? Compute(op_case, all[i], tensors).values : Draw(op_case, all[i], static_cast<std::uint32_t>(i));
      tensor.spec = i < specs.size() ? specs[i] : all[i].spec;
      for (double& value : tensor.values) value = reference::RoundTo(tensor.spec.dtype, value);
    }
  }
  tensors.resize(specs.size());
  return tensors;
}

const std::vector<OpCase>& AllOpCases() {
  static const auto* const cases = [] {
    auto* all = new std::vector<OpCase>;
    for (const auto& family :
         {ElementwiseCases, ActivationCases, DataMovementCases, MovementCases, ReductionCases, MatmulCases, Conv2dCases,
          PoolingCases, ResizeCases, BatchNormCases, SoftmaxCases, LossCases, AttentionCases, NormCases, RecurrentCases,
          ConvTransposeCases, OptimizerCases, LossScaleCases, StepCases}) {
      std::vector<OpCase> cases = family();
      all->insert(all->end(), std::make_move_iterator(cases.begin()), std::make_move_iterator(cases.end()));
    }
    return all;
  }();
  return *cases;
}

}  // namespace mpc::op_cases
