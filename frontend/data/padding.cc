// Rows of a batch whose extents differ.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/data/batch.h"
#include "frontend/data/held_value.h"
#include "frontend/graph/tensor_node.h"
#include "runtime/aligned_buffer.h"
#include "runtime/physical_memory.h"

namespace mpc::data::internal {
namespace {

/// Copies a row-major tensor into the low corner of one of the same rank that is no smaller.
void CopyCorner(const Tensor& row, const Shape& target, std::byte* destination) {
  const Shape& shape = row.shape();
  if (row.size() == 0) return;
  if (shape == target) {
    std::memcpy(destination, row.bytes().data(), row.bytes().size());
    return;
  }
  const std::size_t element = ElementSize(row.dtype());
  const std::size_t run = element * static_cast<std::size_t>(shape.empty() ? 1 : shape.back());
  const std::uint8_t* source = row.bytes().data();
  Shape index(shape.size(), 0);
  for (;;) {
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) offset = offset * target[axis] + index[axis];
    std::memcpy(destination + static_cast<std::size_t>(offset) * element, source, run);
    source += run;
    // The next run: the last axis is copied whole.
    std::size_t axis = shape.size() < 2 ? 0 : shape.size() - 1;
    while (axis > 0 && ++index[axis - 1] == shape[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

void Fill(const TensorSpec& spec, double value, runtime::AlignedBuffer& buffer) {
  if (value == 0) return;
  const Tensor one = Tensor::Full({}, value, spec.dtype);
  const std::size_t element = ElementSize(spec.dtype);
  for (std::size_t at = 0; at < spec.bytes(); at += element) {
    std::memcpy(buffer.data() + at, one.bytes().data(), element);
  }
}

/// The extents that are stated for a column of rank `rank`, -1 for those that are open.
absl::StatusOr<Shape> StatedShape(const ColumnPadding& padding, std::size_t rank,
                                  std::optional<std::int64_t> boundary_extent) {
  Shape stated = padding.shape.value_or(Shape(rank, -1));
  if (stated.size() != rank) {
    return absl::InvalidArgumentError(absl::StrCat("the shape of its padding has rank ", stated.size()));
  }
  if (!boundary_extent) return stated;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const bool bound = padding.all_axes_to_boundary || (padding.first_axis_to_boundary && axis == 0);
    if (bound && stated[axis] < 0) stated[axis] = *boundary_extent;
  }
  return stated;
}

absl::Status RowError(const std::string& column, std::int64_t place, const TensorSpec& spec, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("column '", column, "': row ", place, " of the epoch is ", spec.ToString(), ", but ", why));
}

/// The spec that every row of a column is padded to.
absl::StatusOr<TensorSpec> PaddedSpec(const GatheredRows& gathered, std::size_t column, const std::string& name,
                                      const ColumnPadding& padding, std::optional<std::int64_t> boundary_extent) {
  const TensorSpec& first = gathered.rows[0][column].spec();
  absl::StatusOr<Shape> stated = StatedShape(padding, first.shape.size(), boundary_extent);
  if (!stated.ok()) return RowError(name, gathered.places[0], first, std::string(stated.status().message()));
  TensorSpec target = first;
  for (std::size_t i = 0; i < gathered.rows.size(); ++i) {
    const TensorSpec& spec = gathered.rows[i][column].spec();
    const bool fits =
        padding.padded ? spec.dtype == first.dtype && spec.shape.size() == first.shape.size() : spec == first;
    if (!fits) {
      return RowError(name, gathered.places[i], spec,
                      absl::StrCat("row ", gathered.places[0], " of the same batch is ", first.ToString()));
    }
    if (!padding.padded) continue;
    for (std::size_t axis = 0; axis < target.shape.size(); ++axis) {
      target.shape[axis] = std::max(target.shape[axis], spec.shape[axis]);
      if ((*stated)[axis] >= 0 && spec.shape[axis] > (*stated)[axis]) {
        return RowError(name, gathered.places[i], spec,
                        absl::StrCat("extent ", axis, " is padded to ", (*stated)[axis]));
      }
    }
  }
  if (!padding.padded) return target;
  for (std::size_t axis = 0; axis < target.shape.size(); ++axis) {
    if ((*stated)[axis] >= 0) target.shape[axis] = (*stated)[axis];
  }
  return target;
}

/// Zeros for a batch. Errors (RESOURCE_EXHAUSTED): this machine does not have the memory.
absl::StatusOr<runtime::AlignedBuffer> BufferOf(const TensorSpec& batch, const TensorSpec& row,
                                                const std::string& column, const GatheredRows& gathered) {
  const auto make = [&]() -> absl::StatusOr<runtime::AlignedBuffer> { return runtime::AlignedBuffer(batch.bytes()); };
  return runtime::MakeWithinMemory(batch.bytes(), make, [&] {
    return absl::StrCat("column '", column, "': ", gathered.rows.size(), " rows, the first of them row ",
                        gathered.places[0], " of the epoch, padded to ", row.ToString(), " need ", batch.bytes(),
                        " bytes; the system does not have them");
  });
}

}  // namespace

absl::StatusOr<std::vector<ColumnPadding>> PaddingOf(const ColumnNames& columns, const PadInfo& pad_info) {
  std::vector<ColumnPadding> padding(columns.size(), {.padded = pad_info.empty()});
  for (const auto& [name, given] : pad_info) {
    const auto found = std::find(columns.begin(), columns.end(), name);
    if (found == columns.end()) {
      return absl::NotFoundError(
          absl::StrCat("pad_info: no column '", name, "'; columns are ", absl::StrJoin(columns, ", ")));
    }
    for (std::int64_t extent : given.shape.value_or(Shape())) {
      if (extent >= -1) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("pad_info of column '", name, "': extent ", extent, "; accepted are -1 and above"));
    }
    padding[static_cast<std::size_t>(found - columns.begin())] = {
        .padded = true, .shape = given.shape, .value = given.value};
  }
  return padding;
}

absl::StatusOr<Row> PadAndStack(const GatheredRows& gathered, const ColumnNames& columns,
                                const std::vector<ColumnPadding>& padding,
                                std::optional<std::int64_t> boundary_extent) {
  Row batch;
  for (std::size_t column = 0; column < columns.size(); ++column) {
    absl::StatusOr<TensorSpec> row_spec =
        PaddedSpec(gathered, column, columns[column], padding[column], boundary_extent);
    if (!row_spec.ok()) return row_spec.status();
    const std::string where = absl::StrCat("pad_info of column '", columns[column], "': the value");
    absl::Status held = CheckHeld(where, padding[column].value, row_spec->dtype);
    if (!held.ok()) return held;
    TensorSpec spec = *row_spec;
    spec.shape.insert(spec.shape.begin(), static_cast<std::int64_t>(gathered.rows.size()));
    if (absl::Status status = mpc::internal::CheckSpec(spec); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("column '", columns[column], "': ", gathered.rows.size(),
                                                     " rows padded to ", row_spec->ToString(), ": ", status.message()));
    }
    absl::StatusOr<runtime::AlignedBuffer> buffer = BufferOf(spec, *row_spec, columns[column], gathered);
    if (!buffer.ok()) return buffer.status();
    Fill(spec, padding[column].value, *buffer);
    std::byte* destination = buffer->data();
    for (const Row& row : gathered.rows) {
      CopyCorner(row[column], row_spec->shape, destination);
      destination += row_spec->bytes();
    }
    batch.push_back(mpc::internal::MakeConcrete(std::move(spec), *std::move(buffer)));
  }
  return batch;
}

}  // namespace mpc::data::internal
