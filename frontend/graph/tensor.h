// The value that user programs compute with: data outside `Construct`, a node of the traced graph inside it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/dtype.h"
#include "kernels/float16.h"
#include "kernels/float8.h"
#include "kernels/tensor_spec.h"

namespace mpc {

namespace internal {
struct TensorNode;
}  // namespace internal

/// The DType of a C++ element type: float, double, Half, BFloat16, Float8E4M3FN, Float8E5M2, int8_t, uint8_t, int32_t,
/// int64_t, bool.
template <typename T>
constexpr DType DTypeOf();
template <>
constexpr DType DTypeOf<float>() {
  return DType::kF32;
}
template <>
constexpr DType DTypeOf<double>() {
  return DType::kF64;
}
template <>
constexpr DType DTypeOf<Half>() {
  return DType::kF16;
}
template <>
constexpr DType DTypeOf<BFloat16>() {
  return DType::kBF16;
}
template <>
constexpr DType DTypeOf<std::int32_t>() {
  return DType::kI32;
}
template <>
constexpr DType DTypeOf<std::int64_t>() {
  return DType::kI64;
}
template <>
constexpr DType DTypeOf<bool>() {
  return DType::kBool;
}
template <>
constexpr DType DTypeOf<std::int8_t>() {
  return DType::kI8;
}
template <>
constexpr DType DTypeOf<Float8E4M3FN>() {
  return DType::kF8E4M3FN;
}
template <>
constexpr DType DTypeOf<Float8E5M2>() {
  return DType::kF8E5M2;
}
template <>
constexpr DType DTypeOf<std::uint8_t>() {
  return DType::kU8;
}

/// A cheap handle: copies share one immutable value.
///
/// *Concrete* tensors own data (row-major). *Symbolic* tensors stand for a value of the graph that is being traced;
/// they exist inside `Construct` only. After the first error of a trace operations return *poisoned* symbolic tensors.
/// Their rank is kept where it is known, and their extents are 1. The error reaches the user when the trace is
/// compiled.
class Tensor {
 public:
  /// An undefined tensor: `defined()` is false, everything else is an error or a zero.
  Tensor() = default;

  /// Copies `values` (row-major) under `shape`. Errors are kept in the tensor (see `status()`): an element count that
  /// differs from the shape's, a negative extent.
  template <typename T>
  static Tensor From(absl::Span<const T> values, Shape shape) {
    return FromBytes({DTypeOf<T>(), std::move(shape)}, values.data(), values.size() * ElementSize(DTypeOf<T>()));
  }
  template <typename T>
  static Tensor From(const std::vector<T>& values, Shape shape) {
    return From(absl::MakeConstSpan(values), std::move(shape));
  }
  template <typename T>
  static Tensor From(std::initializer_list<T> values, Shape shape) {
    return From(absl::MakeConstSpan(values.begin(), values.size()), std::move(shape));
  }
  static Tensor FromBytes(TensorSpec spec, const void* data, std::size_t bytes);
  /// A rank-0 tensor.
  template <typename T>
  static Tensor Scalar(T value) {
    return From(absl::MakeConstSpan(&value, 1), {});
  }
  static Tensor Zeros(Shape shape, DType dtype = DType::kF32);
  static Tensor Full(Shape shape, double value, DType dtype = DType::kF32);

  /// `Load` reads NumPy's .npy, version 1 or 2: little-endian f2, f4, f8, i4, i8, and i1, u1, b1, C order. `Save`
  /// writes it beside the target, syncs and renames. bf16 and f8 have no NumPy type and are refused.
  static absl::StatusOr<Tensor> Load(const std::string& path);
  absl::Status Save(const std::string& path) const;

  bool defined() const { return node_ != nullptr; }
  bool symbolic() const;
  bool concrete() const { return defined() && !symbolic(); }
  /// OK, or why this tensor could not be made.
  absl::Status status() const;

  const TensorSpec& spec() const;
  const Shape& shape() const { return spec().shape; }
  DType dtype() const { return spec().dtype; }
  std::int64_t rank() const { return static_cast<std::int64_t>(shape().size()); }
  /// Extent of `axis`; negative axes count from the end. 1 if there is no such axis (the trace reports it).
  std::int64_t dim(std::int64_t axis) const;
  std::int64_t size() const { return spec().num_elements(); }

  /// The single element of a concrete tensor, converted to T. Errors: INVALID_ARGUMENT for another element count,
  /// FAILED_PRECONDITION for a symbolic tensor.
  template <typename T>
  absl::StatusOr<T> TryItem() const {
    absl::StatusOr<double> value = ItemAsDouble();
    if (!value.ok()) return value.status();
    return static_cast<T>(*value);
  }
  /// As `TryItem`; an error is fatal and prints it.
  template <typename T>
  T Item() const;

  /// The storage of a concrete tensor. It is empty for a symbolic one, and where `status()` is an error.
  absl::Span<const std::uint8_t> bytes() const;
  /// The elements, T being exactly the element type. There are none for another type, and where `bytes()` is empty.
  template <typename T>
  absl::Span<const T> data() const {
    if (!concrete() || dtype() != DTypeOf<T>()) return {};
    return absl::Span<const T>(reinterpret_cast<const T*>(bytes().data()), static_cast<std::size_t>(size()));
  }
  /// All elements of a concrete tensor converted to f32 (exact for f8, f16, bf16, f32); none where `bytes()` is empty.
  std::vector<float> ToFloats() const;
  /// A concrete tensor in another element type (floating: round to nearest even).
  Tensor To(DType dtype) const;

  /// Truth of a symbolic tensor is not known while tracing: deleted, so that `if (tensor)` does not compile.
  explicit operator bool() const = delete;

  // For the tracer.
  explicit Tensor(std::shared_ptr<const internal::TensorNode> node) : node_(std::move(node)) {}
  const std::shared_ptr<const internal::TensorNode>& node() const { return node_; }

 private:
  absl::StatusOr<double> ItemAsDouble() const;
  [[noreturn]] static void FailItem(const absl::Status& status);

  std::shared_ptr<const internal::TensorNode> node_;
};

template <typename T>
T Tensor::Item() const {
  absl::StatusOr<T> value = TryItem<T>();
  if (!value.ok()) FailItem(value.status());
  return *value;
}

/// "Tensor(shape=[2, 2], dtype=f32, [[1, 2], [3, 4]])", abbreviated beyond 1,000 elements.
std::ostream& operator<<(std::ostream& stream, const Tensor& tensor);

}  // namespace mpc
