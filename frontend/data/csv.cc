#include "frontend/data/csv.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "frontend/data/gzip_file.h"
#include "frontend/data/held_value.h"
#include "frontend/data/stages.h"

namespace mpc::data {
namespace {

constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";

/// Reads records of fields.
class CsvReader {
 public:
  CsvReader(absl::string_view text, char delimiter) : text_(text), delimiter_(delimiter) {
    if (text_.substr(0, kByteOrderMark.size()) == kByteOrderMark) text_.remove_prefix(kByteOrderMark.size());
  }

  /// The line where the last record began, from 1.
  std::int64_t line() const { return line_; }

  /// False at the end of the text.
  absl::StatusOr<bool> Next(std::vector<std::string>* fields) {
    fields->clear();
    while (AcceptNewline()) continue;
    line_ = next_line_;
    if (text_.empty()) return false;
    for (;;) {
      absl::StatusOr<std::string> field = text_.front() == '"' ? QuotedField() : PlainField();
      if (!field.ok()) return field.status();
      fields->push_back(*std::move(field));
      if (text_.empty() || AcceptNewline()) return true;
      // What ends a field is a delimiter, a newline or the end.
      text_.remove_prefix(1);
      if (text_.empty()) {
        fields->emplace_back();
        return true;
      }
    }
  }

 private:
  bool AcceptNewline() {
    const std::size_t bytes = text_.substr(0, 2) == "\r\n" ? 2 : text_.substr(0, 1) == "\n" ? 1 : 0;
    text_.remove_prefix(bytes);
    next_line_ += bytes != 0 ? 1 : 0;
    return bytes != 0;
  }

  std::string PlainField() {
    std::size_t end = 0;
    while (end < text_.size() && text_[end] != delimiter_ && text_[end] != '\n') ++end;
    absl::string_view field = text_.substr(0, end);
    const bool ends_line = end == text_.size() || text_[end] == '\n';
    if (ends_line && !field.empty() && field.back() == '\r') field.remove_suffix(1);
    text_.remove_prefix(field.size());
    if (end == field.size() + 1 && text_.size() == 1) text_.remove_prefix(1);  // a return without newline at the end
    return std::string(field);
  }

  absl::StatusOr<std::string> QuotedField() {
    std::string field;
    for (text_.remove_prefix(1); !text_.empty(); text_.remove_prefix(1)) {
      if (text_.front() == '\n') ++next_line_;
      if (text_.front() == '"') {
        text_.remove_prefix(1);
        if (text_.empty() || text_.front() != '"') return EndQuoted(std::move(field));
      }
      field.push_back(text_.front());
    }
    return absl::InvalidArgumentError("a quote is not closed");
  }

  absl::StatusOr<std::string> EndQuoted(std::string field) {
    if (text_ == "\r") text_.remove_prefix(1);  // a return without newline at the end
    const bool ends =
        text_.empty() || text_.front() == delimiter_ || text_.front() == '\n' || text_.substr(0, 2) == "\r\n";
    if (ends) return field;
    return absl::InvalidArgumentError(absl::StrCat("text follows the quoted field \"", field, "\""));
  }

  absl::string_view text_;
  char delimiter_;
  std::int64_t line_ = 1;
  std::int64_t next_line_ = 1;
};

template <typename T>
void Append(T value, std::vector<std::uint8_t>* bytes) {
  const auto* begin = reinterpret_cast<const std::uint8_t*>(&value);
  bytes->insert(bytes->end(), begin, begin + sizeof(T));
}

bool IsHexadecimal(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "-")) absl::ConsumePrefix(&text, "+");
  return absl::StartsWithIgnoreCase(text, "0x");
}

bool AppendFloating(const std::string& text, DType dtype, std::vector<std::uint8_t>* bytes) {
  double value = 0;
  if (IsHexadecimal(text) || !absl::SimpleAtod(text, &value)) return false;
  // A number beyond f64 is read as infinity; a text that means infinity has no digits.
  if (std::isinf(value) && std::any_of(text.begin(), text.end(), absl::ascii_isdigit)) return false;
  if (dtype == DType::kF64) {
    Append(value, bytes);
    return true;
  }
  const auto narrow = static_cast<float>(value);
  if (std::isfinite(value) && !std::isfinite(narrow)) return false;
  Append(narrow, bytes);
  return true;
}

