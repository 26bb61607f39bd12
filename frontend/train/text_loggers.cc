#include "frontend/train/text_loggers.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mpc {
namespace {

/// The shortest text that reads back as `value`.
std::string Shortest(double value) {
  // Values of f32 are written with the digits of f32.
  std::array<char, 64> text{};
  const auto narrow = static_cast<float>(value);
  const bool is_narrow = static_cast<double>(narrow) == value;
  const std::to_chars_result end = is_narrow ? std::to_chars(text.data(), text.data() + text.size(), narrow)
                                             : std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end.ptr};
}

/// A JSON string. Metrics have names of the user's own.
std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      constexpr char kDigits[] = "0123456789abcdef";
      absl::StrAppend(&quoted, "\\u00", std::string(1, kDigits[c / 16]), std::string(1, kDigits[c % 16]));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

absl::Status CheckFilename(const char* logger, const std::string& filename) {
  return filename.empty() ? absl::InvalidArgumentError(absl::StrCat(logger, ": filename is empty")) : absl::OkStatus();
}

}  // namespace

CSVLogger::CSVLogger(CSVLoggerOptions options)
    : RunLogger("CSVLogger", options.log_steps), options_(std::move(options)) {}

absl::Status CSVLogger::Open(const RunContext& context) {
  columns_.clear();
  const std::string& separator = options_.separator;
  if (separator.size() != 1 || std::isalnum(static_cast<unsigned char>(separator[0])) != 0 ||
      std::string("\"\n\r.+-").find(separator[0]) != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("CSVLogger: separator must be one character that stands in no number, got ", Quoted(separator)));
  }
  if (absl::Status checked = CheckFilename("CSVLogger", options_.filename); !checked.ok()) return checked;
  // The columns are known with the first row, and until then an older file stays as it is.
  return OpenFile(/*append=*/true);
}

absl::Status CSVLogger::OpenFile(bool append) {
  absl::StatusOr<std::unique_ptr<internal::LogFile>> file = internal::LogFile::Open(options_.filename, append);
  if (!file.ok()) return file.status();
  file_ = *std::move(file);
  return absl::OkStatus();
}

absl::Status CSVLogger::Begin(const RunContext& context, const Scalars& scalars) {
  const std::vector<std::string>& evaluated = context.eval_names();
  for (const auto& [name, value] : scalars) {
    if (std::find(evaluated.begin(), evaluated.end(), name) == evaluated.end()) columns_.push_back(name);
  }
  columns_.insert(columns_.end(), evaluated.begin(), evaluated.end());
  std::vector<std::string> names = {"epoch", "step_in_epoch", "global_step"};
  for (const std::string& name : columns_) {
    const bool plain = name.find_first_of("\"\n\r" + options_.separator) == std::string::npos;
    names.push_back(plain ? name : absl::StrCat("\"", name, "\""));
  }
  const std::string header = absl::StrJoin(names, options_.separator);
  std::string first;
  if (options_.append) std::getline(std::ifstream(options_.filename), first);
  if (!first.empty() && first != header) {
    return absl::FailedPreconditionError(
        absl::StrCat("CSVLogger: ", options_.filename, " has the columns ", first, ", this run has ", header));
  }
  if (!options_.append) {
    if (absl::Status opened = OpenFile(/*append=*/false); !opened.ok()) return opened;
  }
  return first.empty() ? file_->Write(header + "\n") : absl::OkStatus();
}

absl::Status CSVLogger::Write(const RunContext& context, const Scalars& scalars) {
  if (columns_.empty()) {
    if (absl::Status begun = Begin(context, scalars); !begun.ok()) return begun;
  }
  std::vector<std::string> cells = {absl::StrCat(context.epoch), absl::StrCat(context.step_in_epoch),
                                    absl::StrCat(context.global_step)};
  for (const std::string& column : columns_) {
    const auto found =
        std::find_if(scalars.begin(), scalars.end(), [&](const auto& scalar) { return scalar.first == column; });
    cells.push_back(found == scalars.end() ? "" : Shortest(found->second));
  }
  return file_->Write(absl::StrJoin(cells, options_.separator) + "\n");
}

absl::Status CSVLogger::Close() {
  file_ = nullptr;
  return absl::OkStatus();
}

JSONLinesLogger::JSONLinesLogger(JSONLinesLoggerOptions options)
    : RunLogger("JSONLinesLogger", options.log_steps), options_(std::move(options)) {}

absl::Status JSONLinesLogger::Open(const RunContext& context) {
  if (absl::Status checked = CheckFilename("JSONLinesLogger", options_.filename); !checked.ok()) return checked;
  absl::StatusOr<std::unique_ptr<internal::LogFile>> file = internal::LogFile::Open(options_.filename, options_.append);
  if (!file.ok()) return file.status();
  file_ = *std::move(file);
  return absl::OkStatus();
}

absl::Status JSONLinesLogger::Write(const RunContext& context, const Scalars& scalars) {
  std::string line = absl::StrCat("{\"epoch\":", context.epoch, ",\"step_in_epoch\":", context.step_in_epoch,
                                  ",\"global_step\":", context.global_step);
  for (const auto& [name, value] : scalars) {
    absl::StrAppend(&line, ",", Quoted(name), ":", std::isfinite(value) ? Shortest(value) : "null");
  }
  return file_->Write(line + "}\n");
}

absl::Status JSONLinesLogger::Close() {
  file_ = nullptr;
  return absl::OkStatus();
}

}  // namespace mpc
