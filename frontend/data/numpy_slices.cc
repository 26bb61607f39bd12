#include "frontend/data/numpy_slices.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "frontend/data/mapped_file.h"
#include "frontend/data/npz_file.h"
#include "frontend/graph/npy.h"
#include "runtime/file_content.h"

namespace mpc::data {
namespace {

constexpr absl::string_view kMemberSuffix = ".npy";

/// Elements that something else owns.
struct Array {
  std::string origin;  ///< names it in errors
  TensorSpec spec;
  bool fortran_order = false;
  absl::Span<const std::uint8_t> elements;
  std::shared_ptr<const void> owner;

  std::int64_t rows() const { return spec.shape[0]; }
  Tensor Slice(std::int64_t row) const;
};

Tensor Array::Slice(std::int64_t row) const {
  TensorSpec slice = spec;
  slice.shape.erase(slice.shape.begin());
  const std::size_t bytes = slice.bytes();
  if (!fortran_order) {
    return Tensor::FromBytes(slice, elements.data() + static_cast<std::size_t>(row) * bytes, bytes);
  }
  const std::size_t element = ElementSize(spec.dtype);
  std::vector<std::uint8_t> gathered(bytes);
  Shape index(slice.shape.size(), 0);
  for (std::size_t at = 0; at < bytes; at += element) {
    std::int64_t place = 0;
    for (std::size_t axis = index.size(); axis-- > 0;) place = place * slice.shape[axis] + index[axis];
    place = place * rows() + row;
    std::memcpy(gathered.data() + at, elements.data() + static_cast<std::size_t>(place) * element, element);
    for (std::size_t axis = index.size(); axis-- > 0;) {
      index[axis] = (index[axis] + 1) % slice.shape[axis];
      if (index[axis] != 0) break;
    }
  }
  return Tensor::FromBytes(slice, gathered.data(), bytes);
}

struct Slices {
  std::vector<Array> arrays;
  bool refuse_nan = false;

