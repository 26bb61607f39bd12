#include "frontend/data/csv.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/readers.h"
#include "tests/fuzz/verdict.h"

namespace mpc::fuzz {
namespace {

void ReadWith(const std::string& path, const data::CsvOptions& options) {
  const data::Dataset dataset = data::CSVDataset({path}, options);
  if (!dataset.status().ok()) return RequireRefusal(dataset.status(), path);
  const absl::StatusOr<std::int64_t> rows = dataset.size();
  Require(rows.ok() && *rows > 0, "a data set has no rows");
  auto iterator = dataset.NewIterator(0);
  Require(iterator.ok(), "the rows cannot be read");
  std::int64_t count = 0;
  for (data::Row row;; ++count) {
    const absl::StatusOr<bool> more = (*iterator)->Next(&row);
    Require(more.ok(), "a row that was accepted is an error: " + more.status().ToString());
    if (!*more) break;
    Require(row.size() == dataset.column_names().size(), "a row has another number of columns");
    for (const Tensor& value : row) RequireReadable(value.bytes());
  }
  Require(count == *rows, "there are not as many rows as the size says");
}

}  // namespace

void ReadCsv(absl::Span<const std::uint8_t> input) {
  static const MemoryFile file;
  file.Write(input);
  ReadWith(file.path(), {});
  ReadWith(file.path(), {.column_defaults = {{DType::kU8}, {DType::kI32, 7}}, .column_names = {"text", "number"}});
}

}  // namespace mpc::fuzz
