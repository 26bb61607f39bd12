// Finding and running reference functions, and storage conversions.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "kernels/attribute_words.h"
#include "kernels/float16.h"
#include "kernels/float8.h"
#include "kernels/reference/functions.h"

namespace mpc::reference {
namespace {

const std::map<std::string_view, Function>& Registry() {
  static const auto* const registry = [] {
    auto* functions = new std::map<std::string_view, Function>;
    for (const FunctionTable& table :
         {ActivationFunctions(),   AttentionFunctions(),   BatchNormFunctions(), Conv2dFunctions(),
          DataMovementFunctions(), ElementwiseFunctions(), IntegerFunctions(),   LossFunctions(),
          LossScaleFunctions(),    MatmulFunctions(),      MovementFunctions(),  NormFunctions(),
          OptimizerFunctions(),    PoolingFunctions(),     RandomFunctions(),    RecurrentFunctions(),
          ReductionFunctions(),    ResizeFunctions(),      SoftmaxFunctions(),   StepFunctions()}) {
      for (const NamedFunction& entry : table) functions->emplace(entry.name, entry.function);
    }
    return functions;
  }();
  return *registry;
}

// Rounds to nearest even in one step; going through f32 would round twice.
double RoundToBinaryFormat(double value, int fraction_bits, int min_exponent, double max_finite) {
  if (!std::isfinite(value) || value == 0) return value;
  const int exponent = std::max(std::ilogb(value), min_exponent);
  const double quantum = std::ldexp(1.0, exponent - fraction_bits);
  const double rounded = std::nearbyint(value / quantum) * quantum;
  return std::abs(rounded) > max_finite ? std::copysign(std::numeric_limits<double>::infinity(), value) : rounded;
}

template <typename T>
double Load(const void* data, std::size_t index) {
  T element;
  std::memcpy(&element, static_cast<const char*>(data) + index * sizeof(T), sizeof(T));
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(element);
  } else {
    return static_cast<double>(static_cast<float>(element));
  }
}

template <typename T>
void Store(T element, void* data, std::size_t index) {
  std::memcpy(static_cast<char*>(data) + index * sizeof(T), &element, sizeof(T));
}

template <typename T>
T Saturate(double value) {
  if (std::isnan(value)) return 0;
  // 2^(bits - 1) is exact in f64, max() of a 64-bit type is not.
  const double limit = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (value >= limit) return std::numeric_limits<T>::max();
  if (value < -limit) return std::numeric_limits<T>::min();
  return static_cast<T>(value);
}

// Kernels round an integer once, by RoundToOdd of kernels/scalar/cast.h. An f64 is rounded once where a cast of a
// constant is folded.
bool IsCastRoundedOnce(std::string_view name, Inputs inputs) {
  if (name != "cast") return false;
  const DType from = inputs[0].spec.dtype;
  return !IsFloating(from) || from == DType::kF64;
}

void RoundValues(Tensor& result, Rounding rounding, bool through_f32) {
  const DType dtype = result.spec.dtype;
  if (rounding == Rounding::kLowOnly && dtype == DType::kF32) return;
  if (rounding == Rounding::kNone && IsFloating(dtype)) return;
  for (double& value : result.values) {
    if (through_f32 && IsLowPrecision(dtype)) value = RoundTo(DType::kF32, value);
    value = RoundTo(dtype, value);
  }
}

}  // namespace

Function Find(std::string_view name) {
  const auto found = Registry().find(name);
  return found == Registry().end() ? nullptr : found->second;
}

std::vector<std::string_view> Names() {
  std::vector<std::string_view> names;
  for (const auto& [name, function] : Registry()) names.push_back(name);
  return names;
}

absl::Status Run(std::string_view name, const Attributes& attributes, Inputs inputs, Outputs outputs,
                 Rounding rounding) {
  const Function function = Find(name);
  if (function == nullptr) {
    return absl::NotFoundError(absl::StrCat("operation \"", std::string(name), "\" has no reference function"));
  }
  if (absl::Status status = CheckWords(name, attributes); !status.ok()) return status;
  for (Tensor& output : outputs) output.values.resize(static_cast<std::size_t>(output.spec.num_elements()));
  function(attributes, inputs, outputs);
  const bool through_f32 = rounding == Rounding::kStorage && !IsCastRoundedOnce(name, inputs);
  for (Tensor& output : outputs) RoundValues(output, rounding, through_f32);
  return absl::OkStatus();
}

