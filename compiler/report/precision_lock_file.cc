#include "compiler/report/precision_lock_file.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/report/precision_lock_difference.h"
#include "compiler/report/precision_lock_text.h"
#include "runtime/atomic_file.h"
#include "runtime/file_content.h"

namespace mpc::compiler {
namespace {

absl::Status atPath(const std::string &path, const absl::Status &status) {
  return absl::Status(status.code(), absl::StrCat("'", path, "': ", status.message()));
}

/// Whether writing anew is the answer to what a check says.
bool canBeUpdated(const absl::Status &status) {
  return absl::IsFailedPrecondition(status) || absl::IsDataLoss(status) || absl::IsUnimplemented(status);
}

} // namespace

absl::Status CheckPrecisionLock(const std::string &path, const PrecisionLock &present) {
  const absl::StatusOr<std::vector<std::uint8_t>> content = runtime::ReadFileContent(path);
  if (!content.ok())
    return content.status();
  const absl::StatusOr<PrecisionLock> locked =
      ParsePrecisionLock({reinterpret_cast<const char *>(content->data()), content->size()});
  if (!locked.ok())
    return atPath(path, locked.status());
  if (absl::Status status = CheckLockSubject(*locked, present); !status.ok())
    return atPath(path, status);
  const std::string difference = PrecisionLockDifference(*locked, present);
  if (difference.empty())
    return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the precision of ", present.subject.network, " at ",
                                                    present.subject.level, " is not that of '", path, "'\n",
                                                    difference));
}

absl::StatusOr<bool> WritePrecisionLock(const std::string &path, const PrecisionLock &present, bool update) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) {
    const absl::Status status = CheckPrecisionLock(path, present);
    if (status.ok())
      return false;
    if (!canBeUpdated(status) || !update)
      return status;
  }
  if (absl::Status status = runtime::WriteTextFile(path, PrintPrecisionLock(present)); !status.ok())
    return status;
  return true;
}

} // namespace mpc::compiler
