#include "tools/support/digit_data.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/data/digits.h"
#include "frontend/data/find_data.h"
#include "frontend/data/mnist.h"
#include "tools/support/random_shift.h"

namespace mpc::tools {
namespace {

absl::StatusOr<data::Dataset> LoadMnist(const DigitDataOptions& options, data::Split split) {
  data::Dataset dataset = data::Mnist(split, {.directory = options.directory});
  if (dataset.status().code() == absl::StatusCode::kNotFound) {
    return absl::NotFoundError(
        absl::StrCat(dataset.status().message(), "; name the folder that holds MNIST's files with --data-dir=FOLDER"));
  }
  if (!dataset.status().ok()) return dataset.status();
  return dataset;
}

absl::StatusOr<data::Dataset> LoadDigits(const DigitDataOptions& options, data::Split split) {
  data::DigitsOptions digits;
  if (!options.directory.empty()) {
    absl::StatusOr<std::string> path = data::FindDataFile({"digits.csv.gz", "digits.csv"}, {options.directory});
    if (!path.ok()) return path.status();
    digits.path = *std::move(path);
  }
  return data::Digits(split, digits);
}

}  // namespace

std::string TestSetNote(const std::string& data, const std::string& directory) {
  if (data != "mnist" || !data::MnistDividesTestSet({.directory = directory})) return "";
  return " rows of t10k, its last fifth: MNIST's train files are missing, and the first four fifths are trained on";
}

std::int64_t DefaultShift(const std::string& data) { return data == "digits" ? 2 : 0; }

absl::StatusOr<data::Dataset> LoadDigitRows(const DigitDataOptions& options, data::Split split) {
  return options.data == "mnist" ? LoadMnist(options, split) : LoadDigits(options, split);
}

absl::StatusOr<data::Dataset> LoadTrainingBatches(const DigitDataOptions& options) {
  absl::StatusOr<data::Dataset> train = LoadDigitRows(options, data::Split::kTrain);
  if (!train.ok()) return train.status();
  absl::StatusOr<std::int64_t> rows = train->size();
  if (!rows.ok()) return rows.status();
  if (options.trains && options.batch_size > *rows) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch size ", options.batch_size, " is larger than the training set (", *rows, " rows)"));
  }
  const auto seed = static_cast<std::uint64_t>(options.seed);
  data::Dataset shuffled = train->Shuffle(seed);
  if (options.shift > 0) shuffled = shuffled.Map(RandomShift(options.shift, seed, *rows), "image");
  return shuffled.Batch(options.batch_size, options.drop_remainder && options.trains);
}

}  // namespace mpc::tools
