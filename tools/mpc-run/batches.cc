#include "tools/mpc-run/batches.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/data/text.h"
#include "tools/support/digit_data.h"
#include "tools/support/synthetic_data.h"
#include "tools/support/text_data.h"

namespace mpc::tools {
namespace {

DigitDataOptions DataOptions(const RunOptions& options, std::uint64_t seed, std::int64_t batch_size) {
  return {.data = options.data,
          .directory = options.data_directory,
          .shift = options.shift.value_or(DefaultShift(options.data)),
          .batch_size = batch_size,
          .seed = static_cast<std::int64_t>(seed),
          .drop_remainder = true};
}

std::string SpecList(const std::vector<TensorSpec>& specs) {
  return absl::StrJoin(specs, ", ",
                       [](std::string* out, const TensorSpec& spec) { absl::StrAppend(out, spec.ToString()); });
}

/// Errors: the tensors of `row` are not the Program's inputs.
absl::Status CheckFits(const RunOptions& options, const data::Row& row, const runtime::Program& program) {
  const std::vector<TensorSpec> wanted = InputSpecs(program);
  std::vector<TensorSpec> given;
  for (const Tensor& tensor : row) given.push_back(tensor.spec());
  if (given == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--data=", options.data, " gives ", SpecList(given), ", but \"",
                                                 program.name, "\" of ", options.path, " takes ", SpecList(wanted),
                                                 "; --data=synthetic fits every Program"));
}

/// The windows that `program` takes. Errors: it takes no windows of bytes.
absl::StatusOr<TextDataOptions> TextOptionsFor(const RunOptions& options, const runtime::Program& program,
                                               std::uint64_t seed, std::optional<std::int64_t> classes) {
  const TensorSpec tokens = InputSpecs(program)[0];
  if (tokens.dtype != DType::kI32 || tokens.shape.size() != 2 || tokens.shape[1] < 1) {
    return absl::InvalidArgumentError(absl::StrCat("--data=text gives windows of bytes, i32 [batch, tokens], but \"",
                                                   program.name, "\" of ", options.path, " takes ",
                                                   SpecList(InputSpecs(program))));
  }
  if (classes.value_or(data::kByteVocabulary) < data::kByteVocabulary) {
    return absl::InvalidArgumentError(absl::StrCat("--data=text has ", data::kByteVocabulary, " tokens, the bytes; ",
                                                   options.path, " knows ", *classes));
  }
  return TextDataOptions{.path = options.text_path,
                         .tokens = tokens.shape[1],
                         .batch_size = tokens.shape[0],
                         .steps = std::max<std::int64_t>(options.steps, 1),
                         .seed = static_cast<std::int64_t>(seed)};
}

/// The first extent of the first input. Errors: there is none.
absl::StatusOr<std::int64_t> BatchSizeOf(const runtime::Program& program) {
  const std::vector<TensorSpec> specs = InputSpecs(program);
  if (!specs.empty() && !specs[0].shape.empty() && specs[0].shape[0] > 0) return specs[0].shape[0];
  return absl::InvalidArgumentError(absl::StrCat("\"", program.name, "\" reads no batches"));
}

class DatasetBatches : public BatchSource {
 public:
  explicit DatasetBatches(data::Dataset dataset) : dataset_(std::move(dataset)) {}

  absl::StatusOr<data::Row> Next() override {
    data::Row row;
    // An epoch that is at its end makes room for the next one; a second epoch without a row has none.
    for (int begun = 0; begun < 2; ++begun) {
      if (rows_ == nullptr) {
        absl::StatusOr<std::unique_ptr<data::DatasetIterator>> rows = dataset_.NewIterator(epoch_++);
        if (!rows.ok()) return rows.status();
        rows_ = *std::move(rows);
      }
      absl::StatusOr<bool> more = rows_->Next(&row);
      if (!more.ok()) return more.status();
      if (*more) return row;
      rows_ = nullptr;
    }
    return absl::FailedPreconditionError("the data have no batch");
  }

 private:
  data::Dataset dataset_;
  std::unique_ptr<data::DatasetIterator> rows_;
  std::int64_t epoch_ = 0;
};

absl::StatusOr<std::vector<data::Row>> SyntheticRows(const runtime::Program& program, std::uint64_t seed,
                                                     std::optional<std::int64_t> classes) {
  return MakeSyntheticBatches({.columns = InputSpecs(program),
                               .names = {},
                               .classes = classes.value_or(2),
                               .seed = static_cast<std::int64_t>(seed)});
}

class SyntheticBatches : public BatchSource {
 public:
  explicit SyntheticBatches(std::vector<data::Row> rows) : rows_(std::move(rows)) {}
  absl::StatusOr<data::Row> Next() override { return rows_[next_++ % rows_.size()]; }

