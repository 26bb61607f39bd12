#include "frontend/data/text.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "frontend/data/find_data.h"
#include "frontend/data/gzip_file.h"
#include "frontend/data/uniform_draw.h"

namespace mpc::data {
namespace {

/// Keeps windows apart from shuffles and dropout masks of the same seed.
constexpr std::uint32_t kWindowStream = 0x74657874;

using Bytes = std::vector<std::uint8_t>;

/// The window that begins at `begin`, and the same one byte later.
Row WindowAt(const Bytes& text, std::int64_t begin, std::int64_t tokens) {
  const auto first = text.begin() + begin;
  const std::vector<std::int32_t> bytes(first, first + tokens + 1);
  const absl::Span<const std::int32_t> window(bytes);
  const auto length = static_cast<std::size_t>(tokens);
  return {Tensor::From(window.first(length), {tokens}), Tensor::From(window.subspan(1), {tokens})};
}

struct ValidationWindows {
  Bytes text;
  std::int64_t tokens = 0;
  std::int64_t size() const { return (static_cast<std::int64_t>(text.size()) - 1) / tokens; }
  Row operator[](std::size_t index) const { return WindowAt(text, static_cast<std::int64_t>(index) * tokens, tokens); }
};

/// Windows at random places, others in every epoch.
class TrainingWindows : public internal::DatasetNode {
 public:
  TrainingWindows(Bytes text, std::int64_t tokens, std::int64_t windows, std::uint64_t seed)
      : DatasetNode({"data", "label"}), text_(std::move(text)), tokens_(tokens), windows_(windows), seed_(seed) {}

  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewIterator(std::int64_t epoch) const override {
    // Without a list of all windows: an epoch may have more of them than memory holds.
    return std::make_unique<Iterator>(Shared(), epoch, windows_, std::nullopt);
  }
  absl::StatusOr<std::int64_t> size() const override { return windows_; }
  bool size_is_known() const override { return true; }
  bool ordered_access() const override { return true; }
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewOrderedIterator(std::int64_t epoch,
                                                                      std::vector<std::int64_t> order) const override {
    const auto rows = static_cast<std::int64_t>(order.size());
    return std::make_unique<Iterator>(Shared(), epoch, rows, std::move(order));
  }

 private:
  class Iterator : public DatasetIterator {
   public:
    /// `rows` windows: those of `order`, or the first ones.
    Iterator(std::shared_ptr<const TrainingWindows> windows, std::int64_t epoch, std::int64_t rows,
             std::optional<std::vector<std::int64_t>> order)
        : windows_(std::move(windows)), epoch_(epoch), rows_(rows), order_(std::move(order)) {}
    absl::StatusOr<bool> Next(Row* row) override {
      if (next_ == rows_) return false;
      *row = windows_->Window(epoch_, order_.has_value() ? (*order_)[static_cast<std::size_t>(next_)] : next_);
      ++next_;
      return true;
    }

   private:
    std::shared_ptr<const TrainingWindows> windows_;
    std::int64_t epoch_;
    std::int64_t rows_;
    std::optional<std::vector<std::int64_t>> order_;
    std::int64_t next_ = 0;
  };

  std::shared_ptr<const TrainingWindows> Shared() const {
    return std::static_pointer_cast<const TrainingWindows>(shared_from_this());
  }

  Row Window(std::int64_t epoch, std::int64_t row) const {
    const std::uint64_t places = text_.size() - static_cast<std::uint64_t>(tokens_);
    const std::uint64_t begin = internal::UniformBelow(places, seed_, epoch, kWindowStream, row);
    return WindowAt(text_, static_cast<std::int64_t>(begin), tokens_);
  }

  Bytes text_;
  std::int64_t tokens_;
  std::int64_t windows_;
  std::uint64_t seed_;
};

absl::StatusOr<Bytes> ReadText(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is a folder, not a file of text"));
  }
  absl::StatusOr<Bytes> text = internal::ReadMaybeGzipped(path);
  if (text.ok() && text->empty()) return absl::InvalidArgumentError(absl::StrCat(path, " is empty: no text"));
  return text;
}

absl::Status CheckOptions(const TextOptions& options) {
  if (options.tokens < 1) {
    return absl::InvalidArgumentError(absl::StrCat("tokens of a window must be at least 1, got ", options.tokens));
  }
  if (options.windows < 0) {
    return absl::InvalidArgumentError(absl::StrCat("windows of an epoch must be at least 0, got ", options.windows));
  }
  return absl::OkStatus();
}

}  // namespace

Dataset TextDataset(Split split, const TextOptions& options) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return Dataset(status);
  absl::StatusOr<std::string> path = options.path;
  if (options.path.empty()) path = FindDataFile("sonnets.txt");
  if (!path.ok()) return Dataset(path.status());
  absl::StatusOr<Bytes> text = ReadText(*path);
  if (!text.ok()) return Dataset(text.status());
  const auto bytes = static_cast<std::int64_t>(text->size());
  const std::int64_t train = bytes / 10 * 9 + bytes % 10 * 9 / 10;
  if (std::min(train, bytes - train) <= options.tokens) {
    return Dataset(absl::InvalidArgumentError(
        absl::StrCat(*path, " has ", bytes, " bytes, ", train, " for training and ", bytes - train,
                     " for validation; a window of ", options.tokens, " and the byte behind it take ",
                     options.tokens + 1, " of each part: choose fewer tokens or more text")));
  }
  const bool trains = split == Split::kTrain;
  const auto border = text->begin() + train;
  Bytes part(trains ? text->begin() : border, trains ? border : text->end());
  if (!trains) {
    return GeneratorDataset(ValidationWindows{std::move(part), options.tokens}, {"data", "label"}, options.sampling);
  }
  const std::int64_t windows = options.windows > 0 ? options.windows : train / options.tokens;
  return Dataset(std::make_shared<TrainingWindows>(std::move(part), options.tokens, windows, options.seed))
      .Sample(options.sampling);
}

}  // namespace mpc::data
