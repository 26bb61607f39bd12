// What Map and Filter call: functions of one column or of several, with or without the row's position.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "frontend/data/dataset_node.h"
#include "frontend/data/skipped_rows.h"
#include "frontend/graph/tensor.h"

namespace mpc::data {

/// Changes one column of one row (one sample before Batch, one batch after it). A function that returns a plain Tensor
/// fits. With Prefetch or workers it is called on another thread, and by several workers at once.
using MapFunction = std::function<absl::StatusOr<Tensor>(const Tensor&)>;

/// The position of a row in the input of a Map or Filter.
struct RowPosition {
  std::int64_t epoch = 0;
  std::int64_t row = 0;  ///< index within the epoch
};

/// Like MapFunction, for a change that depends on the position. Random augmentation that draws from (seed, position)
/// gives the same rows again when training resumes within an epoch, and with any number of workers.
using PositionMapFunction = std::function<absl::StatusOr<Tensor>(const Tensor&, const RowPosition&)>;

/// Changes several columns at once: the tensors of the input columns, in their order, become those of the output.
using RowFunction = std::function<absl::StatusOr<Row>(const Row&)>;
using PositionRowFunction = std::function<absl::StatusOr<Row>(const Row&, const RowPosition&)>;

/// What reaches the consumer where a user's function throws. `what()` begins with column and row. The exception that
/// was thrown is nested: `std::rethrow_if_nested` throws it again.
class MapException : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace internal {

template <typename Function>
concept FunctionOfTensor =
    std::is_invocable_v<Function&, const Tensor&> || std::is_invocable_v<Function&, const Tensor&, const RowPosition&>;
template <typename Function>
concept FunctionOfRow =
    std::is_invocable_v<Function&, const Row&> || std::is_invocable_v<Function&, const Row&, const RowPosition&>;
template <typename Function>
concept FunctionOfColumns = FunctionOfTensor<Function> || FunctionOfRow<Function>;

/// `function` as one of all its columns and their position, null if `function` is null. `Result` is what it returns in
/// a StatusOr, and `Given` what it takes: Tensor or Row.
template <typename Result, typename Given, typename Function>
std::function<absl::StatusOr<Result>(const Given&, const RowPosition&)> WithPosition(Function function) {
  if constexpr (std::is_invocable_v<Function&, const Given&>) {
    std::function<absl::StatusOr<Result>(const Given&)> plain(std::move(function));
    if (plain == nullptr) return nullptr;
    return [plain = std::move(plain)](const Given& given, const RowPosition&) { return plain(given); };
  } else {
    return std::function<absl::StatusOr<Result>(const Given&, const RowPosition&)>(std::move(function));
  }
}

}  // namespace internal

/// A function of columns in one form: `Result` is Row for Map and bool for Filter. Functions of a `const Tensor&` take
/// one column, functions of a `const Row&` take any number. Both may take a `const RowPosition&` too. They return the
/// result or a StatusOr of it; those of one tensor return a Tensor in place of a Row.
template <typename Result>
class ColumnFunction {
 public:
  template <typename Function>
  requires internal::FunctionOfColumns<Function> ColumnFunction(Function function)  // NOLINT: lambdas convert
      : one_column_(internal::FunctionOfTensor<Function>) {
    if constexpr (internal::FunctionOfTensor<Function>) {
      positional_ = !std::is_invocable_v<Function&, const Tensor&>;
      using Given = std::conditional_t<std::is_same_v<Result, Row>, Tensor, Result>;
      auto of_tensor = internal::WithPosition<Given, Tensor>(std::move(function));
      if (of_tensor != nullptr) function_ = OfOneColumn<Given>(std::move(of_tensor));
    } else {
      positional_ = !std::is_invocable_v<Function&, const Row&>;
      function_ = internal::WithPosition<Result, Row>(std::move(function));
    }
  }

  bool defined() const { return function_ != nullptr; }
  /// Whether the result depends on the position.
  bool positional() const { return positional_; }
  /// Whether it takes exactly one column.
  bool one_column() const { return one_column_; }
  absl::StatusOr<Result> Apply(const Row& row, const RowPosition& position) const { return function_(row, position); }

 private:
  using Function = std::function<absl::StatusOr<Result>(const Row&, const RowPosition&)>;

  template <typename Given>
  static Function OfOneColumn(std::function<absl::StatusOr<Given>(const Tensor&, const RowPosition&)> function) {
    return [function = std::move(function)](const Row& row, const RowPosition& position) -> absl::StatusOr<Result> {
      if (row.size() != 1) {
        return absl::InvalidArgumentError(absl::StrCat("a function of one tensor is given ", row.size()));
      }
      absl::StatusOr<Given> made = function(row[0], position);
      if constexpr (std::is_same_v<Given, Result>) {
        return made;
      } else {
        if (!made.ok()) return made.status();
        return Result{*std::move(made)};
      }
    };
  }

  Function function_;
  bool positional_ = false;
  bool one_column_;
};

using MapOperation = ColumnFunction<Row>;
using RowPredicate = ColumnFunction<bool>;

/// One operation, or a list in braces that is applied in order. The first is given the input columns, and each other
/// one what the one before it returned.
class MapOperations {
 public:
  template <typename Function>
  requires internal::FunctionOfColumns<Function> MapOperations(Function function)
      : operations_{MapOperation(std::move(function))} {}  // NOLINT: lambdas convert
  MapOperations(std::initializer_list<MapOperation> operations) : operations_(operations) {}
  MapOperations(std::vector<MapOperation> operations) : operations_(std::move(operations)) {}  // NOLINT: lists convert

  const std::vector<MapOperation>& operations() const { return operations_; }

 private:
  std::vector<MapOperation> operations_;
};

/// The name of a column, or a list of names in braces.
class InputColumns {
 public:
  InputColumns(const char* name) : names_{name} {}                           // NOLINT: names convert
  InputColumns(std::string_view name) : names_{std::string(name)} {}         // NOLINT: names convert
  InputColumns(const std::string& name) : names_{name} {}                    // NOLINT: names convert
  InputColumns(std::initializer_list<std::string> names) : names_(names) {}  // NOLINT: lists convert
  InputColumns(ColumnNames names) : names_(std::move(names)) {}              // NOLINT: lists convert

  const ColumnNames& names() const { return names_; }

 private:
  ColumnNames names_;
};

struct MapOptions {
  /// Threads that call the operations; 0: the consumer's thread calls them. MindSpore's default is 8 threads. Rows keep
  /// their order, and at most twice as many rows as workers are read ahead. The operations must be safe to call from
  /// several threads at once; the rows before them are read by one thread at a time.
  std::int64_t num_parallel_workers = 0;
  /// Names of the results, as many as the last operation returns; empty: those of the input columns. As many names as
  /// input columns take their places. Otherwise the results come first, and the columns that are no input follow.
  ColumnNames output_columns;
  /// Where it is given, a row is left out and counted there on which an operation returns an error. Decode returns one
  /// for a damaged picture. Only a run can tell the size of such a data set. Exceptions and a wrong number of results
  /// stay errors, and so does an epoch of which no row is left. Null: each error ends the epoch.
  std::shared_ptr<SkippedRows> skipped_rows;
};

}  // namespace mpc::data
