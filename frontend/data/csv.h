// Comma-separated values. Names are MindSpore's; `refuse_nan` has no counterpart there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frontend/data/dataset.h"
#include "frontend/data/sampler.h"

namespace mpc::data {

/// The type of a column, and what a missing value becomes. Types are f32, f64, i32, i64 and i1, and u8 for text.
struct CsvColumn {
  DType dtype = DType::kF32;
  std::optional<double> default_value;  ///< none: a missing value is an error; text has none, and is then empty
};

struct CsvOptions {
  char field_delim = ',';
  /// One entry a column; empty: all are f32 without default. MindSpore's default is strings.
  std::vector<CsvColumn> column_defaults;
  ColumnNames column_names;  ///< empty: the first line of each file names the columns
  bool refuse_nan = false;   ///< whether a NaN is an error
  SamplingOptions sampling;
};

/// A scalar for each column, or the bytes of a field (u8 [bytes]) where the column is text, spaces included. Rows stand
/// in the order of files and lines. MindSpore shuffles by default. Files are plain or
/// gzip-compressed and are held in memory. Fields may stand in double quotes, within which a quote is doubled. Empty
/// lines are left out, and a byte order mark is too.
///
/// Errors (in the data set's status) name file, line and column. A file is missing, empty or without rows. Two
/// columns have one name, or one has none. Lines have more or fewer fields than columns. Files have other headers than
/// the first. A value is missing without a default, or its text is not of the column's type. A default is one that the
/// column's type cannot hold, as 0.5 of i32. A quote is not closed. A NaN is one where it is refused.
Dataset CSVDataset(const std::vector<std::string>& dataset_files, const CsvOptions& options = {});

}  // namespace mpc::data
