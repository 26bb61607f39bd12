#include "frontend/graph/tensor.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/graph/element_conversion.h"
#include "frontend/graph/npy.h"
#include "frontend/graph/tensor_node.h"

namespace mpc {
namespace internal {

bool SameValue(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return false;
  if (a.node() == b.node()) return true;
  return a.symbolic() && b.symbolic() && a.node()->value != nullptr && a.node()->value == b.node()->value;
}

absl::Status CheckSpec(const TensorSpec& spec) {
  std::uint64_t bytes = ElementSize(spec.dtype);
  bool empty = false;
  for (std::int64_t extent : spec.shape) {
    if (extent < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", ShapeToString(spec.shape), " has a negative extent (", extent, ")"));
    }
    if (extent == 0) empty = true;
  }
  if (empty) return absl::OkStatus();
  constexpr std::uint64_t kLimit = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t extent : spec.shape) {
    if (bytes > kLimit / static_cast<std::uint64_t>(extent)) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", ShapeToString(spec.shape), " needs more bytes than 64 bits can count"));
    }
    bytes *= static_cast<std::uint64_t>(extent);
  }
  return absl::OkStatus();
}

Tensor MakeConcrete(TensorSpec spec, runtime::AlignedBuffer data, std::string origin) {
  auto node = std::make_shared<TensorNode>();
  node->spec = std::move(spec);
  node->data = std::move(data);
  node->origin = std::move(origin);
  return Tensor(std::move(node));
}

Tensor MakeInvalid(absl::Status status) {
  auto node = std::make_shared<TensorNode>();
  node->spec = {DType::kF32, {0}};
  node->status = std::move(status);
  return Tensor(std::move(node));
}

}  // namespace internal

namespace {

absl::Status NoElements(const Tensor& tensor, const char* operation) {
  if (!tensor.defined()) {
    return absl::FailedPreconditionError(absl::StrCat(operation, " of an empty tensor (default-constructed)"));
  }
  return absl::FailedPreconditionError(absl::StrCat(operation, " of a symbolic ", tensor.spec().ToString(),
                                                    ": values are known outside Construct only"));
}

}  // namespace

Tensor Tensor::FromBytes(TensorSpec spec, const void* data, std::size_t bytes) {
  if (absl::Status status = internal::CheckSpec(spec); !status.ok()) return internal::MakeInvalid(std::move(status));
  if (bytes != spec.bytes()) {
    const std::size_t element = ElementSize(spec.dtype);
    return internal::MakeInvalid(
        absl::InvalidArgumentError(absl::StrCat(spec.ToString(), " needs ", spec.num_elements(), " elements, got ",
                                                bytes / element, bytes % element == 0 ? "" : " and a part of one")));
  }
  runtime::AlignedBuffer buffer(bytes);
  if (spec.dtype == DType::kBool) {
    const auto* source = static_cast<const std::uint8_t*>(data);
    for (std::size_t i = 0; i < bytes; ++i) buffer.data()[i] = std::byte{source[i] != 0};
  } else if (bytes != 0) {
    std::memcpy(buffer.data(), data, bytes);
  }
  return internal::MakeConcrete(std::move(spec), std::move(buffer));
}

Tensor Tensor::Zeros(Shape shape, DType dtype) {
  TensorSpec spec{dtype, std::move(shape)};
  if (absl::Status status = internal::CheckSpec(spec); !status.ok()) return internal::MakeInvalid(std::move(status));
  runtime::AlignedBuffer buffer(spec.bytes());
  return internal::MakeConcrete(std::move(spec), std::move(buffer));
}

Tensor Tensor::Full(Shape shape, double value, DType dtype) {
  TensorSpec spec{dtype, std::move(shape)};
  if (absl::Status status = internal::CheckSpec(spec); !status.ok()) return internal::MakeInvalid(std::move(status));
  const std::size_t element_size = ElementSize(dtype);
  std::uint8_t element[sizeof(double)];
  internal::ConvertElements(DType::kF64, &value, dtype, element, 1);
  runtime::AlignedBuffer buffer(spec.bytes());
  for (std::size_t offset = 0; offset < buffer.size(); offset += element_size) {
    std::memcpy(buffer.data() + offset, element, element_size);
  }
  return internal::MakeConcrete(std::move(spec), std::move(buffer));
}

absl::StatusOr<Tensor> Tensor::Load(const std::string& path) { return internal::LoadNpy(path); }

absl::Status Tensor::Save(const std::string& path) const {
  if (!status().ok()) return status();
  if (!concrete()) return NoElements(*this, "Save");
  return internal::SaveNpy(*this, path);
}

bool Tensor::symbolic() const { return node_ != nullptr && node_->graph != nullptr; }

absl::Status Tensor::status() const { return node_ == nullptr ? absl::OkStatus() : node_->status; }

const TensorSpec& Tensor::spec() const {
  static const TensorSpec* const kEmpty = new TensorSpec{DType::kF32, {0}};
  return node_ == nullptr ? *kEmpty : node_->spec;
}

std::int64_t Tensor::dim(std::int64_t axis) const {
  if (axis < 0) axis += rank();
  return axis >= 0 && axis < rank() ? shape()[static_cast<std::size_t>(axis)] : 1;
}

absl::Span<const std::uint8_t> Tensor::bytes() const {
  if (!concrete() || !status().ok()) return {};
  return {reinterpret_cast<const std::uint8_t*>(node_->data.data()), node_->data.size()};
}

std::vector<float> Tensor::ToFloats() const {
  if (!concrete() || !status().ok()) return {};
  std::vector<float> values(static_cast<std::size_t>(size()));
  internal::ConvertElements(dtype(), bytes().data(), DType::kF32, values.data(), values.size());
  return values;
}

Tensor Tensor::To(DType dtype) const {
  if (!status().ok()) return *this;
  if (!concrete()) return internal::MakeInvalid(NoElements(*this, "To"));
  if (dtype == this->dtype()) return *this;
  TensorSpec spec{dtype, shape()};
  if (absl::Status status = internal::CheckSpec(spec); !status.ok()) return internal::MakeInvalid(std::move(status));
  runtime::AlignedBuffer buffer(spec.bytes());
  internal::ConvertElements(this->dtype(), bytes().data(), dtype, buffer.data(), static_cast<std::size_t>(size()));
  return internal::MakeConcrete(std::move(spec), std::move(buffer));
}

absl::StatusOr<double> Tensor::ItemAsDouble() const {
  if (!status().ok()) return status();
  if (!concrete()) return NoElements(*this, "Item");
  if (size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("Item needs a tensor of one element, this is ", spec().ToString(), " with ", size()));
  }
  double value = 0;
  internal::ConvertElements(dtype(), bytes().data(), DType::kF64, &value, 1);
  return value;
}

void Tensor::FailItem(const absl::Status& status) {
  std::fprintf(stderr, "mpc: %s\n", status.ToString().c_str());
  std::abort();
}

}  // namespace mpc
