#include "tools/mpc-opt/model_lock.h"

#include "absl/strings/str_cat.h"
#include "compiler/report/precision_lock_file.h"
#include "compiler/report/text_table.h"
#include "tools/mpc-opt/network_source.h"

namespace mpc::opt {
namespace {

using compiler::PrecisionLock;

/// "LeNet5 at O2: 37 operations in 25 lines, 3 casts".
std::string Summary(const PrecisionLock& lock) {
  std::int64_t operations = 0;
  for (const compiler::LockedOperation& line : lock.operations) operations += line.count;
  return absl::StrCat(lock.subject.network, " at ", lock.subject.level, ": ",
                      compiler::FormatCounted(operations, "operation"), " in ",
                      compiler::FormatCounted(static_cast<std::int64_t>(lock.operations.size()), "line"), ", ",
                      compiler::FormatCounted(lock.casts(), "cast"), "\n");
}

/// `status` with what can be done about it.
absl::Status WithWayOn(const absl::Status& status) {
  std::string way;
  if (absl::IsFailedPrecondition(status)) way = "accept it with --update, which writes the lock anew";
  if (absl::IsDataLoss(status) || absl::IsUnimplemented(status)) way = "; --update writes it anew";
  return absl::Status(status.code(), absl::StrCat(status.message(), way));
}

}  // namespace

absl::StatusOr<std::string> LockFile(const ModelRequest& request, const LockRequest& lock) {
  const absl::StatusOr<MadeNetwork> network = MakeNetwork(request.model);
  if (!network.ok()) return network.status();
  const absl::StatusOr<PrecisionLock> present = LockNetwork(*network, request);
  if (!present.ok()) return present.status();
  if (!lock.write && !lock.update) {
    const absl::Status status = compiler::CheckPrecisionLock(lock.path, *present);
    if (absl::IsNotFound(status)) {
      return absl::NotFoundError(absl::StrCat(status.message(), "; --lock=", lock.path, " writes it"));
    }
    if (!status.ok()) return WithWayOn(status);
    return absl::StrCat("'", lock.path, "' holds the precision of ", Summary(*present));
  }
  const absl::StatusOr<bool> written = compiler::WritePrecisionLock(lock.path, *present, lock.update);
  if (!written.ok()) return WithWayOn(written.status());
  return absl::StrCat(*written ? "wrote" : "left", " '", lock.path, "' ", *written ? "" : "as it is ", "with ",
                      Summary(*present));
}

}  // namespace mpc::opt