void Round(Tensor& result, Rounding rounding) {
  RoundValues(result, rounding, /*through_f32=*/rounding == Rounding::kStorage);
}

double RoundTo(DType dtype, double value) {
  switch (dtype) {
    case DType::kF64:
      return value;
    case DType::kF32:
      return static_cast<double>(static_cast<float>(value));
    case DType::kF16:
      return RoundToBinaryFormat(value, 10, -14, 65504.0);
    case DType::kBF16:
      return RoundToBinaryFormat(value, 7, -126, 0x1.fep127);
    case DType::kF8E4M3FN: {
      // There are no infinities.
      const double rounded = RoundToBinaryFormat(value, 3, -6, 448.0);
      return std::isinf(rounded) ? std::numeric_limits<double>::quiet_NaN() : rounded;
    }
    case DType::kF8E5M2:
      return RoundToBinaryFormat(value, 2, -14, 57344.0);
    case DType::kU8:
      return Saturate<std::uint8_t>(value);
    case DType::kI32:
      return Saturate<std::int32_t>(value);
    case DType::kI64:
      return static_cast<double>(Saturate<std::int64_t>(value));
    case DType::kI8:
      return Saturate<std::int8_t>(value);
    case DType::kBool:
      return value != 0 ? 1 : 0;
  }
  return value;
}

Tensor FromStorage(const TensorSpec& spec, const void* data) {
  Tensor tensor{spec, std::vector<double>(static_cast<std::size_t>(spec.num_elements()))};
  for (std::size_t i = 0; i < tensor.values.size(); ++i) {
    double& value = tensor.values[i];
    switch (spec.dtype) {
      case DType::kF32:
        value = Load<float>(data, i);
        break;
      case DType::kF16:
        value = Load<Half>(data, i);
        break;
      case DType::kBF16:
        value = Load<BFloat16>(data, i);
        break;
      case DType::kF64:
        value = Load<double>(data, i);
        break;
      case DType::kI32:
        value = Load<std::int32_t>(data, i);
        break;
      case DType::kI64:
        value = Load<std::int64_t>(data, i);
        break;
      case DType::kBool:
        value = Load<std::uint8_t>(data, i) != 0 ? 1 : 0;
        break;
      case DType::kI8:
        value = Load<std::int8_t>(data, i);
        break;
      case DType::kF8E4M3FN:
        value = Load<Float8E4M3FN>(data, i);
        break;
      case DType::kF8E5M2:
        value = Load<Float8E5M2>(data, i);
        break;
      case DType::kU8:
        value = Load<std::uint8_t>(data, i);
        break;
    }
  }
  return tensor;
}

void ToStorage(const Tensor& tensor, void* data) {
  for (std::size_t i = 0; i < tensor.values.size(); ++i) {
    const double value = RoundTo(tensor.spec.dtype, tensor.values[i]);
    switch (tensor.spec.dtype) {
      case DType::kF32:
        Store(static_cast<float>(value), data, i);
        break;
      case DType::kF16:
        Store(Half(static_cast<float>(value)), data, i);
        break;
      case DType::kBF16:
        Store(BFloat16(static_cast<float>(value)), data, i);
        break;
      case DType::kF64:
        Store(value, data, i);
        break;
      case DType::kI32:
        Store(Saturate<std::int32_t>(value), data, i);
        break;
      case DType::kI64:
        Store(Saturate<std::int64_t>(value), data, i);
        break;
      case DType::kBool:
        Store(static_cast<std::uint8_t>(value != 0), data, i);
        break;
      case DType::kI8:
        Store(Saturate<std::int8_t>(value), data, i);
        break;
      case DType::kF8E4M3FN:
        Store(Float8E4M3FN(static_cast<float>(value)), data, i);
        break;
      case DType::kF8E5M2:
        Store(Float8E5M2(static_cast<float>(value)), data, i);
        break;
      case DType::kU8:
        Store(Saturate<std::uint8_t>(value), data, i);
        break;
    }
  }
}

}  // namespace mpc::reference