template <typename Integer>
bool AppendInteger(const std::string& text, std::vector<std::uint8_t>* bytes) {
  Integer value = 0;
  if (!absl::SimpleAtoi(text, &value)) return false;
  Append(value, bytes);
  return true;
}

/// False if `text` is no value of the type.
bool AppendValue(const std::string& text, DType dtype, std::vector<std::uint8_t>* bytes) {
  if (dtype == DType::kI32) return AppendInteger<std::int32_t>(text, bytes);
  if (dtype == DType::kI64) return AppendInteger<std::int64_t>(text, bytes);
  if (dtype != DType::kBool) return AppendFloating(text, dtype, bytes);
  bool value = false;
  if (!absl::SimpleAtob(text, &value)) return false;
  Append(static_cast<std::uint8_t>(value), bytes);
  return true;
}

/// The columns of all files, as they are gathered.
struct Table {
  ColumnNames names;
  std::vector<CsvColumn> columns;
  std::vector<std::vector<std::uint8_t>> values;  ///< the elements of each column
  std::vector<std::vector<std::size_t>> ends;     ///< where the bytes of each row end, of columns of text
  std::int64_t rows = 0;

  std::int64_t size() const { return rows; }
  Row operator[](std::size_t index) const {
    Row row;
    for (std::size_t i = 0; i < columns.size(); ++i) row.push_back(Value(i, index));
    return row;
  }

 private:
  Tensor Value(std::size_t column, std::size_t row) const {
    const DType dtype = columns[column].dtype;
    if (dtype != DType::kU8) {
      const std::size_t bytes = ElementSize(dtype);
      return Tensor::FromBytes({dtype, {}}, values[column].data() + row * bytes, bytes);
    }
    const std::size_t begin = row == 0 ? 0 : ends[column][row - 1];
    const std::size_t bytes = ends[column][row] - begin;
    return Tensor::FromBytes({dtype, {static_cast<std::int64_t>(bytes)}}, values[column].data() + begin, bytes);
  }
};

absl::Status AppendField(const std::string& field, std::size_t column, bool refuse_nan, Table* table) {
  const CsvColumn& type = table->columns[column];
  if (type.dtype == DType::kU8) {
    table->values[column].insert(table->values[column].end(), field.begin(), field.end());
    table->ends[column].push_back(table->values[column].size());
    return absl::OkStatus();
  }
  const auto error = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("column '", table->names[column], "': ", what));
  };
  std::string text(absl::StripAsciiWhitespace(field));
  if (text.empty()) {
    if (!type.default_value) return error("the value is missing, and the column has no default");
    const Tensor value = Tensor::Full({}, *type.default_value, type.dtype);
    table->values[column].insert(table->values[column].end(), value.bytes().begin(), value.bytes().end());
    return absl::OkStatus();
  }
  if (!AppendValue(text, type.dtype, &table->values[column])) {
    return error(absl::StrCat("'", text, "' is not ", std::string(DTypeName(type.dtype))));
  }
  double value = 0;
  if (refuse_nan && IsFloating(type.dtype) && absl::SimpleAtod(text, &value) && std::isnan(value)) {
    return error(absl::StrCat("'", text, "' is refused; accepted are numbers"));
  }
  return absl::OkStatus();
}

/// Fixes names and types with the first file, and compares the headers of others.
absl::Status SetColumns(const ColumnNames& names, const CsvOptions& options, Table* table) {
  if (!table->names.empty()) {
    if (names == table->names) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("the columns are ", absl::StrJoin(names, ", "),
                                                   ", but those of the first file are ",
                                                   absl::StrJoin(table->names, ", ")));
  }
  if (absl::Status status = internal::CheckColumnNames(names); !status.ok()) return status;
  table->names = names;
  table->columns = options.column_defaults;
  if (table->columns.empty()) table->columns.resize(names.size());
  table->values.resize(names.size());
  table->ends.resize(names.size());
  if (table->columns.size() == names.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("column_defaults has ", table->columns.size(),
                                                 " entries, but there are ", names.size(), " columns"));
}

