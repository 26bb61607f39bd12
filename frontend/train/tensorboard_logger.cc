#include "frontend/train/tensorboard_logger.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "frontend/train/event_file.h"

namespace mpc {
namespace {

double WallTime() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

/// A name that no other run of any process takes, in the form that TensorBoard looks for. It reads files in the order
/// of their names.
std::string FileName() {
  static std::atomic<int> count{0};
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {'h', 'o', 's', 't'};
  return absl::StrFormat("events.out.tfevents.%010d.%s.%d.%d", static_cast<std::int64_t>(WallTime()), host.data(),
                         ::getpid(), count++);
}

}  // namespace

TensorBoardLogger::TensorBoardLogger(TensorBoardLoggerOptions options)
    : RunLogger("TensorBoardLogger", options.log_steps), options_(std::move(options)) {}

absl::Status TensorBoardLogger::Open(const RunContext& context) {
  if (options_.log_dir.empty()) return absl::InvalidArgumentError("TensorBoardLogger: log_dir is empty");
  path_ = (std::filesystem::path(options_.log_dir) / FileName()).string();
  absl::StatusOr<std::unique_ptr<internal::LogFile>> file = internal::LogFile::Open(path_, /*append=*/false);
  if (!file.ok()) return file.status();
  file_ = *std::move(file);
  return file_->Write(internal::EventRecord(internal::VersionEvent(WallTime())));
}

absl::Status TensorBoardLogger::Write(const RunContext& context, const Scalars& scalars) {
  return file_->Write(internal::EventRecord(internal::ScalarsEvent(WallTime(), context.global_step, scalars)));
}

absl::Status TensorBoardLogger::Close() {
  file_ = nullptr;
  return absl::OkStatus();
}

}  // namespace mpc