  std::int64_t size() const { return arrays[0].rows(); }
  absl::StatusOr<Row> operator[](std::size_t index) const {
    Row row;
    for (const Array& array : arrays) {
      row.push_back(array.Slice(static_cast<std::int64_t>(index)));
      if (!refuse_nan || !IsFloating(array.spec.dtype)) continue;
      const std::vector<float> values = row.back().ToFloats();
      if (std::none_of(values.begin(), values.end(), [](float value) { return std::isnan(value); })) continue;
      return absl::InvalidArgumentError(absl::StrCat(array.origin, ": row ", index, " has a NaN, which is refused"));
    }
    return row;
  }
};

absl::Status CheckArrays(const std::vector<Array>& arrays, const ColumnNames& names) {
  if (arrays.empty()) return absl::InvalidArgumentError("NumpySlicesDataset needs an array");
  for (const Array& array : arrays) {
    if (array.spec.shape.empty() || array.rows() < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(array.origin, " is ", array.spec.ToString(), ", which has no rows along axis 0"));
    }
    if (array.rows() == arrays[0].rows()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(array.origin, " has ", array.rows(), " rows, but ", arrays[0].origin, " has ", arrays[0].rows()));
  }
  if (names.size() == arrays.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("NumpySlicesDataset has ", names.size(), " column names for ", arrays.size(), " arrays"));
}

Dataset MakeDataset(std::vector<Array> arrays, const ColumnNames& names, const NumpySlicesOptions& options) {
  if (absl::Status status = CheckArrays(arrays, names); !status.ok()) return Dataset(std::move(status));
  return GeneratorDataset(Slices{std::move(arrays), options.refuse_nan}, names).Sample(options.sampling);
}

ColumnNames NamesOr(const ColumnNames& names, std::size_t count) {
  if (!names.empty()) return names;
  ColumnNames numbered;
  for (std::size_t i = 0; i < count; ++i) numbered.push_back(absl::StrCat("column_", i));
  return numbered;
}

/// The array of an .npy file's content.
absl::StatusOr<Array> ArrayOf(const std::string& origin, absl::Span<const std::uint8_t> content,
                              std::shared_ptr<const void> owner) {
  if (content.empty()) return absl::InvalidArgumentError(absl::StrCat(origin, " is empty"));
  absl::StatusOr<mpc::internal::NpyLayout> layout = mpc::internal::ParseNpyLayout(content, origin);
  if (!layout.ok()) return layout.status();
  return Array{origin, layout->spec, layout->fortran_order, content.subspan(layout->elements_begin), std::move(owner)};
}

absl::StatusOr<Array> ReadNpy(const std::string& path, bool mapped) {
  if (mapped) {
    absl::StatusOr<std::shared_ptr<const internal::MappedFile>> file = internal::MappedFile::Open(path);
    if (!file.ok()) return file.status();
    const absl::Span<const std::uint8_t> content = (*file)->content();
    return ArrayOf(path, content, *std::move(file));
  }
  absl::StatusOr<std::vector<std::uint8_t>> content = runtime::ReadFileContent(path);
  if (!content.ok()) return content.status();
  auto owner = std::make_shared<const std::vector<std::uint8_t>>(*std::move(content));
  const absl::Span<const std::uint8_t> bytes = *owner;
  return ArrayOf(path, bytes, std::move(owner));
}

bool IsArchive(const std::string& path) { return path.ends_with(".npz"); }

/// The column that a member becomes.
std::string ColumnOf(const std::string& member) {
  const bool has_suffix = member.ends_with(std::string_view(kMemberSuffix.data(), kMemberSuffix.size()));
  return has_suffix ? member.substr(0, member.size() - kMemberSuffix.size()) : member;
}

Dataset FromArchive(const std::string& path, const ColumnNames& names, const NumpySlicesOptions& options) {
  if (options.mapped) {
    return Dataset(absl::InvalidArgumentError(absl::StrCat(path, ": an archive is not mapped; .npy files are")));
  }
  absl::StatusOr<std::vector<std::uint8_t>> content = runtime::ReadFileContent(path);
  if (!content.ok()) return Dataset(content.status());
  if (content->empty()) return Dataset(absl::InvalidArgumentError(absl::StrCat(path, " is empty")));
  absl::StatusOr<std::vector<internal::ArchiveMember>> members = internal::ParseArchive(*content, path);
  if (!members.ok()) return Dataset(members.status());
  auto owner = std::make_shared<const std::vector<internal::ArchiveMember>>(*std::move(members));
  ColumnNames known;
  for (const internal::ArchiveMember& member : *owner) known.push_back(ColumnOf(member.name));
  std::vector<Array> arrays;
  const ColumnNames& wanted = names.empty() ? known : names;
  for (const std::string& name : wanted) {
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) {
      return Dataset(absl::NotFoundError(
          absl::StrCat(path, ": no member '", name, "'; members are ", absl::StrJoin(known, ", "))));
    }
    const internal::ArchiveMember& member = (*owner)[static_cast<std::size_t>(found - known.begin())];
    absl::StatusOr<Array> array = ArrayOf(absl::StrCat(path, ", ", member.name), member.content, owner);
    if (!array.ok()) return Dataset(array.status());
    arrays.push_back(*std::move(array));
  }
  if (arrays.empty()) return Dataset(absl::InvalidArgumentError(absl::StrCat(path, " has no members")));
  return MakeDataset(std::move(arrays), wanted, options);
}

}  // namespace

Dataset NumpySlicesDataset(const std::vector<Tensor>& data, const ColumnNames& column_names,
                           const NumpySlicesOptions& options) {
  if (options.mapped) return Dataset(absl::InvalidArgumentError("NumpySlicesDataset maps files, not tensors"));
  std::vector<Array> arrays;
  for (std::size_t i = 0; i < data.size(); ++i) {
    const std::string origin = absl::StrCat("array ", i);
    if (!data[i].status().ok() || !data[i].concrete()) {
      return Dataset(absl::InvalidArgumentError(absl::StrCat(
          origin, " of NumpySlicesDataset: ", data[i].status().ok() ? "it has no data" : data[i].status().message())));
    }
    arrays.push_back({origin, data[i].spec(), false, data[i].bytes(), std::make_shared<const Tensor>(data[i])});
  }
  return MakeDataset(std::move(arrays), NamesOr(column_names, data.size()), options);
}

Dataset NumpySlicesDataset(const std::string& path, const ColumnNames& column_names,
                           const NumpySlicesOptions& options) {
  if (IsArchive(path)) return FromArchive(path, column_names, options);
  absl::StatusOr<Array> array = ReadNpy(path, options.mapped);
  if (!array.ok()) return Dataset(array.status());
  return MakeDataset({*std::move(array)}, NamesOr(column_names, 1), options);
}

}  // namespace mpc::data