absl::Status AppendRecord(const std::vector<std::string>& fields, bool refuse_nan, Table* table) {
  if (fields.size() != table->names.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(fields.size(), " fields, but there are ", table->names.size(), " columns"));
  }
  for (std::size_t column = 0; column < fields.size(); ++column) {
    if (absl::Status status = AppendField(fields[column], column, refuse_nan, table); !status.ok()) return status;
  }
  ++table->rows;
  return absl::OkStatus();
}

absl::Status ReadRecords(CsvReader& reader, const CsvOptions& options, Table* table) {
  std::vector<std::string> fields;
  if (options.column_names.empty()) {
    absl::StatusOr<bool> more = reader.Next(&fields);
    if (!more.ok()) return more.status();
    for (std::string& name : fields) name = std::string(absl::StripAsciiWhitespace(name));
  }
  const ColumnNames& names = options.column_names.empty() ? fields : options.column_names;
  if (absl::Status status = SetColumns(names, options, table); !status.ok()) return status;
  for (;;) {
    absl::StatusOr<bool> more = reader.Next(&fields);
    if (!more.ok()) return more.status();
    if (!*more) return absl::OkStatus();
    if (absl::Status status = AppendRecord(fields, options.refuse_nan, table); !status.ok()) return status;
  }
}

absl::Status ReadFile(const std::string& path, const CsvOptions& options, Table* table) {
  absl::StatusOr<std::vector<std::uint8_t>> content = internal::ReadMaybeGzipped(path);
  if (!content.ok()) return content.status();
  const absl::string_view text(reinterpret_cast<const char*>(content->data()), content->size());
  if (absl::StripAsciiWhitespace(text).empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is empty: no columns"));
  }
  CsvReader reader(text, options.field_delim);
  const std::int64_t rows_before = table->rows;
  if (absl::Status status = ReadRecords(reader, options, table); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ", line ", reader.line(), ": ", status.message()));
  }
  if (table->rows > rows_before) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, " has a line of column names and no rows"));
}

absl::Status CheckOptions(const std::vector<std::string>& files, const CsvOptions& options) {
  if (files.empty()) return absl::InvalidArgumentError("CSVDataset needs a file");
  if (options.field_delim == '"' || options.field_delim == '\n' || options.field_delim == '\r') {
    return absl::InvalidArgumentError("CSVDataset: field_delim is a quote or a newline");
  }
  for (std::size_t i = 0; i < options.column_defaults.size(); ++i) {
    const CsvColumn& column = options.column_defaults[i];
    const DType accepted[] = {DType::kF32, DType::kF64, DType::kI32, DType::kI64, DType::kBool, DType::kU8};
    if (column.dtype == DType::kU8 && column.default_value) {
      return absl::InvalidArgumentError("CSVDataset: a column of text has no default value; a missing text is empty");
    }
    if (std::find(std::begin(accepted), std::end(accepted), column.dtype) == std::end(accepted)) {
      return absl::InvalidArgumentError(absl::StrCat("CSVDataset: a column of type ",
                                                     std::string(DTypeName(column.dtype)),
                                                     "; accepted are f32, f64, i32, i64, i1 and u8"));
    }
    const std::string where = absl::StrCat("CSVDataset: the default_value of column_defaults[", i, "]");
    absl::Status held = internal::CheckHeld(where, column.default_value.value_or(0), column.dtype);
    if (!held.ok()) return held;
    if (options.refuse_nan && column.default_value && std::isnan(*column.default_value)) {
      return absl::InvalidArgumentError(absl::StrCat(where, " is nan, which refuse_nan refuses; accepted are numbers"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

Dataset CSVDataset(const std::vector<std::string>& dataset_files, const CsvOptions& options) {
  if (absl::Status status = CheckOptions(dataset_files, options); !status.ok()) return Dataset(std::move(status));
  Table table;
  for (const std::string& path : dataset_files) {
    if (absl::Status status = ReadFile(path, options, &table); !status.ok()) return Dataset(std::move(status));
  }
  ColumnNames names = table.names;
  return GeneratorDataset(std::move(table), std::move(names), options.sampling);
}

}  // namespace mpc::data