 private:
  std::vector<data::Row> rows_;
  std::size_t next_ = 0;
};

/// The next rows, one after the other; those that are missing at the end repeat the last one. No rows: the end.
absl::StatusOr<TestBatch> NextTestBatch(data::DatasetIterator& rows, std::int64_t batch_size) {
  std::vector<std::uint8_t> samples, labels;
  TestBatch batch;
  data::Row row;
  for (; batch.rows < batch_size; ++batch.rows) {
    absl::StatusOr<bool> more = rows.Next(&row);
    if (!more.ok()) return more.status();
    if (!*more) break;
    samples.insert(samples.end(), row[0].bytes().begin(), row[0].bytes().end());
    labels.insert(labels.end(), row[1].bytes().begin(), row[1].bytes().end());
  }
  if (batch.rows == 0) return batch;
  // At the end of the rows `row` is left as it is.
  const std::vector<std::uint8_t> last(row[0].bytes().begin(), row[0].bytes().end());
  for (std::int64_t i = batch.rows; i < batch_size; ++i) samples.insert(samples.end(), last.begin(), last.end());
  const auto stacked = [](const Tensor& one, std::int64_t count, const std::vector<std::uint8_t>& bytes) {
    Shape shape = one.shape();
    shape.insert(shape.begin(), count);
    return Tensor::FromBytes({one.dtype(), shape}, bytes.data(), bytes.size());
  };
  batch.inputs = {stacked(row[0], batch_size, samples)};
  batch.labels = stacked(row[1], batch.rows, labels);
  return batch;
}

absl::StatusOr<data::Dataset> TrainingBatches(const RunOptions& options, const runtime::Program& program,
                                              std::uint64_t seed, std::optional<std::int64_t> classes) {
  const absl::StatusOr<std::int64_t> batch_size = BatchSizeOf(program);
  if (!batch_size.ok()) return batch_size.status();
  if (options.data != "text") return LoadTrainingBatches(DataOptions(options, seed, *batch_size));
  const absl::StatusOr<TextDataOptions> text = TextOptionsFor(options, program, seed, classes);
  if (!text.ok()) return text.status();
  return LoadTextRows(*text, data::Split::kTrain).Batch(*batch_size);
}

absl::StatusOr<data::Dataset> TestRows(const RunOptions& options, const runtime::Program& program, std::uint64_t seed,
                                       std::optional<std::int64_t> classes) {
  const absl::StatusOr<std::int64_t> batch_size = BatchSizeOf(program);
  if (!batch_size.ok()) return batch_size.status();
  if (options.data != "text") return LoadDigitRows(DataOptions(options, seed, *batch_size), data::Split::kTest);
  const absl::StatusOr<TextDataOptions> text = TextOptionsFor(options, program, seed, classes);
  if (!text.ok()) return text.status();
  return LoadTextRows(*text, data::Split::kTest);
}

}  // namespace

std::vector<TensorSpec> InputSpecs(const runtime::Program& program) {
  std::vector<TensorSpec> specs;
  for (const runtime::NamedValue& input : program.inputs) specs.push_back(program.values[input.value].spec);
  return specs;
}

absl::StatusOr<std::unique_ptr<BatchSource>> MakeTrainingBatches(const RunOptions& options,
                                                                 const runtime::Program& program, std::uint64_t seed,
                                                                 std::optional<std::int64_t> classes) {
  if (options.data == "synthetic") {
    absl::StatusOr<std::vector<data::Row>> rows = SyntheticRows(program, seed, classes);
    if (!rows.ok()) return rows.status();
    return std::make_unique<SyntheticBatches>(*std::move(rows));
  }
  const absl::StatusOr<data::Dataset> dataset = TrainingBatches(options, program, seed, classes);
  if (!dataset.ok()) return dataset.status();
  absl::StatusOr<data::Row> first = DatasetBatches(*dataset).Next();
  if (!first.ok()) return first.status();
  if (absl::Status status = CheckFits(options, *first, program); !status.ok()) return status;
  return std::make_unique<DatasetBatches>(dataset->Prefetch(2 * options.steps_per_launch));
}

absl::StatusOr<std::vector<TestBatch>> LoadTestBatches(const RunOptions& options, const runtime::Program& program,
                                                       std::uint64_t seed, std::optional<std::int64_t> classes) {
  const absl::StatusOr<std::int64_t> batch_size = BatchSizeOf(program);
  if (!batch_size.ok()) return batch_size.status();
  std::vector<TestBatch> batches;
  if (options.data == "synthetic") {
    absl::StatusOr<std::vector<data::Row>> rows = SyntheticRows(program, seed, classes);
    if (!rows.ok()) return rows.status();
    for (data::Row& row : *rows) batches.push_back({std::move(row), {}, *batch_size});
    return batches;
  }
  const absl::StatusOr<data::Dataset> dataset = TestRows(options, program, seed, classes);
  if (!dataset.ok()) return dataset.status();
  absl::StatusOr<std::unique_ptr<data::DatasetIterator>> rows = dataset->NewIterator(0);
  if (!rows.ok()) return rows.status();
  for (;;) {
    absl::StatusOr<TestBatch> batch = NextTestBatch(**rows, *batch_size);
    if (!batch.ok()) return batch.status();
    if (batch->rows == 0) break;
    if (absl::Status status = CheckFits(options, batch->inputs, program); !status.ok()) return status;
    batches.push_back(*std::move(batch));
  }
  return batches;
}

}  // namespace mpc::tools
