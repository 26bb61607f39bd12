#include "frontend/state/tensor_rows.h"

#include <cstddef>
#include <cstring>

namespace mpc::internal {

Tensor Transposed(const Tensor& matrix) {
  const auto rows = static_cast<std::size_t>(matrix.shape()[0]);
  const auto columns = static_cast<std::size_t>(matrix.shape()[1]);
  const std::size_t element = ElementSize(matrix.dtype());
  const std::uint8_t* const source = matrix.bytes().data();
  std::vector<std::uint8_t> bytes(matrix.bytes().size());
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      std::memcpy(&bytes[(column * rows + row) * element], source + (row * columns + column) * element, element);
    }
  }
  return Tensor::FromBytes({matrix.dtype(), {matrix.shape()[1], matrix.shape()[0]}}, bytes.data(), bytes.size());
}

Tensor JoinedRows(const std::vector<Tensor>& tensors) {
  TensorSpec spec = tensors.front().spec();
  spec.shape[0] = 0;
  std::vector<std::uint8_t> bytes;
  for (const Tensor& tensor : tensors) {
    spec.shape[0] += tensor.shape()[0];
    bytes.insert(bytes.end(), tensor.bytes().begin(), tensor.bytes().end());
  }
  return Tensor::FromBytes(std::move(spec), bytes.data(), bytes.size());
}

Tensor RowsOf(const Tensor& tensor, std::int64_t begin, std::int64_t count) {
  TensorSpec spec = tensor.spec();
  const std::size_t row = tensor.bytes().size() / static_cast<std::size_t>(spec.shape[0]);
  spec.shape[0] = count;
  return Tensor::FromBytes(std::move(spec), tensor.bytes().data() + static_cast<std::size_t>(begin) * row,
                           static_cast<std::size_t>(count) * row);
}

}  // namespace mpc::internal
